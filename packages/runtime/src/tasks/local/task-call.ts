// The parts of a call of a defined task: its traits, its schemas, and the conversations in its input.

import {
  decodeJson,
  LIMITS,
  validate,
  type ConversationEntry,
  type RemainingBudget,
  type Session,
  type SignalReceipt,
  type TaskTraits,
} from "@holdfast/core";
import type { TaskContext, TaskDefinition, TaskSignalOptions } from "../../agents/define.ts";
import { performInThread } from "./task-thread.ts";

/** The reach of a handler beyond its task. */
export interface SessionCalls {
  /** Reads the row of a session, for `readSession`; without it there is none. */
  readonly read?: ((sessionId: string) => Promise<Session | undefined>) | undefined;
  /** Stores a signal to a session, for `signalSession`; without it there is none. */
  readonly signal?:
    | ((
        sessionId: string,
        name: string,
        payload: unknown,
        options: TaskSignalOptions,
      ) => Promise<SignalReceipt & { readonly unspent?: RemainingBudget }>)
    | undefined;
}

/** The traits of a task that a session needs before it schedules the task. */
export function traitsOf(task: TaskDefinition): TaskTraits {
  if (task.cost === undefined) return task;
  const { retry, effect, timeoutMs, deadlineMs, guardRepeats, cost } = task;
  return {
    ...(retry === undefined ? {} : { retry }),
    ...(effect === undefined ? {} : { effect }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(deadlineMs === undefined ? {} : { deadlineMs }),
    ...(guardRepeats === undefined ? {} : { guardRepeats }),
    cost: (input) => cost(decodeJson(input)),
  };
}

/**
 * Call a task's handler between its schemas.
 *
 * @param graceMs how long a thread has for its end (task-thread-2).
 */
export async function performTask(
  definition: TaskDefinition,
  given: unknown,
  context: TaskContext,
  graceMs: number = LIMITS.cancelGraceMs / 2,
): Promise<unknown> {
  const { name, input, output, inThread: module } = definition;
  const accepted =
    input === undefined ? given : await validate(input, given, `input of task "${name}"`, "invalid_input");
  const made = await (module === undefined
    ? definition.run(accepted, context)
    : performInThread({ definition, module, input: accepted, context, graceMs }));
  return output === undefined ? made : validate(output, made, `output of task "${name}"`, "invalid_output");
}

/**
 * Put the entries in the place of each `ctx.conversation()` in a task's input. Parts of the input without one
 * stay as they are.
 */
export async function resolveConversations(
  value: unknown,
  load: (leaf: number | null) => Promise<readonly ConversationEntry[]>,
): Promise<unknown> {
  if (typeof value !== "object" || value === null || !holdsConversation(value)) return value;
  if (Array.isArray(value)) return Promise.all(value.map((item) => resolveConversations(item, load)));
  if (isConversation(value)) {
    const leaf = value.$conversation;
    return load(typeof leaf === "number" ? leaf : null);
  }
  const members = Object.entries(value).map(
    async ([key, item]) => [key, await resolveConversations(item, load)] as const,
  );
  return Object.fromEntries(await Promise.all(members));
}

function isConversation(value: object): value is { readonly $conversation: unknown } {
  return "$conversation" in value && Object.keys(value).length === 1;
}

/** A walk without promises: the input of a model task has many parts, such as the schemas of all tools. */
function holdsConversation(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (isConversation(value)) return true;
  for (const member of Array.isArray(value) ? value : Object.values(value))
    if (holdsConversation(member)) return true;
  return false;
}
