// `Poller` is one runner at this coordinator: its waiting poll, its unacknowledged answer, and the news to
// send it.
//
//   poller-1. A repeated poll id gets the same answer, without the claims that were released since.
//   poller-2. A poll acknowledges the answer that it names. Any use of a claim acknowledges that claim. An
//       answer that the next poll does not name did not arrive. Its claims are released at once, and its
//       arrivals and commands are sent again.
//   poller-3. A command is sent with every answer until the runner acknowledges it.
//   poller-4. One poll of a runner waits at a time. A new poll ends the waiting one with an empty answer, and
//       takes over its news.
//   poller-5. A poll that arrives after a later one of its process was replaced by its runner. It gets
//       nothing and changes nothing.
//   poller-6. Draining is stored, and every coordinator that the runner polls sends the command. The
//       coordinator that was asked to drain the runner may be another one, or be gone. The command ends when
//       the flag is removed because the runner left and came back.
//
// A poller gives and releases nothing itself. It returns the claims that must be released.

import type { Clock, Session } from "@holdfast/core";
import type { OfferedAgent } from "../store/registry.ts";
import type { Candidate } from "./rules.ts";

export interface GivenClaim {
  readonly sessionId: string;
  readonly token: number;
  /** As in `ClaimResult`. */
  readonly before: number | undefined;
  /** When the claim was requested, by a clock that does not jump. */
  readonly askedAt: number;
  readonly leaseMs: number;
  /** Fields of the session's row when the claim was given. */
  readonly asGiven: Pick<Session, "nextSeq" | "updatedAt">;
  /** Whether another runner takes the session back if it diverges from this runner's code. */
  readonly mayReturn: boolean;
  /** A `SessionSnapshot` in the JSON of the storage port. */
  readonly snapshot: string;
}

export interface RunnerCommand {
  readonly commandId: string;
  readonly type: "stop" | "drain" | "try" | "read_work" | "merge_work";
  readonly sessionId?: string;
  /** JSON. */
  readonly arguments?: Uint8Array<ArrayBuffer>;
}

/** A constant id makes repeated drain commands the same command. */
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
  /** The process that polls, and the poll's place among its polls (poller-5). */
  readonly process?: string;
  readonly number?: number;
  readonly ackPollId?: string;
  readonly ackCommandIds: readonly string[];
  readonly free: number;
  readonly agents: readonly OfferedAgent[];
  readonly taskKinds: readonly string[];
  readonly waitMs: number;
  /** The sessions that a superseded runner keeps. Absent for any other runner. */
  readonly kept?: readonly KeptSession[];
  /** Whether the runner starts a process for trials when it is asked (rules-6). */
  readonly startsTrials?: boolean;
}

/** How long a runner may take to start a process for a suspect before it is asked again. */
const TRIAL_AGAIN_MS = 30_000;

/** A session that a superseded runner keeps, and the length of its journal after the runner's last commit. */
export interface KeptSession {
  readonly sessionId: string;
  readonly nextSeq: number;
}

/** A poll that waits. */
export interface WaitingPoll {
  readonly pollId: string;
  readonly free: number;
  readonly since: number;
  answer(claims: readonly GivenClaim[]): void;
}

export class Poller {
  readonly runnerId: string;
  /** By the clock of `lastSeenAt`. */
  readonly madeAt: number;
  waiting: WaitingPoll | undefined;
  /** When it last polled or renewed, by a clock that never goes back. */
  lastSeenAt = -Infinity;
  /** The sessions that this runner keeps, if it is superseded. */
  kept: ReadonlySet<string> | undefined;
  /** The step that blocks its event loop. */
  blockedBy: string | undefined;
  /** Whether it starts a process for trials when it is asked. */
  startsTrials = false;
  /** The trials that it was asked for, each with the time. */
  readonly #trials = new Map<string, number>();
  readonly #arrivals = new Map<string, boolean>();
  readonly #commands = new Map<string, RunnerCommand>();
  /** poller-6. */
  #knowsToDrain = false;
  /** The claims of the last answer that are not acknowledged. */
  #unacknowledged = new Map<string, GivenClaim>();
  #sentArrivals = new Map<string, boolean>();
  #last: { readonly pollId: string; readonly answer: Promise<PollAnswer> } | undefined;
  #newest: { readonly process: string; readonly number: number } | undefined;

  constructor(runnerId: string, madeAt: number) {
    this.runnerId = runnerId;
    this.madeAt = madeAt;
  }

  /** Whether there is something to send besides claims. */
  get hasNews(): boolean {
    return this.#arrivals.size > 0 || this.#commands.size > 0;
  }

  /** poller-1. */
  answerOf(pollId: string): Promise<PollAnswer> | undefined {
    return this.#last?.pollId === pollId ? this.#last.answer : undefined;
  }

  /** poller-5. Whether a later poll of the process has come. If not, this poll is noted as the latest. */
  isOvertaken({ process, number }: Pick<PollRequest, "process" | "number">): boolean {
    if (process === undefined || number === undefined) return false;
    // mutant: late-poll-accepted
    if (this.#newest?.process === process && number < this.#newest.number) return true;
    this.#newest = { process, number };
    return false;
  }

  /**
   * poller-2. Takes the acknowledgement of a new poll. @returns the claims that did not arrive, for release.
   */
  acknowledge({
    ackPollId,
    ackCommandIds,
  }: Pick<PollRequest, "ackPollId" | "ackCommandIds">): readonly GivenClaim[] {
    for (const commandId of ackCommandIds) this.#commands.delete(commandId);
    if (ackCommandIds.includes(DRAIN.commandId)) this.#knowsToDrain = true; // Any coordinator may have sent it.
    if (this.#last === undefined || ackPollId === this.#last.pollId) {
      this.#unacknowledged.clear();
      this.#sentArrivals.clear();
      return [];
    }
    this.#sendAgain();
    const lost = [...this.#unacknowledged.values()];
    this.#unacknowledged.clear();
    return lost;
  }

  /** Begins to wait (poller-4). A repeat of the poll gets the same answer. */
  wait(pollId: string, free: number, since: number): Promise<PollAnswer> {
    this.waiting?.answer([]);
    this.#sendAgain(); // The runner ignores the answer to a poll that it replaced.
    const { promise, resolve } = Promise.withResolvers<PollAnswer>();
    const waiting: WaitingPoll = {
      pollId,
      free,
      since,
      answer: (claims) => {
        if (this.waiting !== waiting) return; // The poll is answered already.
        this.waiting = undefined;
        resolve(this.#makeAnswer(pollId, claims));
      },
    };
    this.#last = { pollId, answer: promise };
    this.waiting = waiting;
    return promise;
  }

  /** Notes that a claim was used, or that the runner named it when it renewed. */
  used(sessionId: string): void {
    this.#unacknowledged.delete(sessionId);
  }

  /** Expires the unacknowledged claims of this answer. @returns them, for release. */
  expire(pollId: string): readonly GivenClaim[] {
    if (this.#last?.pollId !== pollId) return [];
    const lost = [...this.#unacknowledged.values()];
    this.#unacknowledged.clear();
    // A repeated poll gets the answer without them (poller-1).
    const answer = this.#last.answer.then((sent) => ({
      ...sent,
      // mutant: lost-claims-repeated
      claims: sent.claims.filter((claim) => !lost.includes(claim)),
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

  /** Sends a command no longer. @returns whether it was not acknowledged yet. */
  withdraw(commandId: string): boolean {
    return this.#commands.delete(commandId);
  }

  /** Asks the runner to start a process for a suspect, unless it was asked just now. */
  wantTrial({ sessionId, losses = 0 }: Pick<Candidate, "sessionId" | "losses">, now: number): void {
    const commandId = `try:${sessionId}:${losses}`;
    for (const [asked, at] of this.#trials) if (now - at >= TRIAL_AGAIN_MS) this.#trials.delete(asked);
    if (this.#trials.has(commandId)) return;
    this.#trials.set(commandId, now);
    this.command({ commandId, type: "try", sessionId });
  }

  /**
   * poller-6. Whether the runner drains, as storage says: the flag may have been set after the poll began to
   * wait.
   */
  drains(isSo: boolean): boolean {
    if (isSo && !this.#knowsToDrain) this.command(DRAIN);
    if (isSo) return true;
    this.#knowsToDrain = false;
    this.#commands.delete(DRAIN.commandId);
    return false;
  }

  #sendAgain(): void {
    // mutant: arrivals-not-resent
    for (const [sessionId, awaited] of this.#sentArrivals) this.arrived(sessionId, awaited);
    this.#sentArrivals.clear();
  }

  #makeAnswer(pollId: string, claims: readonly GivenClaim[]): PollAnswer {
    const answer = {
      pollId,
      claims,
      arrivals: [...this.#arrivals].map(([sessionId, awaited]) => ({ sessionId, awaited })),
      commands: [...this.#commands.values()], // poller-3.
    };
    this.#unacknowledged = new Map(claims.map((claim) => [claim.sessionId, claim]));
    this.#sentArrivals = new Map(this.#arrivals);
    this.#arrivals.clear();
    return answer;
  }
}

/** The runners that this coordinator knows. */
export class Pollers {
  readonly #clock: Clock;
  readonly #byRunner = new Map<string, Poller>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get all(): readonly Poller[] {
    return [...this.#byRunner.values()];
  }

  /** The runners whose poll waits. */
  get waiting(): readonly Poller[] {
    return this.all.filter(({ waiting }) => waiting !== undefined);
  }

  find(runnerId: string): Poller | undefined {
    return this.#byRunner.get(runnerId);
  }

  /** The poller of a runner, which is made if the runner is not known. */
  of(runnerId: string): Poller {
    const poller = this.find(runnerId) ?? new Poller(runnerId, this.#clock.monotonic());
    this.#byRunner.set(runnerId, poller);
    return poller;
  }

  /** How long a runner has been silent here: 0 while its poll waits, and Infinity if it never polled. */
  quietFor(runnerId: string): number {
    const poller = this.find(runnerId);
    if (poller?.waiting !== undefined) return 0;
    return this.#clock.monotonic() - (poller?.lastSeenAt ?? -Infinity);
  }

  /** Answers the poll of a runner with nothing, and forgets the runner. */
  forget(runnerId: string): void {
    this.find(runnerId)?.waiting?.answer([]);
    this.#byRunner.delete(runnerId);
  }
}
