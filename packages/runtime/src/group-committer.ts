// One transaction for everything that is ready in one turn of the event loop, over all sessions of the process (K6).
//
//   G1. Changes are applied in the order they were submitted; each is answered alone.
//   G2. One group is in flight at a time; what is submitted meanwhile forms the next.
//   G3. A group whose fate is unknown is sent again, unchanged: every change is safe to repeat (ST3, ST9, ST13).
//   G4. When storage cannot take it (full, read-only, gone for too long) every change of the group is answered with that
//       error; nothing is half-done, and the next group is tried afresh.

import {
  HoldfastError,
  toHoldfastError,
  type AgentStorage,
  type Change,
  type ChangeResult,
  type Clock,
} from "@holdfast/core";
import type { Immediate } from "./slice-loop.ts";

/** Exactly one of the two is called, exactly once. Must not throw. */
interface Submission {
  readonly change: Change;
  readonly onResult: (result: ChangeResult) => void;
  readonly onError: (error: HoldfastError) => void;
}

const RETRY_DELAYS_MS = [5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 5_000, 5_000, 5_000, 5_000];

export class GroupCommitter {
  readonly #storage: AgentStorage;
  readonly #clock: Clock;
  readonly #immediate: Immediate;
  #waiting: Submission[] = [];
  #inFlight = false;
  #scheduled = false;
  readonly #idle: (() => void)[] = [];

  constructor(storage: AgentStorage, clock: Clock, immediate: Immediate = setImmediate) {
    this.#storage = storage;
    this.#clock = clock;
    this.#immediate = immediate;
  }

  submit(submission: Submission): void {
    this.#waiting.push(submission);
    if (this.#scheduled || this.#inFlight) return;
    this.#scheduled = true;
    this.#immediate(() => this.flush());
  }

  /** The same as a promise, for callers off the hot path. */
  commit(change: Change): Promise<ChangeResult> {
    return new Promise((onResult, onError) => this.submit({ change, onResult, onError }));
  }

  /** Send what is waiting now, unless a group is in flight. */
  readonly flush = (): void => {
    this.#scheduled = false;
    if (this.#inFlight) return;
    if (this.#waiting.length === 0) {
      for (const resolve of this.#idle.splice(0)) resolve();
      return;
    }
    const group = this.#waiting;
    this.#waiting = [];
    this.#inFlight = true;
    this.#send(group, 0);
  };

  /** Resolves when nothing is waiting or in flight. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#idle.push(resolve);
      this.flush();
    });
  }

  #send(group: readonly Submission[], failures: number): void {
    const changes = group.map((submission) => submission.change);
    this.#storage.commit(changes, this.#clock.now()).then(
      (results) => this.#answer(group, results),
      (thrown: unknown) => {
        const error = toHoldfastError(thrown);
        const delay = RETRY_DELAYS_MS[failures];
        if (error.code === "storage_unavailable" && delay !== undefined) {
          this.#clock.setTimer(() => this.#send(group, failures + 1), delay); // G3.
          return;
        }
        this.#inFlight = false;
        for (const { onError } of group) onError(error); // G4.
        this.flush();
      },
    );
  }

  #answer(group: readonly Submission[], results: readonly ChangeResult[]): void {
    this.#inFlight = false;
    group.forEach(({ onResult, onError }, i) => {
      const result = results[i];
      if (result === undefined)
        onError(
          new HoldfastError("internal", `storage answered ${results.length} of ${group.length} changes`),
        );
      else onResult(result);
    });
    this.flush();
  }
}
