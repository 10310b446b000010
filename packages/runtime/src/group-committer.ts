// One transaction for everything that is ready in one turn of the event loop, over all sessions of the process (K6).
//
//   G1. Changes that name something in common are applied in the order they were submitted; each is answered alone.
//   G2. One group is in flight at a time; what is submitted meanwhile forms the next. A storage that says so is given more of them,
//       where they name nothing in common: nobody then waits for a transaction that does not concern it.
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
import { eachName } from "@holdfast/core/internal";
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
  readonly #groupsMax: number;
  #waiting: Submission[] = [];
  readonly #inFlight = new Set<readonly Submission[]>();
  #scheduled = false;
  readonly #idle: (() => void)[] = [];

  constructor(storage: AgentStorage, clock: Clock, immediate: Immediate = setImmediate) {
    this.#storage = storage;
    this.#clock = clock;
    this.#immediate = immediate;
    this.#groupsMax = storage.groupsMax ?? 1;
  }

  submit(submission: Submission): void {
    this.#waiting.push(submission);
    if (this.#scheduled || this.#inFlight.size === this.#groupsMax) return;
    this.#scheduled = true;
    this.#immediate(() => this.flush());
  }

  /** The same as a promise, for callers off the hot path. */
  commit(change: Change): Promise<ChangeResult> {
    return new Promise((onResult, onError) => this.submit({ change, onResult, onError }));
  }

  /** Send what is waiting now, as far as nothing in flight stands in its way. */
  readonly flush = (): void => {
    this.#scheduled = false;
    if (this.#inFlight.size === this.#groupsMax) return;
    const group = this.#take();
    if (group.length > 0) {
      this.#inFlight.add(group);
      this.#send(group, 0);
    } else if (this.#inFlight.size === 0) {
      for (const resolve of this.#idle.splice(0)) resolve();
    }
  };

  /** Resolves when nothing is waiting or in flight. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#idle.push(resolve);
      this.flush();
    });
  }

  /** What may be sent now, out of what is waiting (G1, G2). */
  #take(): readonly Submission[] {
    const waiting = this.#waiting;
    this.#waiting = [];
    if (this.#inFlight.size === 0) return waiting;
    const before = new Set<string>();
    for (const group of this.#inFlight)
      for (const { change } of group) eachName(change, (name) => before.add(name));
    return waiting.filter((submission) => {
      let isFree = true;
      eachName(submission.change, (name) => {
        if (before.has(name)) isFree = false;
      });
      if (isFree) return true;
      this.#waiting.push(submission);
      eachName(submission.change, (name) => before.add(name));
      return false;
    });
  }

  #send(group: readonly Submission[], failures: number): void {
    const changes = group.map((submission) => submission.change);
    this.#storage.commit(changes, this.#clock.now()).then(
      (results) => {
        this.#inFlight.delete(group);
        group.forEach(({ onResult, onError }, i) => {
          const result = results[i];
          if (result !== undefined) return onResult(result);
          const answered = `storage answered ${results.length} of ${group.length} changes`;
          onError(new HoldfastError("internal", answered));
        });
        this.flush();
      },
      (thrown: unknown) => {
        const error = toHoldfastError(thrown);
        const delay = RETRY_DELAYS_MS[failures];
        if (error.code === "storage_unavailable" && delay !== undefined) {
          this.#clock.setTimer(() => this.#send(group, failures + 1), delay); // G3.
          return;
        }
        this.#inFlight.delete(group);
        for (const { onError } of group) onError(error); // G4.
        this.flush();
      },
    );
  }
}
