// The sessions that have something to do and nobody does, as far as this coordinator knows: what storage last said is due, and what
// has arrived since.
//
//   waiting-sessions-1. Storage alone knows what is due. This is only what need not be asked again for each poll: it is
//       thrown away and read anew every `SCAN_MS` while somebody waits, and whoever claims what is no longer due is
//       told so by storage.
//   waiting-sessions-2. A scan reads at most `ROWS_MAX` rows that it does not know; what it did not get to is read by
//       the next.
//   waiting-sessions-3. When nothing of a full page can be given, the next page is longer: who waits behind many that
//       nobody can take is not passed over.
//   waiting-sessions-4. Where nobody asks, what other coordinators have given away is taken out by `prune`.
//   waiting-sessions-5. One whose row is damaged is passed over, and keeps no other one waiting.
//
// It knows no runners but by the agents they offer.

import { isEnded, type AgentStorage, type Session } from "@holdfast/core";
import { ifCorrupt } from "@holdfast/core/internal";
import { dueSince, type Candidate } from "./rules.ts";

export const SCAN_MS = 1_000;
const PAGE_MIN = 2_000;
const PAGE_MAX = 128_000;
const ROWS_MAX = 500;
/** So many sessions are remembered by who ran them last. */
const LAST_RUNNERS_MAX = 50_000;

export class WaitingSessions {
  readonly #storage: AgentStorage;
  #candidates = new Map<string, Candidate>();
  readonly #lastRunners = new Map<string, string>();
  #pageSize = PAGE_MIN;
  #isFull = false;
  /** Ids that storage said are due, and whose rows are not read. */
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

  /** Whether there is more than the last scan read. */
  get isBehind(): boolean {
    return this.#unread.length > 0;
  }

  /** Ask storage what is due (waiting-sessions-1). @returns when to ask again although nothing arrives. */
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

  /** waiting-sessions-2. */
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

  /** waiting-sessions-3. Nothing that was found can be given to those who wait. */
  widen(): void {
    this.#pageSize = this.#isFull ? Math.min(this.#pageSize * 2, PAGE_MAX) : PAGE_MIN;
  }

  /** Something arrived at a session that nobody holds as far as is known. */
  async arrived(sessionIds: readonly string[], now: number): Promise<void> {
    const rows = await Promise.all(
      sessionIds.map((sessionId) => this.#storage.reader.session(sessionId).catch(ifCorrupt)),
    );
    for (const row of rows) if (row !== undefined) this.add(row, now);
  }

  /** It has something to do. */
  add(session: Session, now: number): void {
    this.#add(session, now, this.get(session.sessionId)?.suspectSince);
  }

  /** It has something to do, and is a suspect, as who claimed it was told. */
  suspected(session: Session, now: number): void {
    this.#add(session, now, now);
  }

  #add(session: Session, now: number, suspectSince: number | undefined): void {
    if (isEnded(session.status) || session.status === "paused") return;
    const { sessionId, agent, placement } = session;
    const lastRunner = this.#lastRunners.get(sessionId);
    this.#candidates.set(sessionId, {
      sessionId,
      agent: agent.name,
      version: agent.version,
      since: dueSince(session, now),
      ...placement,
      ...(lastRunner === undefined ? {} : { lastRunner }),
      ...(suspectSince === undefined ? {} : { suspectSince }),
    });
  }

  /** It is somebody's, or there is nothing to do for it. */
  remove(sessionId: string): void {
    this.#candidates.delete(sessionId);
  }

  /** It runs there: when it comes back, it may go there again. */
  ran(sessionId: string, runnerId: string): void {
    this.#lastRunners.delete(sessionId);
    this.#lastRunners.set(sessionId, runnerId);
    for (const oldest of this.#lastRunners.keys()) {
      if (this.#lastRunners.size <= LAST_RUNNERS_MAX) break;
      this.#lastRunners.delete(oldest);
    }
  }
}
