// Checks of the arguments of `createRuntime` and of the calls of a runtime, as `define-arguments.ts` has for
// definitions.

import {
  anyRule as any,
  checkOptions,
  environmentRule,
  flagRule as flag,
  functionRule,
  LIMITS,
  listRule,
  msRule as ms,
  objectRule as object,
  oneOfRule as oneOf,
  type OptionRule,
  type OptionRules,
  textRule as text,
  toError,
  wholeRule as whole,
  wrongArgument,
} from "@holdfast/core";
import { agentsRule, isAgentLike, isObject, tasksRule } from "../agents/define-arguments.ts";
import type { Runtime, RuntimeOptions } from "./runtime-api.ts";

const limits: OptionRule = {
  expected: `limits by their names, each a number above 0: ${Object.keys(LIMITS).join(", ")}`,
  fits: (value) =>
    isObject(value) &&
    Object.entries(value).every(
      ([name, limit]) =>
        Object.hasOwn(LIMITS, name) && (limit === undefined || (typeof limit === "number" && limit > 0)),
    ),
};

const RUNTIME = {
  storage: {
    expected:
      "a storage, such as openSqliteStorage({ path }) gives once it is awaited, or new MemoryStorage()",
    fits: (value) => isObject(value) && typeof value["commit"] === "function",
  },
  agents: agentsRule,
  replaceAgents: flag,
  tasks: {
    expected: "a list of what defineTask gives, or a task executor",
    fits: (value) => (Array.isArray(value) ? tasksRule.fits(value) : isObject(value)),
  },
  queue: object("a task executor"),
  signals: listRule("a list of signal sources", isObject),
  secrets: {
    expected: "a map from the names of secrets to their values, or { get: (name) => value }",
    fits: (value) => isObject(value) && typeof value["get"] === "function",
  },
  tracer: object("a tracer"),
  showsTexts: flag,
  clock: object("a clock"),
  random: object("a source of chance"),
  immediate: functionRule("a function like setImmediate"),
  limits,
  strictBounds: flag,
  prices: any,
  concurrency: whole(1, "attempts of tasks at once"),
  warmMs: ms(0),
  warmSessions: whole(0, "sessions kept in memory"),
  warmBytes: whole(0, "bytes of sessions kept in memory"),
  adopt: flag,
  dispatched: object("{ claimAgeMs }"),
  machine: text,
  schedules: {
    expected: "true, false, or { findAgent, onFired }",
    fits: (value) => typeof value === "boolean" || isObject(value),
  },
  owner: text,
  leaseMs: any,
  renewMs: any,
  watchdog: object("a watchdog"),
  poisonLosses: whole(1, "losses of a session that is tried alone"),
  development: flag,
} satisfies { readonly [option in keyof Required<RuntimeOptions>]: OptionRule };

/** @throws UsageError */
export function checkRuntimeOptions(given: RuntimeOptions): RuntimeOptions {
  checkOptions("createRuntime", given, RUNTIME);
  const { storage } = given as { readonly storage?: unknown };
  if (storage === undefined)
    throw wrongArgument("createRuntime", "storage", storage, RUNTIME.storage.expected);
  return given;
}

const START: OptionRules = {
  sessionId: { expected: "the id of a session, a text", fits: (value) => typeof value === "string" },
  title: { expected: "a text", fits: (value) => typeof value === "string" },
  file: text,
  budget: object("limits, such as { maxCostMicroUsd: 5_000_000 }"),
  persistence: oneOf("full", "minimal", "ephemeral"),
  timeoutMs: any,
  environment: environmentRule,
  traceparent: text,
};
const SIGNAL: OptionRules = { dedupKey: text, signalId: text };
const ANSWER: OptionRules = { signalId: text, question: whole(0, "the question's number") };
const CANCEL: OptionRules = {
  hard: flag,
  graceMs: any,
  reason: { expected: "a text", fits: (value) => typeof value === "string" },
};
const FORK: OptionRules = {
  at: any,
  input: any,
  tasks: oneOf("rerun", "cancel"),
  sessionId: START["sessionId"]!,
  run: flag,
};
const IMPORT: OptionRules = { name: text, sessionId: START["sessionId"]! };
const SCHEDULE: OptionRules = {
  id: text,
  cron: text,
  timeZone: text,
  start: object("{ agent, input, budget, environment }"),
  signal: object("{ sessionId, name, payload }"),
};

type Check = (...given: readonly unknown[]) => void;

function needText(call: string, what: string, given: unknown): void {
  if (!text.fits(given)) throw wrongArgument(call, what, given, text.expected);
}

function needAgent(call: string, given: unknown): void {
  if (!isAgentLike(given)) throw wrongArgument(call, "agent", given, "what defineAgent gives");
}

/** The checks of the calls that take more than an id. */
const CALLS: { readonly [call in keyof Runtime]?: Check } = {
  start(agent, _input, options = {}) {
    needAgent("start", agent);
    checkOptions("start", options, START);
  },
  signal(sessionId, name, _payload, options = {}) {
    needText("signal", "sessionId", sessionId);
    if (typeof name !== "string") needText("signal", "name", name);
    checkOptions("signal", options, SIGNAL);
  },
  answer(sessionId, _answer, options = {}) {
    needText("answer", "sessionId", sessionId);
    checkOptions("answer", options, ANSWER);
  },
  cancel(sessionId, options = {}) {
    needText("cancel", "sessionId", sessionId);
    checkOptions("cancel", options, CANCEL);
  },
  close(options = {}) {
    checkOptions("close", options, { graceMs: ms(0) });
  },
  setBudget(sessionId, budget) {
    needText("setBudget", "sessionId", sessionId);
    const { expected, fits } = START["budget"]!;
    if (!fits(budget)) throw wrongArgument("setBudget", "limits", budget, expected);
  },
  grantWindow(sessionId, per) {
    needText("grantWindow", "sessionId", sessionId);
    needText("grantWindow", "per", per);
  },
  fork(sessionId, options = {}) {
    needText("fork", "sessionId", sessionId);
    checkOptions("fork", options, FORK);
  },
  import(file, options = {}) {
    if (!isObject(file) || !(Symbol.asyncIterator in file))
      throw wrongArgument("import", "file", file, "chunks of bytes, such as fs.createReadStream(path)");
    checkOptions("import", options, IMPORT);
  },
  schedule(request) {
    checkOptions("schedule", request, SCHEDULE);
    const { cron, timeZone, start, signal } = request as Readonly<Record<string, unknown>>;
    needText("schedule", "cron", cron);
    needText("schedule", "timeZone", timeZone);
    if ((start === undefined) === (signal === undefined))
      throw wrongArgument("schedule", "start or signal", undefined, "one of the two");
    if (isObject(start)) needAgent("schedule", start["agent"]);
    if (isObject(start) && start["budget"] !== undefined && !START["budget"]!.fits(start["budget"]))
      throw wrongArgument("schedule", "budget", start["budget"], START["budget"]!.expected);
    if (isObject(signal)) needText("schedule", "sessionId", signal["sessionId"]);
  },
};

/** The same runtime, whose calls check their arguments before they begin. */
export function withCheckedCalls<R extends Runtime>(runtime: R): R {
  const calls = runtime as unknown as Record<string, (...given: readonly unknown[]) => unknown>;
  for (const [name, check] of Object.entries(CALLS)) {
    const call = calls[name]!.bind(runtime);
    // Not async: calls made in one turn of the event loop keep their order.
    calls[name] = (...given) => {
      try {
        check(...given);
      } catch (error) {
        return Promise.reject(toError(error));
      }
      return call(...given);
    };
  }
  return runtime;
}
