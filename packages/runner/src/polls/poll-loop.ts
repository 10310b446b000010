// `PollLoop` asks the coordinator for work until it is stopped or refused.
//
// There is one poll at a time. *Polling*: a poll waits at the coordinator, which answers as soon as it has
// something to send. *Away*: the coordinator cannot be reached, and the loop sends the same poll again after
// growing pauses. *Over*: the loop was stopped or refused for good.
//
//   - A poll whose answer was lost is sent again under its id and gets the same answer. The next poll
//     acknowledges that answer.
//   - A poll that asked for nothing, because all slots were taken, is replaced when a slot becomes free, also
//     between two tries. Its answer was never acknowledged, so the coordinator sends the content again.
//   - The loop does not end because the coordinator is silent, or because a proxy on the way is
//     misconfigured.
//   - Polls are numbered in order, so that the coordinator recognises a late poll that was already replaced.
//   - A poll that offered slots is replaced when the runner stops taking sessions. The coordinator takes back
//     the claims of its answer, because they are never acknowledged.
//
// The loop knows no sessions. It passes on the answers.

import { HoldfastError, toHoldfastError, type Clock, type Random } from "@holdfast/core";

const PAUSE_MIN_MS = 250;
const PAUSE_MAX_MS = 10_000;

export interface Poll {
  readonly pollId: string;
  readonly number: number;
  readonly ackPollId: string | undefined;
  readonly ackCommandIds: readonly string[];
  readonly free: number;
}

export interface Command {
  readonly commandId: string;
  readonly type: string;
  readonly sessionId?: string | undefined;
  /** JSON. */
  readonly arguments?: Uint8Array | undefined;
}

export interface PollLoopHost<Answer> {
  readonly clock: Clock;
  readonly random: Random;
  newId(): string;
  free(): number;
  /** @throws HoldfastError */
  poll(poll: Poll, signal: AbortSignal): Promise<Answer>;
  /** Acts on an answer at once. @returns the ids of the commands that were received. Must not throw. */
  take(answer: Answer): readonly string[];
  /** Registers again, because the coordinator no longer knows this runner. @throws HoldfastError */
  register(): Promise<void>;
  lost(error: HoldfastError): void;
  back(): void;
  /** The coordinator refused for good. Called at most once. */
  refused(error: HoldfastError): void;
}

/** Errors of a reachable coordinator that pass with time. */
const PASSING: ReadonlySet<string> = new Set([
  "storage_unavailable",
  "storage_full",
  "storage_readonly",
  "storage_lost",
  "internal",
]);

export function isPassing({ code }: HoldfastError): boolean {
  return PASSING.has(code);
}

export class PollLoop<Answer> {
  readonly #host: PollLoopHost<Answer>;
  readonly #controller = new AbortController();
  #under: { readonly free: number; readonly controller: AbortController } | undefined;
  #received: readonly string[] = [];
  #last: string | undefined;
  #isAway = false;
  /** How often the runner was registered again during the current poll. */
  #takenIn = 0;
  #loop: Promise<void> | undefined;

  constructor(host: PollLoopHost<Answer>) {
    this.#host = host;
  }

  start(): void {
    this.#loop ??= this.#run();
  }

  /** A slot may have become free. */
  slotFreed(): void {
    if (this.#under?.free === 0 && this.#host.free() > 0) this.#under.controller.abort();
  }

  /** There are no free slots any more: `free` returns 0 from now on. */
  withdraw(): void {
    if (this.#under !== undefined && this.#under.free > 0) this.#under.controller.abort();
  }

  /** Replaces the poll that waits, because the next one says something else. Its answer is not acted on. */
  replace(): void {
    this.#under?.controller.abort();
  }

  async stop(): Promise<void> {
    this.#controller.abort();
    this.#under?.controller.abort();
    await this.#loop;
  }

  async #run(): Promise<void> {
    const { signal } = this.#controller;
    for (let number = 1; !signal.aborted; number++) {
      const poll: Poll = {
        pollId: this.#host.newId(),
        number,
        ackPollId: this.#last,
        ackCommandIds: this.#received,
        free: this.#host.free(),
      };
      const answer = await this.#ask(poll);
      if (answer === "over") return;
      if (answer === "left") continue;
      this.#last = poll.pollId;
      this.#received = this.#host.take(answer.answer);
    }
  }

  async #ask(poll: Poll): Promise<{ readonly answer: Answer } | "left" | "over"> {
    const { signal } = this.#controller;
    this.#takenIn = 0;
    for (let failures = 0; ; failures++) {
      // The poll asked for another number of sessions than are wanted now.
      if (failures > 0 && (poll.free === 0) !== (this.#host.free() === 0)) return "left";
      const controller = new AbortController();
      this.#under = { free: poll.free, controller };
      try {
        const answer = await this.#host.poll(poll, controller.signal);
        if (this.#isAway) this.#host.back();
        this.#isAway = false;
        // The poll was replaced in the instant of its answer. The coordinator sends the content again, so it
        // must not be acted on now.
        // mutant: left-poll-acted-on
        return controller.signal.aborted ? "left" : { answer };
      } catch (thrown) {
        if (signal.aborted) return "over";
        if (controller.signal.aborted) return "left";
        if (!(await this.#waitOut(toHoldfastError(thrown), failures))) return "over";
      } finally {
        this.#under = undefined;
      }
    }
  }

  /** Waits after a failure. @returns whether to continue. */
  async #waitOut(error: HoldfastError, failures: number): Promise<boolean> {
    const { clock, random } = this.#host;
    let problem: HoldfastError | undefined = error;
    if (error.code === "runner_not_found") problem = await this.#registerAgain();
    // A runner that registered again during this poll and is still unknown waits like after any other
    // failure.
    if (problem === undefined && this.#takenIn++ === 0) return true;
    // The host name is refused, not this runner: a proxy that is being set up uses another name for the
    // coordinator.
    if (problem !== undefined && !isPassing(problem) && problem.code !== "forbidden_origin") {
      this.#host.refused(problem);
      return false;
    }
    if (problem !== undefined && !this.#isAway) {
      this.#isAway = true;
      this.#host.lost(problem);
    }
    await pause(pauseMs(failures, random), clock, this.#controller.signal);
    return !this.#controller.signal.aborted;
  }

  async #registerAgain(): Promise<HoldfastError | undefined> {
    try {
      await this.#host.register();
      return undefined;
    } catch (thrown) {
      return toHoldfastError(thrown);
    }
  }
}

/**
 * A random pause between half and all of the full one, so that runners that lost contact together do not
 * return together.
 */
export function pauseMs(failures: number, random: Random): number {
  const full = Math.min(PAUSE_MAX_MS, PAUSE_MIN_MS * 2 ** failures);
  return full / 2 + (full / 2) * (random.u32() / 0x1_0000_0000);
}

export function pause(ms: number, clock: Clock, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      cancel();
      signal.removeEventListener("abort", done);
      resolve();
    };
    const cancel = clock.setTimer(done, ms);
    signal.addEventListener("abort", done);
  });
}
