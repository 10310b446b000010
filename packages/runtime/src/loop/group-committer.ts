// One transaction for everything that is ready in one turn of the event loop, over all sessions of the process (K6).
//
//   group-committer-1. Changes that name something in common are applied in the order they were submitted; each is
//       answered alone.
//   group-committer-2. One group is in flight at a time; what is submitted meanwhile forms the next. A storage that
//       says so is given more of them, where they name nothing in common: nobody then waits for a transaction that does
//       not concern it.
//   group-committer-3. A group whose fate is unknown is sent again, unchanged: every change is safe to repeat (ST3,
//       ST9, ST13). However much waits while storage is away, what is submitted then costs the same (`key-queues.ts`).
//   group-committer-4. When storage cannot take it (full, read-only, gone for too long) every change of the group is
//       answered with that error; nothing is half-done, and the next group is tried afresh.
//   group-committer-5. In a hurry, as when its process ends, a group has `HURRIED_MS` to be taken, and no other one is
//       sent after that. Nothing is lost by it: what a claim's end would have told storage it knows when the claim has
//       run out, and who asked for anything else is told that storage did not answer.

import {
  HoldfastError,
  toHoldfastError,
  UnavailableError,
  type AgentStorage,
  type Change,
  type ChangeResult,
  type Clock,
} from "@holdfast/core";
import { eachName } from "@holdfast/core/internal";
import { NameLines } from "./key-queues.ts";
import type { Immediate } from "./slice-loop.ts";

/** Exactly one of the two is called, exactly once. Must not throw. */
interface Submission {
  readonly change: Change;
  readonly onResult: (result: ChangeResult) => void;
  readonly onError: (error: HoldfastError) => void;
}

interface Queued extends Submission {
  /** In the order they came. */
  readonly number: number;
  readonly names: readonly string[];
}

/** A group that is given to storage, until it is answered. */
interface Flight {
  readonly group: readonly Queued[];
  failures: number;
  /** The last one. */
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
  /** Nothing in flight, and nothing that came before, stands in their way. */
  #free: Queued[] = [];
  /** Of all the others. */
  readonly #lines = new NameLines<Queued>();
  #submitted = 0;
  /** How many groups. */
  #inFlight = 0;
  readonly #flights = new Set<Flight>();
  #isHurried = false;
  /** group-committer-5. */
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
    // One group at a time is in nobody's way.
    const names = this.#groupsMax === 1 ? NONE : namesOf(change);
    const queued = { change, onResult, onError, names, number: this.#submitted++ };
    if (this.#lines.enter(queued)) this.#free.push(queued);
    if (this.#scheduled || this.#inFlight === this.#groupsMax) return;
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

  /** Resolves when nothing is waiting or in flight. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#idle.push(resolve);
      this.flush();
    });
  }

  /** group-committer-5. */
  hurry(): void {
    this.#isHurried = true;
    for (const flight of this.#flights) this.#expectSoon(flight);
  }

  #send(group: readonly Queued[]): void {
    const flight: Flight = {
      group,
      failures: 0,
      error: undefined,
      cancelRetry: () => {},
      cancelEnd: () => {},
    };
    this.#flights.add(flight);
    // What storage was not given has not been done, and does not come late: another process may have gone on since it was asked for.
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
        if (error.code !== "storage_unavailable" || delay === undefined)
          return this.#land(flight, ({ onError }) => onError(error)); // group-committer-4.
        if (!this.#flights.has(flight)) return;
        flight.error = error;
        flight.cancelRetry = this.#clock.setTimer(() => this.#try(flight), delay); // group-committer-3.
      },
    );
  }

  /** group-committer-5. */
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

  /** What is answered after it was given up is told to nobody. */
  #land(flight: Flight, tell: (submission: Submission, i: number) => void): void {
    if (!this.#flights.delete(flight)) return;
    const { group, cancelRetry, cancelEnd } = flight;
    cancelRetry();
    cancelEnd();
    this.#inFlight--;
    const freed = this.#lines.leave(group);
    if (freed.length > 0) this.#free = [...this.#free, ...freed].sort((a, b) => a.number - b.number); // group-committer-1.
    group.forEach(tell);
    this.flush();
  }
}

const NONE: readonly string[] = [];

function namesOf(change: Change): readonly string[] {
  const names = new Set<string>();
  eachName(change, (name) => names.add(name));
  return [...names];
}
