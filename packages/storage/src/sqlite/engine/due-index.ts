// DueIndex: the sessions that have something to do and that nobody has claimed.
//
// The file has an index over times, `state.due_at`: the time when a session's wait ends, or 0 when the
// session can run now. That index knows neither claims nor signals that arrived since the row was written.
// This class adds both, in memory, so that neither an arrival nor a claim costs a write. It knows nothing of
// rules: `dueAt` decides.
//
//   - `ready` holds the unclaimed sessions that are due up to the watermark, by agent. Each row behind the
//     watermark is read once, however often `due` is asked, also when other agents' sessions come first.
//     `note` maintains `ready` after each commit.
//   - A claimed session is in the file's index as well, and is skipped here. The release of its claim passes
//     the session to `note`.
//   due-index-3. Rows are read in pages. Each page is found by where the page before ended, also where many
//       rows have the same time. The cost grows with the number of rows, not with its square.

import {
  type AgentRef,
  type Due,
  dueAt,
  isAnsweredBy,
  isEnded,
  type Session,
  type SessionStatus,
  unlessCorrupt,
} from "@holdfast/core";
import type { SqlDriver, SqlRow, SqlStatement } from "../file/driver.ts";
import { isClaimed, type Head, type Heads } from "./heads.ts";
import type { Schedules } from "../tables/schedules.ts";

const PAGE_ROWS = 256;

export class DueIndex {
  readonly #heads: Heads;
  readonly #schedules: Schedules;
  /** When each is due, by agent and session. */
  readonly #ready = new Map<string, Map<string, number>>();
  /** Claimed sessions whose claim expires. */
  readonly #leased = new Set<string>();
  /** The last row of the file's index that was looked at. */
  #watermark: Place = { at: -1, number: 0 };
  #isOpened = false;

  readonly #arrived: SqlStatement;
  readonly #sameTime: SqlStatement;
  readonly #laterTimes: SqlStatement;
  readonly #overdue: SqlStatement;
  readonly #nextDeadline: SqlStatement;

  constructor(driver: SqlDriver, heads: Heads, schedules: Schedules) {
    this.#heads = heads;
    this.#schedules = schedules;
    const joined = "FROM state t JOIN session s ON s.session = t.session";
    this.#arrived = driver.prepare(
      `SELECT s.session_id, s.agent, t.status, t.waits, g.name FROM signal g JOIN state t ON t.session = g.session
         JOIN session s ON s.session = g.session WHERE t.waits IS NOT NULL`,
    );
    // Two statements: a comparison of pairs would not use the index for the second of the pair (due-index-3).
    const timers = `SELECT t.session, s.session_id, s.agent, t.due_at ${joined}`;
    this.#sameTime = driver.prepare(
      `${timers} WHERE t.due_at = ? AND t.session > ? ORDER BY t.session LIMIT ?`,
    );
    this.#laterTimes = driver.prepare(
      `${timers} WHERE t.due_at > ? AND t.due_at <= ? ORDER BY t.due_at, t.session LIMIT ?`,
    );
    this.#overdue = driver.prepare(
      `SELECT s.session_id ${joined} WHERE t.overdue_at <= ? ORDER BY t.overdue_at, t.session`,
    );
    this.#nextDeadline = driver.prepare("SELECT min(overdue_at) AS at FROM state WHERE overdue_at > ?");
  }

  /** To be called after every committed change of a session's row, claim or pending signals. */
  note({ session, claim, answered }: Head): void {
    const { sessionId, agent } = session;
    const at = dueAt(session, claim, answered);
    if (at === -Infinity || at <= this.#watermark.at) this.#setReady(agent.name, sessionId, at);
    else this.#ready.get(agent.name)?.delete(sessionId);
    if (isClaimed(claim) && claim.until !== Infinity && !isEnded(session.status)) this.#leased.add(sessionId);
    else this.#leased.delete(sessionId);
  }

  /** Watch a session that is not read yet and whose claim expires. */
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
    while (found.size < limit && this.#readTimers(now, limit, wanted, found));
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
      const waits = parsed<Session["waits"]>(row["waits"]) ?? [];
      const agent = agentName(row["agent"]);
      const sessionId = row["session_id"] as string;
      if (agent === undefined || this.#heads.isClaimed(sessionId)) continue;
      if (isAnsweredBy(waits, row["name"] as string)) this.#setReady(agent, sessionId, -Infinity);
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

  /**
   * Reads one page of rows that are due, and moves the watermark behind it. Answers whether there may be
   * more.
   */
  #readTimers(
    now: number,
    limit: number,
    agents: ReadonlySet<string> | undefined,
    found: Set<string>,
  ): boolean {
    if (this.#watermark.at > now) return false;
    const rows = this.#pageBehind(this.#watermark, now);
    for (const row of rows) {
      const sessionId = row["session_id"] as string;
      if (this.#heads.isClaimed(sessionId)) continue; // The release of its claim passes it to `note`.
      const agent = agentName(row["agent"]);
      if (agent === undefined) continue;
      const dueFrom = row["due_at"] as number;
      // A row that was not written since its signal arrived does not know that it is due at once.
      if (this.#readyAt(agent, sessionId) === undefined)
        this.#setReady(agent, sessionId, dueFrom === 0 ? -Infinity : dueFrom);
      const isWanted = agents?.has(agent) !== false && this.#readyAt(agent, sessionId)! <= now;
      if (isWanted && found.size < limit) found.add(sessionId);
    }
    this.#watermark = placeBehind(rows) ?? { at: now, number: Number.MAX_SAFE_INTEGER };
    return rows.length > 0;
  }

  /** The next rows behind a place, up to a time. */
  #pageBehind({ at, number }: Place, until: number): SqlRow[] {
    const same = this.#sameTime.all(at, number, PAGE_ROWS);
    const room = PAGE_ROWS - same.length;
    return room === 0 ? same : [...same, ...this.#laterTimes.all(at, until, room)];
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
      const head = unlessCorrupt(() => this.#heads.get(sessionId));
      if (head === undefined) continue;
      if (isEnded(head.session.status)) this.#leased.delete(sessionId);
      const at = dueAt(head.session, head.claim, head.answered);
      const isWanted = agents === undefined || agents.has(head.session.agent.name);
      if (at > now) nextAt = Math.min(nextAt, at);
      else if (isWanted && found.size < limit) found.add(sessionId);
    }
    return nextAt;
  }

  #nextTimer(now: number): number {
    let place: Place | undefined = { at: now, number: Number.MAX_SAFE_INTEGER };
    while (place !== undefined) {
      const rows = this.#pageBehind(place, Number.MAX_SAFE_INTEGER);
      const next = rows.find((row) => !this.#isWatched(row));
      if (next !== undefined) return next["due_at"] as number;
      place = placeBehind(rows);
    }
    return Infinity;
  }

  /** Whether its time in the file does not count: it is claimed, or due already. */
  #isWatched(row: SqlRow): boolean {
    const sessionId = row["session_id"] as string;
    if (this.#heads.isClaimed(sessionId)) return true;
    const agent = agentName(row["agent"]);
    return agent === undefined || this.#readyAt(agent, sessionId) !== undefined;
  }

  #readyAt(agent: string, sessionId: string): number | undefined {
    return this.#ready.get(agent)?.get(sessionId);
  }

  #deadlineAfter(now: number): number {
    return (this.#nextDeadline.get(now)?.["at"] as number | null) ?? Infinity;
  }
}

/** A row of the file's index. */
interface Place {
  readonly at: number;
  readonly number: number;
}

/** Where the page after these begins, if there may be one. */
function placeBehind(rows: readonly SqlRow[]): Place | undefined {
  const last = rows.length === PAGE_ROWS ? rows.at(-1) : undefined;
  return last && { at: last["due_at"] as number, number: last["session"] as number };
}

/** Rows are looked at here before they are checked. */
function agentName(column: unknown): string | undefined {
  return parsed<AgentRef>(column)?.name;
}

function parsed<T>(column: unknown): T | undefined {
  try {
    return JSON.parse(column as string) as T;
  } catch {
    return undefined;
  }
}
