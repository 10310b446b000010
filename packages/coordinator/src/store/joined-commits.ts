// What is asked of storage in one turn of the event loop, by any number of requests, as one transaction: they share its sync.
//
//   joined-commits-1. What was asked for first is applied first, and what was asked for together stays together, in its
//       order. Each is answered for itself, as alone (ST4).
//   joined-commits-2. When storage cannot say what became of a transaction, everybody in it is told so: sending it
//       again is safe.
//   joined-commits-3. No transaction waits for another one here: which of them may be under way at once is storage's affair.
//
// It decides nothing, and knows no callers. Unlike the runtime's group committer it neither orders groups nor sends them again: whose
// changes it joins are strangers to each other, and storage orders what names the same.

import type { AgentStorage, Change, ChangeResult, Clock } from "@holdfast/core";

/** Apply changes now. @throws UnavailableError when it is not known whether they were applied. */
export type Commit = (changes: readonly Change[]) => Promise<readonly ChangeResult[]>;

export interface JoiningHost {
  readonly storage: AgentStorage;
  readonly clock: Clock;
  /** Runs a callback in a turn of its own after this one: `setImmediate`, or a simulator's. */
  readonly immediate: (callback: () => void) => void;
}

interface Asked {
  readonly changes: readonly Change[];
  readonly resolve: (results: readonly ChangeResult[]) => void;
  readonly reject: (error: unknown) => void;
}

export function joinCommits({ storage, clock, immediate }: JoiningHost): Commit {
  let waiting: Asked[] = [];
  const send = (): void => {
    const group = waiting;
    waiting = [];
    storage
      .commit(
        group.flatMap(({ changes }) => changes),
        clock.now(),
      )
      .then(
        (results) => {
          let from = 0;
          for (const { changes, resolve } of group) resolve(results.slice(from, (from += changes.length)));
        },
        (error: unknown) => {
          for (const { reject } of group) reject(error); // joined-commits-2.
        },
      );
  };
  return (changes) =>
    new Promise((resolve, reject) => {
      if (waiting.length === 0) immediate(send);
      waiting.push({ changes, resolve, reject });
    });
}
