// Checks the arguments of the client before anything is sent: the types and names of options. The contract
// and the coordinator check values (patterns, bounds).

import {
  checkOptions as checkRules,
  environmentRule,
  flagRule as flag,
  objectRule as object,
  textRule as text,
  wholeRule as whole,
  wrongArgument as refused,
  type OptionRule,
  type OptionRules,
} from "@holdfast/core";

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** How long this process waits. */
const patience: OptionRule = {
  expected: "milliseconds, 0 or more; Infinity for no end",
  fits: (value) => typeof value === "number" && value >= 0,
};
const abortSignal: OptionRule = {
  expected: "an AbortSignal, as of an AbortController or AbortSignal.timeout(ms)",
  fits: (value) => value instanceof AbortSignal,
};
const urls: OptionRule = {
  expected: "a URL, or a list of the URLs of coordinators that share a storage",
  fits: (value) => text.fits(value) || (Array.isArray(value) && value.length > 0 && value.every(text.fits)),
};
const token: OptionRule = {
  expected: "a token, as `holdfast token create NAME` writes it (HOLDFAST_TOKEN may be unset)",
  fits: (value) => typeof value === "string" && /^[\x21-\x7e]+$/.test(value),
};

const anyText = { expected: "a text", fits: (value: unknown) => typeof value === "string" };

/** The options of each call that takes options, with their kinds. */
const OPTIONS = {
  createClient: { url: urls, token, insecure: flag, retryMs: patience },
  "sessions.start": {
    sessionId: text,
    title: anyText,
    idempotencyKey: text,
    version: text,
    demands: {
      expected: 'labels with their values, such as { gpu: "a100" }',
      fits: (value) => isObject(value) && Object.values(value).every((label) => typeof label === "string"),
    },
    priority: {
      expected: "a whole number from -1000 to 1000",
      fits: (value) => Number.isSafeInteger(value) && Math.abs(value as number) <= 1_000,
    },
    budget: object("limits, such as { maxCostMicroUsd: 5_000_000 }"),
    timeoutMs: whole(1, "milliseconds"),
    persistence: {
      expected: '"full" or "minimal"',
      fits: (value) => value === "full" || value === "minimal",
    },
    callback: {
      expected: "{ parentSessionId }, the id of the session that is notified of its end",
      fits: (value) => isObject(value) && text.fits(value["parentSessionId"]),
    },
    environment: environmentRule,
    traceparent: text,
  },
  result: { timeoutMs: patience, signal: abortSignal },
  signal: { dedupKey: text },
  answer: { question: text },
  cancel: { hard: flag, graceMs: whole(0, "milliseconds"), reason: text },
  events: {
    afterSeq: whole(-1, "the position of the last event that was read"),
    drafts: flag,
    signal: abortSignal,
  },
} satisfies Record<string, OptionRules>;

type Call = keyof typeof OPTIONS;

/** @throws UsageError for what is no object, for an option that there is not, and for one of another kind. */
export function checkOptions(call: Call, given: unknown): void {
  checkRules(call, given, OPTIONS[call]);
}

/** Checks the options that a client needs. @throws UsageError */
export function checkClientOptions(given: unknown): void {
  checkOptions("createClient", given);
  const { token: mine } = given as { readonly token?: unknown };
  if (mine === undefined) throw refused("createClient", "token", mine, token.expected);
}

/** @param what the argument: the name of a signal, the id of a session. @throws UsageError */
export function checkText(call: string, what: string, given: unknown): void {
  if (!text.fits(given)) throw refused(call, what, given, text.expected);
}

/** @throws UsageError */
export function checkTitle(given: unknown): void {
  if (!anyText.fits(given)) throw refused("setTitle", "title", given, anyText.expected);
}

/** @returns an agent's name. @throws UsageError for what is neither an agent nor a name. */
export function nameOfAgent(given: unknown): string {
  const name = isObject(given) ? given["name"] : given;
  if (text.fits(name)) return name as string;
  throw refused(
    "sessions.start",
    "agent",
    given,
    'an agent made by defineAgent, or an agent\'s name, such as "deploy"',
  );
}
