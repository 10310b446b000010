// What nobody may call the client with. Types and names of options are looked at here, so that nothing is sent of what cannot be
// meant; which values are taken (patterns, bounds) is the contract's to say, and the coordinator's.

import { UsageError } from "@holdfast/core";
import { didYouMean } from "@holdfast/core/internal";

interface Rule {
  readonly expected: string;
  readonly fits: (value: unknown) => boolean;
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const text: Rule = {
  expected: "a text that is not empty",
  fits: (value) => typeof value === "string" && value !== "",
};
const flag: Rule = { expected: "true or false", fits: (value) => typeof value === "boolean" };
const whole = (least: number, what: string): Rule => ({
  expected: `${what}, a whole number, ${least} or more`,
  fits: (value) => Number.isSafeInteger(value) && (value as number) >= least,
});
/** How long this process waits. */
const patience: Rule = {
  expected: "milliseconds, 0 or more; Infinity for no end",
  fits: (value) => typeof value === "number" && value >= 0,
};
const abortSignal: Rule = {
  expected: "an AbortSignal, as of an AbortController or AbortSignal.timeout(ms)",
  fits: (value) => value instanceof AbortSignal,
};
const token: Rule = {
  expected: "a token, as `holdfast token create NAME` writes it; is HOLDFAST_TOKEN set?",
  fits: (value) => typeof value === "string" && /^[\x21-\x7e]+$/.test(value),
};
const object = (expected: string): Rule => ({ expected, fits: isObject });

/** Of each call that takes options: which, and of what kind. */
const OPTIONS = {
  createClient: { url: text, token, insecure: flag, retryMs: patience },
  "sessions.start": {
    sessionId: text,
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
      expected: "{ parentSessionId }, the id of the session that hears of its end",
      fits: (value) => isObject(value) && text.fits(value["parentSessionId"]),
    },
    traceparent: text,
  },
  result: { timeoutMs: patience, signal: abortSignal },
  signal: { dedupKey: text },
  answer: { question: text },
  cancel: { hard: flag, graceMs: whole(0, "milliseconds"), reason: text },
  events: { afterSeq: whole(-1, "the position that was seen last"), signal: abortSignal },
} satisfies Record<string, Readonly<Record<string, Rule>>>;

type Call = keyof typeof OPTIONS;

/** @throws UsageError for what is no object, for an option that there is not, and for one of another kind. */
export function checkOptions(call: Call, given: unknown): void {
  const rules: Readonly<Record<string, Rule>> = OPTIONS[call];
  const names = Object.keys(rules);
  if (!isObject(given))
    throw refused(call, "options", given, `an object with some of ${names.join(", ")}, or nothing`);
  for (const [name, value] of Object.entries(given)) {
    const rule = Object.hasOwn(rules, name) ? rules[name] : undefined;
    if (rule === undefined)
      throw new UsageError(`${call} has no option "${name}"${didYouMean(name, names)}`, {
        at: `${call}: ${name}`,
        got: shown(value),
        expected: `some of ${names.join(", ")}`,
        fix: `leave "${name}" out, or name the option that is meant`,
      });
    if (value !== undefined && !rule.fits(value)) throw refused(call, name, value, rule.expected);
  }
}

/** What a client cannot be without. @throws UsageError */
export function checkClientOptions(given: unknown): void {
  checkOptions("createClient", given);
  const { token: mine } = given as { readonly token?: unknown };
  if (mine === undefined) throw refused("createClient", "token", mine, token.expected);
}

/** @param what the argument: the name of a signal, the id of a session. @throws UsageError */
export function checkText(call: string, what: string, given: unknown): void {
  if (!text.fits(given)) throw refused(call, what, given, text.expected);
}

/** @returns an agent's name. @throws UsageError for what is neither an agent nor a name. */
export function nameOfAgent(given: unknown): string {
  const name = isObject(given) ? given["name"] : given;
  if (text.fits(name)) return name as string;
  throw refused(
    "sessions.start",
    "agent",
    given,
    'an agent that defineAgent made, or the name of one, such as "deploy"',
  );
}

function refused(call: string, what: string, given: unknown, expected: string): UsageError {
  return new UsageError(`${call} cannot take ${shown(given)} as ${what}`, {
    at: `${call}: ${what}`,
    got: shown(given),
    expected,
    fix: given === undefined ? `give ${what}` : `give ${what} as it is expected; nothing was sent`,
  });
}

const SHOWN_CHARS = 100;

function shown(given: unknown): string {
  if (typeof given === "string") return JSON.stringify(given.slice(0, SHOWN_CHARS));
  if (typeof given === "function") return "a function";
  if (typeof given !== "object" || given === null) return String(given);
  return Array.isArray(given)
    ? "a list"
    : `an object with ${Object.keys(given).slice(0, 5).join(", ") || "nothing"}`;
}
