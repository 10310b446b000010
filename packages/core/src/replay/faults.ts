// The errors that a kernel raises against an agent, in one place, so that their texts are alike.

import { HoldfastError, LimitError, UsageError } from "../errors/errors.ts";
import { positionId } from "../ids.ts";
import type { Limits } from "../limits.ts";
import { callerLine } from "../errors/author-line.ts";
import type { KernelOptions } from "./kernel-options.ts";
import type { OpenItem, OpenTask } from "./open-items.ts";

/** @param cause the reason with which the awaited promise was rejected, if it was. */
function nonDurableAwait(message: string, line: string | undefined, cause?: unknown): HoldfastError {
  return new HoldfastError("non_durable_await", message, {
    ...at(line),
    ...(cause === undefined ? {} : { cause }),
    expected:
      "an agent that awaits only promises of ctx: tasks, timers, signals, and functions made of these",
    fix: "move fetch, files, setTimeout and other outside work into a task: ctx.run(name, fn) or defineTask()",
  });
}

/**
 * K2. An ask outside a slice. Usually the agent asked after it awaited something that is not durable, or one
 * of its tasks asked.
 */
export function strayFault(
  message: string,
  line: string | undefined,
  { whereabouts }: Pick<KernelOptions, "whereabouts"> = {},
  cause?: unknown,
): HoldfastError {
  const { task, outsideCall } = whereabouts?.() ?? {};
  if (task !== undefined) return contextInsideTask(task, line);
  return nonDurableAwait(message, line ?? outsideCall, cause);
}

/**
 * A task used the agent's context. A task runs outside of replay, where none of its asks could be found
 * again.
 */
function contextInsideTask(task: string, line: string | undefined): HoldfastError {
  return new HoldfastError("non_durable_await", `ctx was used inside the handler of task "${task}"`, {
    ...at(line),
    expected: "a handler that uses its input and its own context, which is its last argument",
    fix: "use tasks, signals and timers in the agent's function, and pass the task everything that it needs as its input",
  });
}

export const ENDED_ASTRAY = "the agent ended after awaiting something that is not durable";

/** Errors that the engine throws at wrong code, and values of the agent that cannot be recorded. */
export function isMistake(thrown: unknown): thrown is Error {
  try {
    if (!(thrown instanceof Error)) return false;
    if (HoldfastError.is(thrown)) return thrown.code === "not_json" || thrown.code === "limit_exceeded";
    return thrown.name === "TypeError" || thrown.name === "ReferenceError";
  } catch {
    return false; // A proxy, for example.
  }
}

export function mistakeOf(
  thrown: Error,
  { whereabouts }: Pick<KernelOptions, "whereabouts"> = {},
): HoldfastError {
  if (HoldfastError.is(thrown)) return thrown;
  if (isRejectedFetch(thrown)) {
    const line = whereabouts?.().outsideCall ?? callerLine(thrown);
    return nonDurableAwait("the agent awaits fetch(), which failed", line, thrown);
  }
  return new HoldfastError(
    "agent_error",
    `the agent's code has a mistake: ${thrown.name}: ${thrown.message}`,
    {
      ...at(callerLine(thrown)),
      fix: "correct the code and resume the session: this step was not committed, and all earlier steps are kept",
      cause: thrown,
    },
  );
}

/** A request that is refused before it is sent is rejected within the slice that made it. */
function isRejectedFetch({ message }: Error): boolean {
  return message === "fetch failed";
}

export function limitReached(limit: keyof Limits, max: number, fix: string, line?: string): LimitError {
  return new LimitError(limit, `the agent reached the limit "${limit}" (${max})`, { ...at(line), fix });
}

export function unknownTaskKind(
  kind: string,
  known: readonly string[],
  line: string | undefined,
): UsageError {
  return new UsageError(`no task "${kind}" is known here`, {
    code: "unknown_task_kind",
    ...at(line),
    expected:
      known.length === 0
        ? "a defined task; no task is defined"
        : `one of ${known.map((name) => `"${name}"`).join(", ")}`,
    fix: "define it with defineTask() and name it in the agent's `tasks`, or use ctx.run()",
  });
}

export function keyOfAnother(
  key: string,
  holder: string,
  kind: string,
  line: string | undefined,
): UsageError {
  return new UsageError(
    `the idempotency key "${key}" belongs to ${holder}, but task "${kind}" has another kind or input`,
    {
      ...at(line),
      expected: "one key for one task: the same kind and the same input",
      fix: "give each task a key of its own, or none",
    },
  );
}

/** K2a. */
export function signalIsSpokenFor(pattern: string, holder: OpenItem, line: string | undefined): UsageError {
  const asked = holder.lineOf?.();
  const where = asked === undefined ? "" : `, asked at ${asked}`;
  const which = `${holder.future.label}, command ${holder.future.id}${where}`;
  return new UsageError(`signal "${pattern}" already has an open wait that consumes it: ${which}`, {
    ...at(line),
    expected: "one consumer of a signal name at a time",
    fix: "await the first wait, give it { timeoutMs }, or race it with ctx.race(), which withdraws the losers",
  });
}

/** K7. */
export function openTasksRefuseCheckpoint(
  sessionId: string,
  tasks: readonly OpenTask[],
  line: string | undefined,
): UsageError {
  const names = tasks.slice(0, 5).map((task) => `"${task.kind}" (${positionId(sessionId, task.id)})`);
  return new UsageError(`ctx.checkpoint() with ${tasks.length} open task(s): ${names.join(", ")}`, {
    ...at(line),
    expected: "no open task",
    fix: 'await them first, or pass { openTasks: "wait" } or { openTasks: "cancel" }',
  });
}

/**
 * K7. After a checkpoint the agent is called again from the top, so a checkpoint that it reaches
 * unconditionally never ends.
 */
export function checkpointWithoutProgress(line: string | undefined): UsageError {
  return new UsageError(
    "ctx.checkpoint() was reached again with the same state and without any work since the last one",
    {
      ...at(line),
      expected: "an agent that continues from ctx.state, as it is called again after each checkpoint",
      fix: "read ctx.state first: if (ctx.state === undefined) { ...; await ctx.checkpoint(state) }",
    },
  );
}

/** K7. The state would be lost silently. */
export function checkpointNotAwaited(): UsageError {
  return new UsageError("the agent returned although it had called ctx.checkpoint() and not awaited it", {
    expected: "an awaited checkpoint as the last call of the turn; it never returns",
    fix: "await ctx.checkpoint(state), or return ctx.checkpoint(state)",
  });
}

export function askedTooLate(after: "the end" | "ctx.checkpoint()", line: string | undefined): UsageError {
  return new UsageError(`the agent used ctx after ${after}`, {
    ...at(line),
    fix: "await everything the agent starts before it returns or checkpoints",
  });
}

export function foreignEntry(entryId: string, sessionId: string, line: string | undefined): UsageError {
  return new UsageError(`"${entryId}" is no entry of this session`, {
    ...at(line),
    expected: `an id that ctx.appendEntry() of session ${sessionId} returned`,
  });
}

export function timerWithoutTime(time: number, line: string | undefined): UsageError {
  return new UsageError(`a timer needs a finite time, not ${String(time)}`, {
    ...at(line),
    expected: "a finite number of milliseconds",
  });
}

/** The field `at` of an error, if there is a line. */
export function at(line: string | undefined): { readonly at?: string } {
  return line === undefined ? {} : { at: line };
}
