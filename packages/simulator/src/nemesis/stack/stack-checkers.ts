// `checkStack`: the promises of the local stack that the checkers of a fleet do not cover, over what was seen
// of a run with kills. Each checker is a pure function.

import type { Effect } from "../observed.ts";
import type { ExecutorLine } from "./tree-executor.ts";

/** A task's outcome, as its session's journal has it. */
export interface RecordedOutcome {
  readonly taskId: string;
  /** The attempt that it is of. */
  readonly attempt: number;
}

export interface StackSeen {
  readonly effects: readonly Effect[];
  readonly outcomes: readonly RecordedOutcome[];
  readonly executors: readonly ExecutorLine[];
  /** The texts of all entries, by session. */
  readonly entries: Readonly<Record<string, readonly string[]>>;
  /** Processes that outlived the component that had started them, each with its command. */
  readonly orphans: readonly string[];
  /** The places where the secret was found. */
  readonly secretIn: readonly string[];
}

const STACK_CHECKERS: Readonly<Record<string, (seen: StackSeen) => readonly string[]>> = {
  "H7: an attempt begins once, and none begins after the one whose outcome is recorded":
    recordedIsNotRepeated,
  "H8b: an effect that happens once is begun once": onceIsOnce,
  "H1: each report of an executor that was acknowledged is an entry": reportsAreKept,
  "P1: what a dead process had started is ended": ({ orphans }) => orphans,
  "P2: a session has one executor at a time": oneExecutor,
  "X15: the secret is nowhere": ({ secretIn }) => secretIn,
  "X7: an executor gets no variable that was not declared": onlyDeclaredVariables,
};

/** @returns each broken promise, with its name. */
export function checkStack(seen: StackSeen): readonly string[] {
  return Object.entries(STACK_CHECKERS).flatMap(([promise, checker]) =>
    checker(seen).map((what) => `${promise}: ${what}`),
  );
}

function recordedIsNotRepeated({ effects, outcomes }: StackSeen): string[] {
  const recorded = new Map(outcomes.map(({ taskId, attempt }) => [taskId, attempt]));
  const begun = effects.filter(({ phase }) => phase === "begin");
  const attempts = Map.groupBy(begun, ({ taskId, attempt }) => `attempt ${attempt} of ${taskId}`);
  return [
    ...[...attempts]
      .filter(([, all]) => all.length > 1)
      .map(([which, all]) => `${which} began ${all.length} times`),
    ...begun
      .filter(({ taskId, attempt }) => attempt > (recorded.get(taskId) ?? Infinity))
      .map(
        ({ taskId, attempt }) =>
          `attempt ${attempt} of ${taskId} began, and the outcome of attempt ${recorded.get(taskId)} is recorded`,
      ),
  ];
}

function onceIsOnce({ effects }: StackSeen): string[] {
  const paid = effects.filter(({ phase, name }) => phase === "begin" && name === "pay");
  return [...Map.groupBy(paid, ({ taskId }) => taskId)]
    .filter(([, all]) => all.length > 1)
    .map(([taskId, all]) => `${taskId} was begun ${all.length} times`);
}

function reportsAreKept({ executors, entries }: StackSeen): string[] {
  return executors
    .filter(
      ({ what, sessionId, text }) => what === "acknowledged" && entries[sessionId]?.includes(text) !== true,
    )
    .map(({ sessionId, text }) => `${sessionId} has no entry "${text}"`);
}

function oneExecutor({ executors }: StackSeen): string[] {
  return executors
    .filter(({ what }) => what === "second")
    .map(({ sessionId, at }) => `a second executor of ${sessionId} began at ${at}, and the first was there`);
}

function onlyDeclaredVariables({ executors }: StackSeen): string[] {
  const names = new Set(executors.filter(({ what }) => what === "variable").map(({ text }) => text));
  return [...names].map((name) => `an executor has the variable ${name}`);
}
