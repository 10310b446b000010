// Which sessions have something to do that nobody does.
//
// The file has an index over times (`state.due_at`: 0 for "has something to do by itself", or when its wait ends), which
// knows neither claims nor signals that arrived since the row was written. This adds both, in memory, so that neither an
// arrival nor a claim costs a write. It knows nothing of rules: `dueAt` decides.
//
//   I1. `ready` holds the unclaimed sessions that are due without a clock. It is kept by `note` after each commit; what was
//       so before this process opened the file is read behind it, as far as `due` asks (`#readBacklog`).
//   I2. A claimed session is in the file's index as well; it is passed over here.

import { isEnded, type Due, type Session, type SessionStatus } from "@holdfast/core";
import { dueAt, isAnsweredBy } from "@holdfast/core/internal";
import type { SqlDriver, SqlStatement } from "./driver.ts";
import { isClaimed, type Head, type Heads } from "./heads.ts";

const PAGE_ROWS = 256;

export class DueIndex {
  readonly #heads: Heads;
  readonly #ready = new Set<string>();
  /** Claimed sessions whose lease ends by itself. */
  readonly #leased = new Set<string>();
  /** Session numbers up to here were looked at; `undefined` before the first call. */
  #backlogFrom: number | undefined;
  #backlogTo = 0;

  readonly #lastNumber: SqlStatement;
  readonly #backlog: SqlStatement;
  readonly #arrived: SqlStatement;
  readonly #timers: SqlStatement;
  readonly #overdue: SqlStatement;
  readonly #nextTimers: SqlStatement;
  readonly #nextDeadline: SqlStatement;

  constructor(driver: SqlDriver, heads: Heads) {
    this.#heads = heads;
    const joined = "FROM state t JOIN session s ON s.session = t.session";
    this.#lastNumber = driver.prepare("SELECT max(session) AS last FROM session");
    this.#backlog = driver.prepare(
      `SELECT t.session, s.session_id ${joined} WHERE t.due_at = 0 AND t.session > ? AND t.session <= ? ORDER BY t.session LIMIT ?`,
    );
    this.#arrived = driver.prepare(
      `SELECT s.session_id, t.status, t.waits, g.name FROM signal g JOIN state t ON t.session = g.session
         JOIN session s ON s.session = g.session WHERE t.waits IS NOT NULL`,
    );
    this.#timers = driver.prepare(
      `SELECT s.session_id, t.due_at ${joined} WHERE t.due_at > 0 AND t.due_at <= ? ORDER BY t.due_at LIMIT ? OFFSET ?`,
    );
    this.#overdue = driver.prepare(
      `SELECT s.session_id ${joined} WHERE t.cancel_at <= ? ORDER BY t.cancel_at`,
    );
    this.#nextTimers = driver.prepare(
      `SELECT s.session_id, t.due_at ${joined} WHERE t.due_at > ? ORDER BY t.due_at LIMIT ? OFFSET ?`,
    );
    this.#nextDeadline = driver.prepare("SELECT min(cancel_at) AS at FROM state WHERE cancel_at > ?");
  }

  /** After every committed change of a session's row, claim or pending signals (I1). */
  note({ session, claim, answered }: Head): void {
    const { sessionId } = session;
    if (dueAt(session, claim, answered) === -Infinity) this.#ready.add(sessionId);
    else this.#ready.delete(sessionId);
    if (isClaimed(claim) && claim.until !== Infinity && !isEnded(session.status)) this.#leased.add(sessionId);
    else this.#leased.delete(sessionId);
  }

  /** Sessions whose cancel deadline has passed, claimed or not: the caller ends them before it asks what is due. */
  overdue(now: number): string[] {
    return this.#overdue.all(now).map((row) => row["session_id"] as string);
  }

  due(now: number, limit: number): Due {
    this.#readBacklog(limit);
    const found = new Set<string>();
    for (const sessionId of this.#ready) {
      if (found.size >= limit) break;
      found.add(sessionId);
    }
    const leaseEndsAt = this.#collectLapsed(now, limit, found);
    this.#collectTimers(now, limit, found);
    const nextAt = Math.min(leaseEndsAt, this.#nextTimer(now), this.#deadlineAfter(now));
    return nextAt === Infinity ? { sessionIds: [...found] } : { sessionIds: [...found], nextAt };
  }

  #readBacklog(limit: number): void {
    if (this.#backlogFrom === undefined) {
      this.#backlogFrom = 0;
      this.#backlogTo = (this.#lastNumber.get()?.["last"] as number | null) ?? 0;
      this.#readArrived();
    }
    while (this.#ready.size < limit && this.#backlogFrom < this.#backlogTo) {
      const rows = this.#backlog.all(this.#backlogFrom, this.#backlogTo, PAGE_ROWS);
      for (const row of rows) this.#addUnlessHeld(row["session_id"] as string);
      this.#backlogFrom = rows.length < PAGE_ROWS ? this.#backlogTo : (rows.at(-1)?.["session"] as number);
    }
  }

  /** Signals that arrived before this process opened the file. */
  #readArrived(): void {
    for (const row of this.#arrived.all()) {
      const status = row["status"] as SessionStatus;
      if (status === "paused" || isEnded(status)) continue;
      const waits = JSON.parse(row["waits"] as string) as Session["waits"];
      if (isAnsweredBy(waits, row["name"] as string)) this.#addUnlessHeld(row["session_id"] as string);
    }
  }

  #addUnlessHeld(sessionId: string): void {
    // Whoever holds it gives it to `note` with the release.
    if (!this.#heads.isClaimed(sessionId)) this.#ready.add(sessionId);
  }

  /** Leases are rare under one owner (its own never end), so a walk over them is cheaper than an index. */
  #collectLapsed(now: number, limit: number, found: Set<string>): number {
    let nextAt = Infinity;
    for (const sessionId of this.#leased) {
      const head = this.#heads.get(sessionId);
      if (head === undefined) continue;
      const at = dueAt(head.session, head.claim, head.answered);
      if (at > now) nextAt = Math.min(nextAt, at);
      else if (found.size < limit) found.add(sessionId);
    }
    return nextAt;
  }

  #collectTimers(now: number, limit: number, found: Set<string>): void {
    for (let offset = 0; found.size < limit; offset += PAGE_ROWS) {
      const rows = this.#timers.all(now, PAGE_ROWS, offset);
      for (const row of rows) {
        const sessionId = row["session_id"] as string;
        if (found.size < limit && !this.#heads.isClaimed(sessionId)) found.add(sessionId); // I2.
      }
      if (rows.length < PAGE_ROWS) return;
    }
  }

  #nextTimer(now: number): number {
    for (let offset = 0; ; offset += PAGE_ROWS) {
      const rows = this.#nextTimers.all(now, PAGE_ROWS, offset);
      const next = rows.find((row) => !this.#isWatched(row["session_id"] as string));
      if (next !== undefined) return next["due_at"] as number;
      if (rows.length < PAGE_ROWS) return Infinity;
    }
  }

  #deadlineAfter(now: number): number {
    return (this.#nextDeadline.get(now)?.["at"] as number | null) ?? Infinity;
  }

  /** Whether its time in the file does not count: it is claimed, or due already. */
  #isWatched(sessionId: string): boolean {
    return this.#ready.has(sessionId) || this.#heads.isClaimed(sessionId);
  }
}
