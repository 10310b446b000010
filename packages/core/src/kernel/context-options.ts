// `TASK_OPTIONS`, `SPAWN_OPTIONS` and others: the options of each ask of an agent, and the values that they may have.

import { UsageError } from "../errors/errors.ts";
import { EFFECT_CLASSES } from "../journal/task-policy.ts";
import {
  anyRule,
  flagRule,
  objectRule,
  oneOfRule,
  textRule,
  wholeRule,
  type OptionRules,
} from "../options.ts";

/** The options of each ask. The code that uses an option checks its value. */
export const PATIENCE: OptionRules = { timeoutMs: anyRule };
export const TASK_OPTIONS: OptionRules = {
  ...PATIENCE,
  deadlineMs: anyRule,
  idempotencyKey: anyRule,
  retry: anyRule,
  effect: oneOfRule(...EFFECT_CLASSES),
  onUncertain: oneOfRule("throw", "return", "ask"),
};

/** @throws UsageError for an option that only tasks of `defineTask` have. */
export function refuseThread(options: object): void {
  if (!("inThread" in options)) return;
  throw new UsageError(
    "a function of ctx.run cannot run in a thread, because it shares variables with its agent",
    {
      at: "ctx.run: inThread",
      expected: "a task of a module, whose input says everything",
      fix: "defineTask({ inThread: import.meta.url, … }) and ctx.scheduleTask(task, input)",
    },
  );
}

export const WAIT_OPTIONS: OptionRules = { ...PATIENCE, schema: anyRule };
export const QUESTION_OPTIONS: OptionRules = {
  ...WAIT_OPTIONS,
  ttlMs: anyRule,
  answer: oneOfRule("approval", "any"),
};
const OBJECT = objectRule("an object");
const SHARED = oneOfRule("none", "conversation", "conversation_read_only");
const ATTEMPTS = wholeRule(1, "times");
const CHILD_OPTIONS: OptionRules = {
  persistence: oneOfRule("full", "minimal", "ephemeral"),
  shared: {
    expected: `${SHARED.expected} or { custom: … }`,
    fits: (value) => SHARED.fits(value) || (OBJECT.fits(value) && Object.hasOwn(value as object, "custom")),
  },
  budget: anyRule,
  timeoutMs: anyRule,
  onParentEnd: oneOfRule("cancel", "wait", "leave"),
  machine: textRule,
  labels: {
    expected: "an object of labels with their values, all of them texts",
    fits: (value) =>
      OBJECT.fits(value) && Object.values(value as object).every((label) => typeof label === "string"),
  },
  respawn: {
    expected: `{ maxAttempts: ${ATTEMPTS.expected} }`,
    fits: (value) =>
      OBJECT.fits(value) && ATTEMPTS.fits((value as { readonly maxAttempts?: unknown }).maxAttempts),
  },
};
export const SPAWN_OPTIONS: OptionRules = {
  ...CHILD_OPTIONS,
  notify: oneOfRule("events", "end", "callback"),
};
export const HANDOFF_OPTIONS: OptionRules = {
  ...CHILD_OPTIONS,
  completion: oneOfRule("wait_for_child", "immediate"),
};
export const CANCEL_OPTIONS: OptionRules = { hard: flagRule, graceMs: anyRule, reason: textRule };
