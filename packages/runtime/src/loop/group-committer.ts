// `GroupCommitter`: one transaction for all changes of one turn of the event loop, over all sessions of the
// process (K6).
//
//   group-committer-1. Changes with a common name are applied in the order in which they were submitted; each
//       has its own answer.
//   group-committer-2. One group is in flight at a time, and changes submitted meanwhile form the next. A
//       storage with `groupsMax` gets several groups at once if they have no name in common. Then no change
//       waits for an unrelated transaction.
//   - A group with an unknown result is sent again, unchanged: every change is safe to repeat (ST3, ST9,
//     ST13). The cost of a submission does not grow with the changes that wait while storage is away
//     (`key-queues.ts`). The exception are changes that were revised meanwhile.
//   - If storage fails (full, read-only, away for too long), every change of the group gets that error. No
//     change of it is applied, and the next group is sent as usual.
//   - In a hurry, as when its process ends, a group has `HURRIED_MS` for its answer, and no other group is
//     sent afterwards. This loses nothing: a claim that could not be released ends with its lease. The
//     callers of all other changes get the error that storage did not answer.
//   - `revise` replaces changes that are not stored yet. A change whose answer is under way is replaced
//     before it is sent again.

import { setImmediate } from "node:timers";
import {
  type AgentStorage,
  type Change,
  type ChangeResult,
  ChurnMap,
  type Clock,
  eachName,
  HoldfastError,
  toHoldfastError,
  UnavailableError,
} from "@holdfast/core";
import { NameLines } from "./key-queues.ts";
import { inNeutral } from "./neutral-context.ts";
import type { Immediate } from "./slice-loop.ts";

/** A change and its callbacks: exactly one of the two is called, exactly once. They must not throw. */
interface Submission {
  readonly change: Change;
  readonly onResult: (result: ChangeResult) => void;
  readonly onError: (error: HoldfastError) => void;
}

interface Queued extends Submission {
  change: Change;
  /** The place in the order of submission. */
  readonly number: number;
  readonly names: readonly string[];
}

/** A group that was sent to storage, until it is answered. */
interface Flight {
  readonly number: number;
  readonly group: readonly Queued[];
  failures: number;
  /** The last error. */
  error: HoldfastError | undefined;
  cancelRetry: () => void;
  cancelEnd: () => void;
}

const HURRIED_MS = 4_000;
const RETRY_DELAYS_MS = [5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 5_000, 5_000, 5_000, 5_000];

export class GroupCommitter {
  readonly #storage: AgentStorage;
  readonly #clock: Clock;
  readonly #immediate: Immediate;
  readonly #groupsMax: number;
  /** Changes with no name in common with a group in flight or an earlier change. */
  #free: Queued[] = [];
  /** The queues of all other changes. */
  readonly #lines = new NameLines<Queued>();
  #submitted = 0;
  /** The number of groups in flight. */
  #inFlight = 0;
  /** By the number of the first change. */
  readonly #flights = new ChurnMap<number, Flight>();
  #isHurried = false;
  #isGivenUp = false;
  #scheduled = false;
  readonly #idle: (() => void)[] = [];

  constructor(storage: AgentStorage, clock: Clock, immediate: Immediate = setImmediate) {
    this.#storage = storage;
    this.#clock = clock;
    this.#immediate = immediate;
    this.#groupsMax = storage.groupsMax ?? 1;
  }

  submit({ change, onResult, onError }: Submission): void {
    // With one group at a time the names are not needed.
    const names = this.#groupsMax === 1 ? NONE : namesOf(change);
    const queued = { change, onResult, onError, names, number: this.#submitted++ };
    // mutant: shared-names-in-flight
    if (this.#lines.enter(queued)) this.#free.push(queued);
    if (this.#scheduled || this.#inFlight === this.#groupsMax) return;
    this.#scheduled = true;
    this.#immediate(this.#flushInNeutral);
  }

  /** The same as a promise, for callers off the hot path. */
  commit(change: Change): Promise<ChangeResult> {
    return new Promise((onResult, onError) => this.submit({ change, onResult, onError }));
  }

  /** Send the changes that are free now. */
  readonly flush = (): void => {
    this.#scheduled = false;
    if (this.#inFlight === this.#groupsMax) return;
    const group = this.#free;
    this.#free = [];
    if (group.length > 0) {
      this.#inFlight++;
      this.#lines.take(group);
      this.#send(group);
    } else if (this.#inFlight === 0) {
      for (const resolve of this.#idle.splice(0)) resolve();
    }
  };

  /** The answers to a group are those of many requests, so no request's context is theirs. */
  readonly #flushInNeutral = inNeutral(this.flush);

  /** Resolves when nothing is waiting or in flight. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#idle.push(resolve);
      this.flush();
    });
  }

  /** `revised` answers the change that replaces a change, or the same one. */
  revise(revised: (change: Change) => Change): void {
    const groups = [...this.#flights].map(([, { group }]) => group);
    for (const queued of [...groups.flat(), ...this.#free, ...this.#lines.waiting()])
      queued.change = revised(queued.change);
  }

  hurry(): void {
    this.#isHurried = true;
    for (const [, flight] of this.#flights) this.#expectSoon(flight);
  }

  #send(group: readonly Queued[]): void {
    const flight: Flight = {
      number: group[0]!.number,
      group,
      failures: 0,
      error: undefined,
      cancelRetry: () => {},
      cancelEnd: () => {},
    };
    this.#flights.set(flight.number, flight);
    // A change that was not sent must not be sent late: another process may have resumed its session
    // meanwhile.
    if (this.#isGivenUp) return this.#giveUp(flight);
    if (this.#isHurried) this.#expectSoon(flight);
    this.#try(flight);
  }

  #try(flight: Flight): void {
    const { group } = flight;
    const changes = group.map((submission) => submission.change);
    this.#storage.commit(changes, this.#clock.now()).then(
      (results) => {
        this.#land(flight, ({ onResult, onError }, i) => {
          const result = results[i];
          if (result !== undefined) return onResult(result);
          const answered = `storage answered ${results.length} of ${group.length} changes`;
          onError(new HoldfastError("internal", answered));
        });
      },
      (thrown: unknown) => {
        const error = toHoldfastError(thrown);
        const delay = RETRY_DELAYS_MS[flight.failures++];
        // mutant: lost-answer-given-up
        if (error.code !== "storage_unavailable" || delay === undefined)
          return this.#land(flight, ({ onError }) => onError(error));
        if (!this.#flights.has(flight.number)) return;
        flight.error = error;
        // Its result is unknown, and every change is safe to repeat.
        flight.cancelRetry = this.#clock.setTimer(() => this.#try(flight), delay);
      },
    );
  }

  #expectSoon(flight: Flight): void {
    flight.cancelEnd = this.#clock.setTimer(() => {
      this.#isGivenUp = true;
      this.#giveUp(flight);
    }, HURRIED_MS);
  }

  #giveUp(flight: Flight): void {
    const error = flight.error ?? new UnavailableError("storage_unavailable", "storage does not answer");
    this.#land(flight, ({ onError }) => onError(error));
  }

  /** Answer the changes of a group. A late answer to a group that was given up is ignored. */
  #land(flight: Flight, answer: (submission: Submission, i: number) => void): void {
    if (!this.#flights.delete(flight.number)) return;
    const { group, cancelRetry, cancelEnd } = flight;
    cancelRetry();
    cancelEnd();
    this.#inFlight--;
    const freed = this.#lines.leave(group);
    if (freed.length > 0) this.#free = [...this.#free, ...freed].sort((a, b) => a.number - b.number); // group-committer-1.
    group.forEach(answer);
    this.flush();
  }
}

const NONE: readonly string[] = [];

function namesOf(change: Change): readonly string[] {
  const names = new Set<string>();
  eachName(change, (name) => names.add(name));
  return [...names];
}
