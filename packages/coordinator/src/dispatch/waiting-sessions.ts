// `WaitingSessions` are the known sessions that have something to do and that no runner holds. Storage
// reported them as due, or something arrived for them since.
//
//   - Only storage knows which sessions are due. This cache saves asking it for each poll. The cache is read
//     again every `SCAN_MS` while a poll waits. A claim of a session that is no longer due fails in storage.
//   - A scan reads at most `ROWS_MAX` unknown rows. The next scan reads the rest.
//   - When no session of a full page can be given, the next page is longer. A session behind many that no
//     runner can take is therefore found.
//   waiting-sessions-4. When no poll waits, `prune` removes the sessions that other coordinators have given
//       away.
//   - A session with a damaged row is skipped, and delays no other session.
//
// This class knows runners only by the agents they offer.

import { type AgentStorage, defined, ifCorrupt, isEnded, type Session } from "@holdfast/core";
import { dueSince, type Candidate } from "./rules.ts";

export const SCAN_MS = 1_000;
const PAGE_MIN = 2_000;
const PAGE_MAX = 128_000;
const ROWS_MAX = 500;
/** How many sessions are remembered with their last runner. */
const LAST_RUNNERS_MAX = 50_000;

export class WaitingSessions {
  readonly #storage: AgentStorage;
  #candidates = new Map<string, Candidate>();
  readonly #lastRunners = new Map<string, string>();
  #pageSize = PAGE_MIN;
  #isFull = false;
  /** The ids of due sessions whose rows are not read yet. */
  #unread: string[] = [];

  constructor(storage: AgentStorage) {
    this.#storage = storage;
  }

  get all(): readonly Candidate[] {
    return [...this.#candidates.values()];
  }

  get(sessionId: string): Candidate | undefined {
    return this.#candidates.get(sessionId);
  }

  /** Whether there is more than the last scan has read. */
  get isBehind(): boolean {
    return this.#unread.length > 0;
  }

  /** Asks storage which sessions are due. @returns when to ask again even if nothing arrives. */
  async scan(agents: readonly string[], now: number): Promise<number | undefined> {
    const due = await this.#storage.due({ now, limit: this.#pageSize, agents });
    this.#isFull = due.sessionIds.length >= this.#pageSize;
    const known = this.#candidates;
    this.#candidates = new Map();
    this.#unread = [];
    for (const sessionId of due.sessionIds) {
      const candidate = known.get(sessionId);
      if (candidate === undefined) this.#unread.push(sessionId);
      else this.#candidates.set(sessionId, candidate);
    }
    await this.readMore(now);
    return due.nextAt;
  }

  async readMore(now: number): Promise<void> {
    const ids = this.#unread.splice(0, ROWS_MAX);
    const rows = await Promise.all(
      ids.map((sessionId) => this.#storage.reader.session(sessionId).catch(ifCorrupt)),
    );
    for (const row of rows) if (row !== undefined) this.add(row, now);
  }

  /** waiting-sessions-4. */
  async prune(now: number): Promise<void> {
    const known = [...this.#candidates.keys()];
    const due = new Set((await this.#storage.due({ now, limit: PAGE_MAX })).sessionIds);
    for (const sessionId of known) if (!due.has(sessionId)) this.#candidates.delete(sessionId);
  }

  /** Notes that no session that was found fits a waiting poll. */
  widen(): void {
    this.#pageSize = this.#isFull ? Math.min(this.#pageSize * 2, PAGE_MAX) : PAGE_MIN;
  }

  /** Something arrived for sessions that no known runner holds. */
  async arrived(sessionIds: readonly string[], now: number): Promise<void> {
    const rows = await Promise.all(
      sessionIds.map((sessionId) => this.#storage.reader.session(sessionId).catch(ifCorrupt)),
    );
    for (const row of rows) if (row !== undefined) this.add(row, now);
  }

  /** Adds a session that has something to do. */
  add(session: Session, now: number): void {
    const { suspectSince, losses } = this.get(session.sessionId) ?? {};
    this.#add(session, now, suspectSince === undefined ? {} : { suspectSince, losses: losses ?? 0 });
  }

  /** Adds a session that has something to do and that its last claim showed to be a suspect. */
  suspected(session: Session, now: number, losses: number): void {
    this.#add(session, now, { suspectSince: now, losses });
  }

  #add(session: Session, now: number, suspect: Pick<Candidate, "suspectSince" | "losses">): void {
    if (isEnded(session.status) || session.status === "paused") return;
    const { sessionId, agent, flags, placement, checkpointSeq } = session;
    const lastRunner = this.#lastRunners.get(sessionId);
    this.#candidates.set(sessionId, {
      sessionId,
      agent: agent.name,
      version: agent.version,
      flags,
      since: dueSince(session, now),
      ...placement,
      ...defined({ lastRunner, checkpointSeq }),
      ...suspect,
    });
  }

  /** Removes a session that a runner holds, or that has nothing to do. */
  remove(sessionId: string): void {
    this.#candidates.delete(sessionId);
  }

  /** Notes the runner of a session, which may get it again. */
  ran(sessionId: string, runnerId: string): void {
    this.#lastRunners.delete(sessionId);
    this.#lastRunners.set(sessionId, runnerId);
    for (const oldest of this.#lastRunners.keys()) {
      if (this.#lastRunners.size <= LAST_RUNNERS_MAX) break;
      this.#lastRunners.delete(oldest);
    }
  }
}
