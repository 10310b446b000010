// Asks the coordinator for work, for ever.
//
// One poll at a time. *Polling*: a poll waits at the coordinator, which answers as soon as there is something. *Away*: the
// coordinator cannot be reached; the same poll is sent again, with growing pauses. *Over*: stopped, or refused for good.
//
//   poll-loop-1. A poll whose answer was lost is sent again under its id, and so gets the same answer; the next one
//       acknowledges it.
//   poll-loop-2. A poll that asked for nothing, because all slots were taken, is left for a new one when a slot is
//       free, also between two tries of it. What it may have been answered is told again, because it is never
//       acknowledged.
//   poll-loop-3. It never ends because nobody answers, or because something on the way there is set up wrong.
//   poll-loop-4. Polls are numbered in their order, so that one that was left and arrives late is known to be.
//   poll-loop-5. A poll that offered slots is left for a new one when the runner takes no more. Claims that it may have
//       been answered are given back by the coordinator, because they are never acknowledged.
//
// It knows no sessions: it says what it was told.

import { HoldfastError, toHoldfastError, type Clock, type Random } from "@holdfast/core";

const PAUSE_MIN_MS = 250;
const PAUSE_MAX_MS = 10_000;

export interface Poll {
  readonly pollId: string;
  /** poll-loop-4. */
  readonly number: number;
  readonly ackPollId: string | undefined;
  readonly ackCommandIds: readonly string[];
  readonly free: number;
}

export interface Command {
  readonly commandId: string;
  readonly type: string;
  readonly sessionId?: string | undefined;
}

export interface PollLoopHost<Answer> {
  readonly clock: Clock;
  readonly random: Random;
  newId(): string;
  free(): number;
  /** @throws HoldfastError */
  poll(poll: Poll, signal: AbortSignal): Promise<Answer>;
  /** Act on an answer, at once. @returns the commands that were heard. Must not throw. */
  take(answer: Answer): readonly string[];
  /** The coordinator does not know us any more. @throws HoldfastError */
  register(): Promise<void>;
  lost(error: HoldfastError): void;
  back(): void;
  /** No waiting helps. Called at most once. */
  refused(error: HoldfastError): void;
}

/** Errors that a coordinator which is there, and reached, gives another time. */
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
  #heard: readonly string[] = [];
  #last: string | undefined;
  #isAway = false;
  /** How often it was registered again for the poll under way. */
  #takenIn = 0;
  #loop: Promise<void> | undefined;

  constructor(host: PollLoopHost<Answer>) {
    this.#host = host;
  }

  start(): void {
    this.#loop ??= this.#run();
  }

  /** poll-loop-2. There may be a free slot. */
  slotFreed(): void {
    if (this.#under?.free === 0 && this.#host.free() > 0) this.#under.controller.abort();
  }

  /** poll-loop-5. There are no free slots any more: `free` gives 0 from now on. */
  withdraw(): void {
    if (this.#under !== undefined && this.#under.free > 0) this.#under.controller.abort();
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
        ackCommandIds: this.#heard,
        free: this.#host.free(),
      };
      const answer = await this.#ask(poll);
      if (answer === "over") return;
      if (answer === "left") continue;
      this.#last = poll.pollId;
      this.#heard = this.#host.take(answer.answer);
    }
  }

  /** poll-loop-1, poll-loop-3. */
  async #ask(poll: Poll): Promise<{ readonly answer: Answer } | "left" | "over"> {
    const { signal } = this.#controller;
    this.#takenIn = 0;
    for (let failures = 0; ; failures++) {
      if (failures > 0 && (poll.free === 0) !== (this.#host.free() === 0)) return "left"; // poll-loop-2, poll-loop-5.
      const controller = new AbortController();
      this.#under = { free: poll.free, controller };
      try {
        const answer = await this.#host.poll(poll, controller.signal);
        if (this.#isAway) this.#host.back();
        this.#isAway = false;
        // Left and answered at once: nobody may act on what is told again.
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

  /** Whether to go on. */
  async #waitOut(error: HoldfastError, failures: number): Promise<boolean> {
    const { clock, random } = this.#host;
    let problem: HoldfastError | undefined = error;
    if (error.code === "runner_not_found") problem = await this.#registerAgain();
    // Who was taken in before this, and is not known all the same, waits as well.
    if (problem === undefined && this.#takenIn++ === 0) return true;
    // Whoever was let in before is called by another name now, by a proxy that is being set up; it is not this runner that is refused.
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

/** Somewhere between half of it and all of it: those that were cut off together do not come back together. */
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
