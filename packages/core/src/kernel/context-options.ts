// `TASK_OPTIONS`, `SPAWN_OPTIONS` and others: the options of each ask of an agent, and the values that they
// may have. Their types are here as well, as far as no other source has them.

import type { SpawnOptions } from "../asks/child-creation.ts";
import { UsageError } from "../errors/errors.ts";
import type { AnswerShape } from "../journal/approval.ts";
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
import type { GivenEnvironment, ParentNotice } from "../session/session.ts";
import type { StandardSchemaV1 } from "../standard-schema.ts";

/** The facts that an agent learns of its session. */
export interface AgentInfo {
  readonly agentName: string;
  /** Decoded for each kernel, so that agents may change it freely. */
  readonly input: unknown;
  /** The session that created this one. */
  readonly parentId?: string | undefined;
  /** The notices of this session that reach the parent. */
  readonly parentNotice?: ParentNotice | undefined;
  /** The value that the parent shared. */
  readonly shared?: unknown;
  /** The environments and variables that the start named. */
  readonly environment?: GivenEnvironment | undefined;
  /** The progress of the session in whose place this one was created. */
  readonly resumedFrom?: unknown;
}

/** An entry that an agent appends to its conversation. */
export interface EntryInput {
  /** `user`, `assistant`, `tool`, `system`, or a role of your own. */
  readonly role: string;
  /** The content, as JSON. */
  readonly content: unknown;
  /**
   * The entry that this entry answers; the last appended entry by default. `null` begins a new conversation.
   */
  readonly parentId?: string | null;
}

/** Options of a wait for a signal. */
export interface WaitOptions<T> {
  /** Reject with `WaitTimeoutError` after this long, and stop waiting. */
  readonly timeoutMs?: number;
  /** The payload's schema. A signal that does not fit is consumed and rejects with `invalid_signal`. */
  readonly schema?: StandardSchemaV1<unknown, T>;
}

/** A question to a person, with the form of its answer. */
export interface QuestionOptions<T> extends WaitOptions<T> {
  /** Without a schema and without this a question asks for an `Approval`. `any` takes any JSON as it is. */
  readonly answer?: AnswerShape;
  /** Without an answer after this long the session is cancelled (`input_timeout`); its agent may clean up. */
  readonly ttlMs?: number;
}

/** Options of a hand-over of a session's place to another agent. */
export interface HandoffOptions extends Omit<SpawnOptions, "notify"> {
  /**
   * `wait_for_child`: this session ends when the other one does, with its output. `immediate`: this session
   * returns `{ handedOffTo }`, and the other one is its successor below its parent from then on.
   */
  readonly completion?: "wait_for_child" | "immediate";
}

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
