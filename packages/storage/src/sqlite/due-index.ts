// Which sessions have something to do that nobody does.
//
// The file has an index over times (`state.due_at`: 0 for "has something to do by itself", or when its wait ends), which
// knows neither claims nor signals that arrived since the row was written. This adds both, in memory, so that neither an
// arrival nor a claim costs a write. It knows nothing of rules: `dueAt` decides.
//
//   I1. `ready` holds the unclaimed sessions that are due up to the watermark, by agent: each row behind the watermark is read once,
//       however often `due` is asked and whoever's agents stand before it. It is kept by `note` after each commit.
//   I2. A claimed session is in the file's index as well; it is passed over here. Whoever holds it gives it to `note` with the
//       release.

import {
  HoldfastError,
  isEnded,
  type AgentRef,
  type Due,
  type Session,
  type SessionStatus,
} from "@holdfast/core";
import { dueAt, isAnsweredBy } from "@holdfast/core/internal";
import type { SqlDriver, SqlRow, SqlStatement } from "./driver.ts";
import { isClaimed, type Head, type Heads } from "./heads.ts";
import type { Schedules } from "./schedules.ts";

const PAGE_ROWS = 256;

export class DueIndex {
  readonly #heads: Heads;
  readonly #schedules: Schedules;
  /** When each is due, by agent and session. */
  readonly #ready = new Map<string, Map<string, number>>();
  /** Claimed sessions whose lease ends by itself. */
  readonly #leased = new Set<string>();
  /** The last row of the file's index that was looked at. */
  #watermark = { at: -Infinity, number: 0 };
  #isOpened = false;

  readonly #arrived: SqlStatement;
  readonly #timers: SqlStatement;
  readonly #overdue: SqlStatement;
  readonly #nextTimers: SqlStatement;
  readonly #nextDeadline: SqlStatement;

  constructor(driver: SqlDriver, heads: Heads, schedules: Schedules) {
    this.#heads = heads;
    this.#schedules = schedules;
    const joined = "FROM state t JOIN session s ON s.session = t.session";
    this.#arrived = driver.prepare(
      `SELECT s.session_id, s.agent, t.status, t.waits, g.name FROM signal g JOIN state t ON t.session = g.session
         JOIN session s ON s.session = g.session WHERE t.waits IS NOT NULL`,
    );
    this.#timers = driver.prepare(
      `SELECT t.session, s.session_id, s.agent, t.due_at ${joined}
        WHERE (t.due_at, t.session) > (?, ?) AND t.due_at <= ? ORDER BY t.due_at, t.session LIMIT ?`,
    );
    this.#overdue = driver.prepare(
      `SELECT s.session_id ${joined} WHERE t.overdue_at <= ? ORDER BY t.overdue_at`,
    );
    this.#nextTimers = driver.prepare(
      `SELECT s.session_id, s.agent, t.due_at ${joined} WHERE t.due_at > ? ORDER BY t.due_at LIMIT ? OFFSET ?`,
    );
    this.#nextDeadline = driver.prepare("SELECT min(overdue_at) AS at FROM state WHERE overdue_at > ?");
  }

  /** After every committed change of a session's row, claim or pending signals (I1). */
  note({ session, claim, answered }: Head): void {
    const { sessionId, agent } = session;
    const at = dueAt(session, claim, answered);
    if (at === -Infinity || at <= this.#watermark.at) this.#setReady(agent.name, sessionId, at);
    else this.#ready.get(agent.name)?.delete(sessionId);
    if (isClaimed(claim) && claim.until !== Infinity && !isEnded(session.status)) this.#leased.add(sessionId);
    else this.#leased.delete(sessionId);
  }

  /** It is claimed, and its lease ends by itself: known before the session was read. */
  watch(sessionId: string): void {
    this.#leased.add(sessionId);
  }

  /** Sessions whose time is up, claimed or not: the caller acts on them before it asks what is due. */
  overdue(now: number): string[] {
    return this.#overdue.all(now).map((row) => row["session_id"] as string);
  }

  due(now: number, limit: number, agents?: readonly string[]): Due {
    this.#readArrived();
    const wanted = agents === undefined ? undefined : new Set(agents);
    const found = new Set<string>();
    let nextAt = this.#collectReady(now, limit, wanted, found);
    while (found.size < limit && this.#readTimers(now))
      nextAt = this.#collectReady(now, limit, wanted, found);
    nextAt = Math.min(nextAt, this.#collectLapsed(now, limit, wanted, found));
    nextAt = Math.min(nextAt, this.#nextTimer(now), this.#deadlineAfter(now), this.#schedules.nextAfter(now));
    const due = { sessionIds: [...found], schedules: this.#schedules.due(now) };
    return nextAt === Infinity ? due : { ...due, nextAt };
  }

  /** Signals that arrived before this process opened the file. */
  #readArrived(): void {
    if (this.#isOpened) return;
    this.#isOpened = true;
    for (const row of this.#arrived.all()) {
      const status = row["status"] as SessionStatus;
      if (status === "paused" || isEnded(status)) continue;
      const waits = JSON.parse(row["waits"] as string) as Session["waits"];
      const sessionId = row["session_id"] as string;
      if (isAnsweredBy(waits, row["name"] as string) && !this.#heads.isClaimed(sessionId))
        this.#setReady(agentName(row["agent"]), sessionId, -Infinity);
    }
  }

  /** Answers when the next of those that were ready by a later clock is due. */
  #collectReady(
    now: number,
    limit: number,
    agents: ReadonlySet<string> | undefined,
    found: Set<string>,
  ): number {
    let nextAt = Infinity;
    for (const agent of agents ?? this.#ready.keys()) {
      for (const [sessionId, at] of this.#ready.get(agent) ?? []) {
        if (at > now) nextAt = Math.min(nextAt, at);
        else if (found.size < limit) found.add(sessionId);
        else break;
      }
    }
    return nextAt;
  }

  /** Reads one page of rows that are due, and moves the watermark behind it. Answers whether there may be more. */
  #readTimers(now: number): boolean {
    const { at, number } = this.#watermark;
    if (at > now) return false;
    const rows = this.#timers.all(Math.max(at, -1), number, now, PAGE_ROWS);
    for (const row of rows) {
      const sessionId = row["session_id"] as string;
      if (this.#heads.isClaimed(sessionId)) continue; // I2.
      const agent = agentName(row["agent"]);
      const dueFrom = row["due_at"] as number;
      // A row that was not written since its signal arrived does not know that it is due at once.
      if (!this.#isReady(agent, sessionId))
        this.#setReady(agent, sessionId, dueFrom === 0 ? -Infinity : dueFrom);
    }
    const last = rows.at(-1);
    const isMore = rows.length === PAGE_ROWS && last !== undefined;
    this.#watermark = isMore
      ? { at: last["due_at"] as number, number: last["session"] as number }
      : { at: now, number: Number.MAX_SAFE_INTEGER };
    return rows.length > 0;
  }

  #setReady(agent: string, sessionId: string, at: number): void {
    const ready = this.#ready.get(agent);
    if (ready === undefined) this.#ready.set(agent, new Map([[sessionId, at]]));
    else ready.set(sessionId, at);
  }

  /** Leases are rare under one owner (its own never end), so a walk over them is cheaper than an index. */
  #collectLapsed(
    now: number,
    limit: number,
    agents: ReadonlySet<string> | undefined,
    found: Set<string>,
  ): number {
    let nextAt = Infinity;
    for (const sessionId of this.#leased) {
      const head = this.#headOf(sessionId);
      if (head === undefined) continue;
      if (isEnded(head.session.status)) this.#leased.delete(sessionId);
      const at = dueAt(head.session, head.claim, head.answered);
      const isWanted = agents === undefined || agents.has(head.session.agent.name);
      if (at > now) nextAt = Math.min(nextAt, at);
      else if (isWanted && found.size < limit) found.add(sessionId);
    }
    return nextAt;
  }

  /** One that is damaged must not keep the others from being found: whoever asks for it itself is told. */
  #headOf(sessionId: string): Head | undefined {
    try {
      return this.#heads.get(sessionId);
    } catch (error) {
      if (HoldfastError.is(error) && error.code === "corrupt_record") return undefined;
      throw error;
    }
  }

  #nextTimer(now: number): number {
    for (let offset = 0; ; offset += PAGE_ROWS) {
      const rows = this.#nextTimers.all(now, PAGE_ROWS, offset);
      const next = rows.find((row) => !this.#isWatched(row));
      if (next !== undefined) return next["due_at"] as number;
      if (rows.length < PAGE_ROWS) return Infinity;
    }
  }

  /** Whether its time in the file does not count: it is claimed, or due already. */
  #isWatched(row: SqlRow): boolean {
    const sessionId = row["session_id"] as string;
    return this.#heads.isClaimed(sessionId) || this.#isReady(agentName(row["agent"]), sessionId);
  }

  #isReady(agent: string, sessionId: string): boolean {
    return this.#ready.get(agent)?.has(sessionId) ?? false;
  }

  #deadlineAfter(now: number): number {
    return (this.#nextDeadline.get(now)?.["at"] as number | null) ?? Infinity;
  }
}

function agentName(column: unknown): string {
  return (JSON.parse(column as string) as AgentRef).name;
}
