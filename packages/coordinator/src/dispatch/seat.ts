// One runner at this coordinator: the poll that waits, what was answered and is not acknowledged, what it is still to be told.
//
//   seat-1. The same poll id gets the same answer, however often it is asked; without the claims that were given back
//       meanwhile.
//   seat-2. What a poll was answered is acknowledged by the next one that names it, a claim also by any use of it. What
//       the next poll does not name did not arrive: claims are given back at once, arrivals and commands are told
//       again.
//   seat-3. A command is told with every answer until the runner says that it has heard it.
//   seat-4. One poll of a runner waits at a time: a new one ends the one before it, empty, and tells what that one
//       would have.
//   seat-5. A poll that arrives after a later one of its process was left by its runner: nothing is told to it, and
//       nothing follows from it.
//   seat-6. That it drains is stored, and told by every coordinator that it polls: the one that was asked may be
//       another, or be gone. Once it is not stored any more, as it has left and come back, nobody tells it.
//
// It gives nothing and releases nothing itself: it says what is to be given back.

import type { Session } from "@holdfast/core";
import type { OfferedAgent } from "../store/registry.ts";

export interface GivenClaim {
  readonly sessionId: string;
  readonly token: number;
  /** When it was asked for, by a clock that does not jump. */
  readonly askedAt: number;
  readonly leaseMs: number;
  /** What the session's row said when it was given. */
  readonly asGiven: Pick<Session, "nextSeq" | "updatedAt">;
  /** A `SessionSnapshot` as the storage port has it in JSON. */
  readonly snapshot: string;
}

export interface RunnerCommand {
  readonly commandId: string;
  readonly type: "stop" | "drain";
  readonly sessionId?: string;
}

/** Twice is once, so all of them are the same one. */
export const DRAIN: RunnerCommand = { commandId: "drain", type: "drain" };

export interface PollAnswer {
  readonly pollId: string;
  readonly claims: readonly GivenClaim[];
  readonly arrivals: readonly { readonly sessionId: string; readonly awaited: boolean }[];
  readonly commands: readonly RunnerCommand[];
}

export interface PollRequest {
  readonly runnerId: string;
  readonly pollId: string;
  /** Of the process that polls, and the poll's place among its polls (seat-5). */
  readonly process?: string;
  readonly number?: number;
  readonly ackPollId?: string;
  readonly ackCommandIds: readonly string[];
  readonly free: number;
  readonly agents: readonly OfferedAgent[];
  readonly taskKinds: readonly string[];
  readonly waitMs: number;
}

/** A poll that waits. */
export interface WaitingPoll {
  readonly pollId: string;
  readonly free: number;
  readonly since: number;
  answer(claims: readonly GivenClaim[]): void;
}

export class Seat {
  readonly runnerId: string;
  /** By the clock of `heardAt`. */
  readonly madeAt: number;
  waiting: WaitingPoll | undefined;
  /** When it last polled or renewed, by a clock that never goes back. */
  heardAt = -Infinity;
  readonly #arrivals = new Map<string, boolean>();
  readonly #commands = new Map<string, RunnerCommand>();
  /** seat-6. */
  #knowsToDrain = false;
  /** Of the last answer, what is not acknowledged. */
  #unacknowledged = new Map<string, GivenClaim>();
  #toldArrivals = new Map<string, boolean>();
  #last: { readonly pollId: string; readonly answer: Promise<PollAnswer> } | undefined;
  #newest: { readonly process: string; readonly number: number } | undefined;

  constructor(runnerId: string, madeAt: number) {
    this.runnerId = runnerId;
    this.madeAt = madeAt;
  }

  /** Whether there is something to tell besides claims. */
  get hasNews(): boolean {
    return this.#arrivals.size > 0 || this.#commands.size > 0;
  }

  /** seat-1. */
  answerOf(pollId: string): Promise<PollAnswer> | undefined {
    return this.#last?.pollId === pollId ? this.#last.answer : undefined;
  }

  /** seat-5. Whether a later poll of the process has come; otherwise this is the latest. */
  isOvertaken({ process, number }: Pick<PollRequest, "process" | "number">): boolean {
    if (process === undefined || number === undefined) return false;
    if (this.#newest?.process === process && number < this.#newest.number) return true;
    this.#newest = { process, number };
    return false;
  }

  /** seat-2. A poll has come. @returns the claims that did not arrive, to be given back. */
  acknowledge({
    ackPollId,
    ackCommandIds,
  }: Pick<PollRequest, "ackPollId" | "ackCommandIds">): readonly GivenClaim[] {
    for (const commandId of ackCommandIds) this.#commands.delete(commandId);
    if (ackCommandIds.includes(DRAIN.commandId)) this.#knowsToDrain = true; // Whoever told it.
    if (this.#last === undefined || ackPollId === this.#last.pollId) {
      this.#unacknowledged.clear();
      this.#toldArrivals.clear();
      return [];
    }
    this.#tellAgain();
    const lost = [...this.#unacknowledged.values()];
    this.#unacknowledged.clear();
    return lost;
  }

  /** Begin to wait (seat-4). The answer is what a repeated poll gets, too. */
  wait(pollId: string, free: number, since: number): Promise<PollAnswer> {
    this.waiting?.answer([]);
    this.#tellAgain(); // What that answer said nobody hears.
    const { promise, resolve } = Promise.withResolvers<PollAnswer>();
    const waiting: WaitingPoll = {
      pollId,
      free,
      since,
      answer: (claims) => {
        if (this.waiting !== waiting) return; // What it was answered stands, and so does what is to be acknowledged of it.
        this.waiting = undefined;
        resolve(this.#makeAnswer(pollId, claims));
      },
    };
    this.#last = { pollId, answer: promise };
    this.waiting = waiting;
    return promise;
  }

  /** A claim was used, or the runner says that it holds it. */
  used(sessionId: string): void {
    this.#unacknowledged.delete(sessionId);
  }

  /** Claims of this answer that nobody acknowledged. @returns them, to be given back. */
  expire(pollId: string): readonly GivenClaim[] {
    if (this.#last?.pollId !== pollId) return [];
    const lost = [...this.#unacknowledged.values()];
    this.#unacknowledged.clear();
    // Whoever asks again gets what is still so (seat-1).
    const answer = this.#last.answer.then((told) => ({
      ...told,
      claims: told.claims.filter((claim) => !lost.includes(claim)),
    }));
    this.#last = { pollId, answer };
    return lost;
  }

  arrived(sessionId: string, awaited: boolean): void {
    this.#arrivals.set(sessionId, awaited || this.#arrivals.get(sessionId) === true);
  }

  command(command: RunnerCommand): void {
    this.#commands.set(command.commandId, command);
  }

  /** seat-6. Whether it drains, as it is stored: it may have been asked for since it began to wait. */
  drains(isSo: boolean): boolean {
    if (isSo && !this.#knowsToDrain) this.command(DRAIN);
    if (isSo) return true;
    this.#knowsToDrain = false;
    this.#commands.delete(DRAIN.commandId);
    return false;
  }

  #tellAgain(): void {
    for (const [sessionId, awaited] of this.#toldArrivals) this.arrived(sessionId, awaited);
    this.#toldArrivals.clear();
  }

  #makeAnswer(pollId: string, claims: readonly GivenClaim[]): PollAnswer {
    const answer = {
      pollId,
      claims,
      arrivals: [...this.#arrivals].map(([sessionId, awaited]) => ({ sessionId, awaited })),
      commands: [...this.#commands.values()], // seat-3.
    };
    this.#unacknowledged = new Map(claims.map((claim) => [claim.sessionId, claim]));
    this.#toldArrivals = new Map(this.#arrivals);
    this.#arrivals.clear();
    return answer;
  }
}
