// When sessions come and go by time: those that are due are run, those that only wait are let go of.
//
//   due-sessions-3. What only waits is kept warm for `warmMs`, then released; an arrival or its time brings it back (M1).
//   due-sessions-1. More sessions that only wait than `warm` allows are not kept: the least recently used one is released at
//       once, as one whose time is up. A busy one that is met there was used just now. The search meets at most two of
//       them for each session that begins to wait, so its cost does not grow with how many are busy.
//   due-sessions-5. When to look next is said by the answer to what was asked last: an older one that comes after it
//       does not know of what was released since. No answer knows of what was asked for after its question.
//
// It asks storage what is due and the clock what time it is; running and releasing are the live sessions' own.

import { toHoldfastError, type AgentStorage, type Clock } from "@holdfast/core";
import type { LiveSessions } from "./live-sessions.ts";
import { alarm, type Timers } from "../loop/timers.ts";
import { WarmSessions, type WarmLimits, type WarmSession } from "./warm-sessions.ts";

const DUE_BATCH = 1_000;
const DUE_RETRY_MS = 1_000;
/** What was to be let go of and is busy is looked at again after so long at least: mostly it waits anew by itself before. */
const BUSY_MS = 1_000;

export interface DueSessionsHost {
  readonly storage: AgentStorage;
  readonly clock: Clock;
  readonly timers: Timers;
  /** For letting go of what only waits: no reason for a process to stay. */
  readonly idleTimers: Timers;
  readonly sessions: LiveSessions;
  /** How long a session that only waits is kept in memory. */
  readonly warmMs: number;
  /** How many of them are, and how much memory they may take. */
  readonly warm: WarmLimits;
  /** Whether to look by itself; otherwise only when asked to. */
  readonly adopt: boolean;
  /** Look at least this often: leases of other processes may pass, of which nobody tells. `Infinity` where there are none. */
  readonly lookEveryMs: number;
  /** Tell who watches of what went wrong where nobody waits for it. */
  warn(sessionId: string, message: string): void;
}

export class DueSessions {
  readonly #host: DueSessionsHost;
  readonly #warm: WarmSessions;
  /** How many sessions began to wait since the last eviction. */
  #noted = 0;
  #isLooking = false;
  #asked = 0;
  /** due-sessions-5. */
  #newest = 0;
  /** The earliest that was asked for since storage was last asked what is due: its answer may not know of that. */
  #wantedAt = Infinity;
  readonly #dueAlarm = alarm(() => this.#lookForDue());
  /** For what is looked at after a while, whatever time it is. */
  readonly #againAlarm = alarm(() => this.#lookForDue());
  readonly #coolAlarm = alarm(() => this.#cool());

  constructor(host: DueSessionsHost) {
    this.#host = host;
    this.#warm = new WarmSessions(host.warm);
  }

  /** Look for what is due at this time, too. */
  lookAt(at: number): void {
    this.#wantedAt = Math.min(this.#wantedAt, at);
    if (!this.#host.sessions.closed && at < this.#dueAlarm.queuedFor)
      this.#host.timers.set(this.#dueAlarm, at);
  }

  /** Have storage end what is over: nobody's agent is needed for that. */
  async #endOverdue(): Promise<void> {
    await this.#host.storage.due({ now: this.#host.clock.now(), limit: 1, agents: [] });
  }

  /** Run what is due, and look again when the next is. */
  async runDue(): Promise<readonly string[]> {
    const started: string[] = [];
    const asked = ++this.#asked;
    this.#wantedAt = Infinity;
    const { sessionIds, nextAt } = await this.#host.storage.due({
      now: this.#host.clock.now(),
      limit: DUE_BATCH,
      agents: this.#host.sessions.agents.names,
    });
    for (const sessionId of sessionIds) {
      if (this.#host.sessions.closed || this.#host.sessions.isLive(sessionId)) continue;
      try {
        const session = await this.#host.storage.reader.session(sessionId);
        if (session === undefined) continue;
        await this.#host.sessions.activate(sessionId, session);
        started.push(sessionId);
      } catch (error) {
        this.#host.sessions.failedToRun(sessionId, toHoldfastError(error));
      }
    }
    if (!this.#host.sessions.closed && this.#host.adopt) {
      const nextLookAt = Math.min(nextAt ?? Infinity, this.#wantedAt);
      const isNewest = asked >= this.#newest; // due-sessions-5.
      if (isNewest) this.#newest = asked;
      if (isNewest) this.#host.timers.after(this.#againAlarm, this.#host.lookEveryMs);
      if (isNewest && nextLookAt !== Infinity) this.#host.timers.set(this.#dueAlarm, nextLookAt);
      if (sessionIds.length === DUE_BATCH && started.length > 0) started.push(...(await this.runDue()));
    }
    return started;
  }

  /** due-sessions-3. A session waits: note since when, and look at the oldest when its time is up. */
  noteWaiting(sessionId: string, bytes: number): void {
    if (!this.#host.adopt) return;
    this.#keepWarm(sessionId, bytes, this.#host.warmMs);
    this.#noted++;
    // Once for all the commits of a group, and not in the middle of what the driver does after its commit.
    if (this.#noted === 1) queueMicrotask(() => this.#evict());
  }

  /** due-sessions-1. */
  #evict(): void {
    let busyLeft = 2 * this.#noted;
    this.#noted = 0;
    while (busyLeft > 0 && this.#warm.isOverLimit && !this.#host.sessions.closed) {
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

  /** Release one that only waits. Answers whether it is driven no longer: one that is busy is kept, and looked at again. */
  #release({ sessionId, bytes }: WarmSession): boolean {
    this.#warm.delete(sessionId);
    // Whatever arrived between the last commit and this release finds nobody driving it: look once more (S2).
    if (!this.#host.sessions.letGo(sessionId, () => this.#lookForDue())) return true;
    this.#keepWarm(sessionId, bytes, Math.max(this.#host.warmMs, BUSY_MS));
    return false;
  }

  /** Let go of all that only wait. */
  letGo(): void {
    for (const session of this.#warm.all()) this.#release(session);
  }

  /** It is driven here no longer. */
  forget(sessionId: string): void {
    this.#warm.delete(sessionId);
  }

  /** Run what is due, off everybody's path; when storage cannot say what is, ask again. */
  #lookForDue(): void {
    if (this.#isLooking) return;
    this.#isLooking = true;
    // Once for all the releases of a group: they are answered in one turn.
    queueMicrotask(() => {
      this.#isLooking = false;
      if (this.#host.sessions.closed) return;
      const looking: Promise<unknown> = this.#host.adopt ? this.runDue() : this.#endOverdue();
      looking.catch(() => this.#host.timers.after(this.#againAlarm, DUE_RETRY_MS));
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
