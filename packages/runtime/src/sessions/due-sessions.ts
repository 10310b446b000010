// `DueSessions`: runs sessions that are due, and releases sessions that only wait. A runtime that adopts no
// sessions (`adopt: false`) releases them only when it is asked.
//
//   - Sessions that only wait are kept within the limits `warm`. Beyond these the least recently used one is
//     released at once. A busy session in that list counts as just used. The search visits at most two busy
//     sessions for each session that begins to wait, so its cost is independent of their number.
//   due-sessions-2. Other looks wait for the first one. It finds the sessions of dead processes, and starts
//       the suspects of them alone, before everything else (trials-1).
//   due-sessions-3. A session that only waits is kept warm for `warmMs`, then released. An arrival or its due
//       time loads it again (M1).
//   due-sessions-5. The answer to the last question decides when to look next. An older answer that arrives
//       later decides nothing, because it does not know the sessions that were released since. No answer
//       covers the times that were asked for after its question.
//   due-sessions-6. A look that fails, also one that a caller asked for, is followed by another.
//
// It asks storage which sessions are due. `LiveSessions` runs and releases them.

import {
  toHoldfastError,
  type AgentStorage,
  type Clock,
  type HoldfastError,
  type Session,
} from "@holdfast/core";
import type { Claims } from "../claims/claims.ts";
import type { Trials } from "../claims/trials.ts";
import { alarm, type Timers } from "../loop/timers.ts";
import { WarmSessions, type WarmLimits, type WarmSession } from "./warm-sessions.ts";

const DUE_BATCH = 1_000;
const DUE_RETRY_MS = 1_000;
/**
 * A busy session is considered for release again after this delay at least. Mostly it begins to wait before
 * that.
 */
const BUSY_MS = 1_000;

export interface DueSessionsHost {
  readonly storage: AgentStorage;
  readonly clock: Clock;
  readonly timers: Timers;
  /** Timers for the release of sessions that only wait, which do not keep the process alive. */
  readonly idleTimers: Timers;
  readonly claims: Claims;
  readonly trials: Trials;
  /** How long a session that only waits is kept in memory. */
  readonly warmMs: number;
  /** How many of them are kept, and how much memory they may take. */
  readonly warm: WarmLimits;
  /** Whether to look for due sessions continuously; otherwise only on request. */
  readonly adopt: boolean;
  /**
   * Look at least this often, as the leases of other processes end without a notice. `Infinity` where there
   * are none.
   */
  readonly lookEveryMs: number;
}

/** The sessions of this process, which run those that are due. */
interface SessionsToRun {
  readonly agents: { readonly names: readonly string[] };
  readonly closed: boolean;
  isLive(sessionId: string): boolean;
  activate(sessionId: string, read: Session): Promise<void>;
  /** Must not throw. */
  failedToRun(sessionId: string, error: HoldfastError): void;
  /** Release a session that only waits. Answers whether it is still driven. */
  releaseWaiting(sessionId: string, onReleased: () => void): boolean;
}

export class DueSessions {
  readonly #host: DueSessionsHost;
  readonly #sessions: SessionsToRun;
  readonly #warm: WarmSessions;
  /** How many sessions began to wait since the last eviction. */
  #noted = 0;
  #isLooking = false;
  #hasLooked = false;
  #leavesAtCheckpoints = false;
  /** due-sessions-2. Resolves with the sessions that the first look has started. */
  #first: PromiseWithResolvers<readonly string[]> | undefined;
  #asked = 0;
  /** due-sessions-5. */
  #newest = 0;
  /** The earliest time asked for since the last question to storage, whose answer may not cover it. */
  #wantedAt = Infinity;
  readonly #dueAlarm = alarm(() => this.#lookForDue());
  /** The alarm for looks after a delay, independent of the wall clock. */
  readonly #againAlarm = alarm(() => this.#lookForDue());
  readonly #coolAlarm = alarm(() => this.#cool());

  constructor(host: DueSessionsHost, sessions: SessionsToRun) {
    this.#host = host;
    this.#sessions = sessions;
    this.#warm = new WarmSessions(host.warm);
  }

  /** Look for due sessions at this time, too. */
  lookAt(at: number): void {
    this.#wantedAt = Math.min(this.#wantedAt, at);
    if (!this.#sessions.closed && at < this.#dueAlarm.queuedFor) this.#host.timers.set(this.#dueAlarm, at);
  }

  /** Have storage act on overdue sessions, which needs no agent. */
  async #actOverdue(): Promise<void> {
    this.#wantedAt = Infinity;
    const { nextAt = Infinity } = await this.#host.storage.due({
      now: this.#host.clock.now(),
      limit: 1,
      agents: [],
    });
    if (nextAt !== Infinity) this.lookAt(nextAt);
  }

  /** Run the sessions that are due, and look again when the next one is. @returns those that this call has waited for. */
  async runDue(): Promise<readonly string[]> {
    if (this.#hasLooked) {
      const earlier = this.#first === undefined ? [] : await this.#first.promise; // due-sessions-2.
      return [...earlier, ...(await this.#runDue())];
    }
    this.#hasLooked = true;
    this.#first = Promise.withResolvers();
    this.#host.trials.holdArrivals(this.#first.promise);
    try {
      return await this.#runDue();
    } finally {
      this.#endFirst([]);
    }
  }

  #endFirst(started: readonly string[]): void {
    this.#first?.resolve(started);
    this.#first = undefined;
  }

  /** due-sessions-6. */
  async #runDue(): Promise<readonly string[]> {
    try {
      return await this.#runAllDue();
    } catch (error) {
      // mutant: failed-look-ends-adoption
      if (this.#host.adopt) this.#lookAgain();
      throw error;
    }
  }

  #lookAgain(): void {
    if (!this.#sessions.closed) this.#host.timers.after(this.#againAlarm, DUE_RETRY_MS);
  }

  async #runAllDue(): Promise<readonly string[]> {
    const started: string[] = [];
    const asked = ++this.#asked;
    this.#wantedAt = Infinity;
    const { sessionIds, nextAt } = await this.#host.storage.due({
      now: this.#host.clock.now(),
      limit: DUE_BATCH,
      agents: this.#sessions.agents.names,
    });
    for (const sessionId of await this.#host.trials.inOrder(sessionIds)) {
      if (this.#sessions.closed || this.#sessions.isLive(sessionId)) continue;
      try {
        const session = await this.#host.storage.reader.session(sessionId);
        if (session === undefined) continue;
        await this.#sessions.activate(sessionId, session);
        started.push(sessionId);
      } catch (error) {
        this.#sessions.failedToRun(sessionId, toHoldfastError(error));
      }
    }
    this.#host.claims.releaseEarly();
    this.#endFirst([...started]);
    if (!this.#sessions.closed && this.#host.adopt) {
      const nextLookAt = Math.min(nextAt ?? Infinity, this.#wantedAt);
      // mutant: late-answer-trusted
      const isNewest = asked >= this.#newest; // due-sessions-5.
      if (isNewest) this.#newest = asked;
      if (isNewest) this.#host.timers.after(this.#againAlarm, this.#host.lookEveryMs);
      if (isNewest && nextLookAt !== Infinity) this.#host.timers.set(this.#dueAlarm, nextLookAt);
      if (sessionIds.length === DUE_BATCH && started.length > 0) started.push(...(await this.#runAllDue()));
    }
    return started;
  }

  /** due-sessions-3. Keep a session that waits, and release the oldest one when its time is up. */
  noteWaiting(sessionId: string, bytes: number): void {
    if (!this.#host.adopt) return;
    this.#keepWarm(sessionId, bytes, this.#host.warmMs);
    this.#noted++;
    // Evict once for all the commits of a group, and not while a driver handles its commit.
    if (this.#noted === 1) void Promise.resolve().then(() => this.#evict());
  }

  #evict(): void {
    let busyLeft = 2 * this.#noted;
    this.#noted = 0;
    while (busyLeft > 0 && this.#warm.isOverLimit && !this.#sessions.closed) {
      const { oldest } = this.#warm;
      if (oldest === undefined) return;
      if (!this.#release(oldest)) busyLeft--;
    }
  }

  #keepWarm(sessionId: string, bytes: number, ms: number): void {
    const until = this.#host.clock.monotonic() + ms;
    this.#warm.keep({ sessionId, until, bytes });
    if (this.#coolAlarm.queuedFor === Infinity) this.#host.idleTimers.after(this.#coolAlarm, ms);
  }

  /**
   * Release a session that only waits, and answer whether it was released. A busy one is kept and considered
   * again later.
   */
  #release({ sessionId, bytes }: WarmSession): boolean {
    this.#warm.delete(sessionId);
    // An arrival between the last commit and this release finds no driver: look once more (S2).
    if (!this.#sessions.releaseWaiting(sessionId, () => this.#lookForDue())) return true;
    this.#keepWarm(sessionId, bytes, Math.max(this.#host.warmMs, BUSY_MS));
    return false;
  }

  /** Whether a session is released once its checkpoint is committed. */
  get leavesAtCheckpoints(): boolean {
    return this.#leavesAtCheckpoints;
  }

  /** Release all sessions that only wait. @param atCheckpoints whether each other one follows at its next checkpoint. */
  releaseWaiting(atCheckpoints: boolean): void {
    this.#leavesAtCheckpoints ||= atCheckpoints;
    for (const session of this.#warm.all()) this.#release(session);
  }

  /** The session is no longer driven here. */
  forget(sessionId: string): void {
    this.#warm.delete(sessionId);
  }

  /** Run due sessions in the background. When storage does not answer, ask again. */
  #lookForDue(): void {
    if (this.#isLooking) return;
    this.#isLooking = true;
    // Look once for all the releases of a group, which are answered in one turn.
    void Promise.resolve().then(() => {
      this.#isLooking = false;
      if (this.#sessions.closed) return;
      const looking: Promise<unknown> = this.#host.adopt ? this.runDue() : this.#actOverdue();
      looking.catch(() => this.#lookAgain());
    });
  }

  #cool(): void {
    const now = this.#host.clock.monotonic();
    for (let oldest = this.#warm.oldest; oldest !== undefined; oldest = this.#warm.oldest) {
      if (oldest.until > now) {
        this.#host.idleTimers.after(this.#coolAlarm, oldest.until - now);
        return;
      }
      this.#release(oldest);
    }
  }
}
