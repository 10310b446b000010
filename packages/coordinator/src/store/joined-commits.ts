// `joinCommits` joins the commits that any number of requests make in one turn of the event loop into one
// transaction, which is synced once.
//
//   joined-commits-1. Commits are applied in the order of their requests, and the changes of one commit stay
//       together. Each commit gets its own results, as if it were alone (ST4).
//   joined-commits-2. When storage cannot say whether a transaction was applied, all of its commits are
//       rejected. Sending them again is safe.
//   - Transactions do not wait for each other here. Storage decides which of them may run at once.
//
// This file decides nothing, and knows no callers. Unlike the runtime's group committer, it neither orders
// groups nor sends them again. The joined changes come from unrelated callers, and storage orders changes to
// the same row.

import type { AgentStorage, Change, ChangeResult, Clock } from "@holdfast/core";

/** Applies changes now. @throws UnavailableError when it is not known whether they were applied. */
export type Commit = (changes: readonly Change[]) => Promise<readonly ChangeResult[]>;

export interface JoiningHost {
  readonly storage: AgentStorage;
  readonly clock: Clock;
  /** Calls a function in a later turn of the event loop: `setImmediate`, or a simulator's. */
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
