// Checks of the arguments of `defineAgent` and `defineTask`. They look at the names and kinds of the members
// before anything else is done. The types say the same; the checks are for code that no compiler has seen.

import {
  anyRule as any,
  checkOptions,
  flagRule as flag,
  functionRule,
  listRule,
  msRule as ms,
  EFFECT_CLASSES,
  objectRule as object,
  oneOfRule as oneOf,
  type OptionRule,
  type OptionRules,
  type StateDefinition,
  UsageError,
} from "@holdfast/core";
import { isSecretName } from "@holdfast/system";

export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null;

const isTask = (value: unknown): boolean => isObject(value) && typeof value["run"] === "function";
export const isAgentLike = (value: unknown): boolean =>
  isObject(value) && typeof value["main"] === "function" && Array.isArray(value["tasks"]);

/** A schema may be a function that has the standard's property, as some libraries' are. */
const schema: OptionRule = {
  expected: "a Standard Schema, such as one of zod",
  fits: (value) => (isObject(value) || typeof value === "function") && "~standard" in value,
};
const secrets = listRule('a list of names of environment variables, such as "API_KEY"', isSecretName);
const isOptional = (value: unknown): boolean =>
  isObject(value) && Array.isArray(value["anyOf"]) && value["anyOf"].every(isSecretName);
const TAG = /^[^,\p{Cc}]{1,50}$/u;
const tagsRule = listRule(
  "a list of at most 50 texts of 1 to 50 characters without a comma",
  (tag) => typeof tag === "string" && TAG.test(tag),
);
const versionRule: OptionRule = {
  expected: 'a text, such as "2"',
  fits: (value) => typeof value === "string",
};
export const tasksRule = listRule("a list of what defineTask gives", isTask);
export const agentsRule = listRule("a list of what defineAgent gives", isAgentLike);
const TASK: OptionRules = {
  name: any, // Its own check says what a name is.
  description: any,
  input: schema,
  output: schema,
  retry: object("{ maxAttempts, initialDelayMs, factor, maxDelayMs, nonRetryable }"),
  effect: oneOf(...EFFECT_CLASSES),
  timeoutMs: ms(0),
  deadlineMs: ms(0),
  guardRepeats: flag,
  secrets,
  cost: functionRule("a function of the input"),
  inThread: {
    expected: "import.meta.url of the module that exports the task",
    fits: (value) => typeof value === "string" && URL.canParse(value),
  },
  run: functionRule("run: (input, task) => output"),
  endLost: functionRule("a function of the input and the idempotency key"),
  sessionLeft: functionRule("a function of the session's id"),
  types: any,
};

const AGENT: OptionRules = {
  name: any, // Its own check says what a name is.
  version: versionRule,
  description: any,
  tags: tagsRule,
  budget: object("limits, such as { maxCostMicroUsd: 5_000_000 }"),
  requiredVariables: listRule("a list of names of variables", (name) => typeof name === "string"),
  input: schema,
  output: schema,
  tasks: tasksRule,
  agents: agentsRule,
  handlers: {
    expected: "tasks by the names of requests",
    fits: (value) => isObject(value) && Object.values(value).every(isTask),
  },
  secrets,
  optionalSecrets: listRule("a list of { anyOf: [names of environment variables], isAsked }", isOptional),
  state: object("{ version: 1, initial: (input) => ({ … }) }"),
  checkpoint: { expected: '"every_turn"', fits: (value) => value === "every_turn" },
  limitsTurns: flag,
  run: functionRule("run: async (ctx, input) => output"),
  turn: functionRule("turn: async (ctx, state) => ({ state }) or ({ done })"),
  initial: functionRule("initial: (input) => state"),
};

/** @throws UsageError */
export function checkTask(given: unknown): void {
  checkOptions("defineTask", given, TASK);
}

/** @throws UsageError */
export function checkAgent(given: unknown): void {
  checkOptions("defineAgent", given, AGENT);
}

/** @throws UsageError */
export function checkState(name: string, state: StateDefinition | undefined): StateDefinition | undefined {
  if (state === undefined) return undefined;
  const { version, initial, reducers = {} } = state;
  const isReducer = (reducer: unknown): boolean =>
    reducer === undefined ||
    typeof reducer === "function" ||
    ["append", "merge", "replace"].includes(reducer as string);
  const areReducers = !Array.isArray(reducers) && Object.values(reducers).every(isReducer);
  if (Number.isSafeInteger(version) && version > 0 && typeof initial === "function" && areReducers)
    return state;
  throw new UsageError(`the state of agent "${name}" cannot be used`, {
    expected:
      "state: { version: 1, initial: (input) => ({ … }) }, the version a whole number above 0, and each of its reducers a function, " +
      '"append", "merge" or "replace"',
    fix: "correct the state of defineAgent",
  });
}
