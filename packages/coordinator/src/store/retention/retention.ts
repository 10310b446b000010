// `Retention` removes what a coordinator does not keep any longer: sessions that ended long ago (ST58), and
// old rows of the audit (ST59).
//
//   - A pass begins at the start and then every `PASS_MS`. It walks over the ended sessions, oldest first, and
//     stops at the first one that is too young to have ended long ago.
//   - Nothing is held up for long. A sweep takes at most `STEPS_MAX` steps, and each step is one transaction. It
//     has at most `PAGE` sessions, or one session that has more than `RECORDS_MAX` records.
//   - The next page is read before this one is removed, because a page begins behind a session that is there.
//   - Coordinators that share a storage make their passes side by side. If one of them has removed the session
//     that another would go on behind, the other one begins its walk again.
//   - The sessions of each status and the audit are removed apart. A failure of one, such as a damaged row, is
//     logged, and the others go on. The next pass begins from the oldest session.
//   - The session of a queued task stays while the session that asked for it may read its outcome.

import {
  type AgentStorage,
  askerOf,
  type Clock,
  defined,
  HOUR_MS,
  NotFoundError,
  SESSION_STATUSES,
  isEnded,
  type Session,
  type SessionStatus,
} from "@holdfast/core";

/** How long things are kept, in milliseconds. Things without a time are never removed. */
export interface RetentionTimes {
  /** Sessions, from their end on. */
  readonly sessionsMs?: number;
  /** Rows of the audit. */
  readonly auditMs?: number;
}

export interface RetentionHost {
  readonly storage: AgentStorage;
  readonly clock: Clock;
  readonly warn: (message: string, error: unknown) => void;
}

const PASS_MS = HOUR_MS;
const STEPS_MAX = 10;
const PAGE = 50;
const RECORDS_MAX = 5_000;
const AUDIT_ROWS = 1_000;
const ACTOR = "coordinator";

/** The part of a session that a pass keeps from one sweep to the next, without its input and output. */
interface Row extends Pick<Session, "sessionId" | "createdAt"> {
  readonly endedAt: number | undefined;
  /** The session that asked for it, if it is that of a queued task. */
  readonly asker: string | undefined;
  /** The records and entries that go with it. */
  readonly size: number;
}

export class Retention {
  readonly #host: RetentionHost;
  readonly #times: RetentionTimes;
  #pass: AsyncGenerator<void> | undefined;
  #nextPassAt = -Infinity;

  constructor(host: RetentionHost, times: RetentionTimes = {}) {
    this.#host = host;
    this.#times = times;
  }

  /** Takes the next steps of a pass, if it is time for one. */
  async sweep(): Promise<void> {
    const { clock } = this.#host;
    if (this.#pass === undefined) {
      if (clock.monotonic() < this.#nextPassAt) return;
      this.#nextPassAt = clock.monotonic() + PASS_MS;
      this.#pass = this.#steps();
    }
    for (let step = 0; step < STEPS_MAX; step++) {
      if ((await this.#pass.next()).done !== true) continue;
      this.#pass = undefined;
      return;
    }
  }

  async *#steps(): AsyncGenerator<void> {
    const { sessionsMs, auditMs } = this.#times;
    const now = this.#host.clock.now();
    const parts = [
      ...(sessionsMs === undefined
        ? []
        : SESSION_STATUSES.filter(isEnded).map((status) => this.#remove(status, now - sessionsMs))),
      ...(auditMs === undefined ? [] : [this.#trimAudit(now - auditMs)]),
    ];
    for (const part of parts) {
      try {
        yield* part;
      } catch (error) {
        // A damaged row stops its own part alone.
        this.#host.warn("the coordinator could not remove what it keeps no longer", error);
      }
    }
  }

  async *#remove(status: SessionStatus, endedBefore: number): AsyncGenerator<void> {
    let page = await this.#read(status);
    while (page.length > 0) {
      const last = page.at(-1)!;
      const isLast = page.length < PAGE || last.createdAt >= endedBefore;
      const next = isLast ? [] : await this.#readBehind(status, last.sessionId);
      const old: Row[] = [];
      for (const row of page)
        if (row.endedAt !== undefined && row.endedAt < endedBefore && !(await this.#isUnread(row)))
          old.push(row);
      // A child is younger than its parent, and goes first.
      for (const group of groupsOf(old.toReversed())) {
        await this.#commit(group, endedBefore);
        yield;
      }
      if (old.length === 0) yield;
      page = next;
    }
  }

  async #commit(group: readonly Row[], endedBefore: number): Promise<void> {
    const { storage, clock } = this.#host;
    const sessionIds = group.map(({ sessionId }) => sessionId);
    const change = { type: "remove_ended", sessionIds, endedBefore } as const;
    const audit = { actor: ACTOR, action: "session.expire", object: "sessions" };
    await storage.commit([{ type: "audited", change, audit }], clock.now());
  }

  /** Whether it is a queued task whose outcome its asker may still read. */
  async #isUnread({ asker }: Row): Promise<boolean> {
    if (asker === undefined) return false;
    const session = await this.#host.storage.reader.session(asker);
    return session !== undefined && !isEnded(session.status);
  }

  async #read(status: SessionStatus, before?: string): Promise<readonly Row[]> {
    const { reader } = this.#host.storage;
    const page = await reader.sessions({ status, limit: PAGE, oldestFirst: true, ...defined({ before }) });
    return page.map((session) => ({
      sessionId: session.sessionId,
      createdAt: session.createdAt,
      endedAt: session.endedAt,
      asker: askerOf(session),
      size: session.nextSeq + session.entryCount,
    }));
  }

  /** From the oldest on if the session is not there any more. */
  async #readBehind(status: SessionStatus, before: string): Promise<readonly Row[]> {
    try {
      return await this.#read(status, before);
    } catch (error) {
      if (error instanceof NotFoundError) return this.#read(status);
      throw error;
    }
  }

  async *#trimAudit(before: number): AsyncGenerator<void> {
    const { storage, clock } = this.#host;
    for (;;) {
      const change = { type: "trim_audit", before, limit: AUDIT_ROWS, actor: ACTOR } as const;
      const [result] = await storage.commit([change], clock.now());
      if (result?.status !== "trimmed" || result.rows < AUDIT_ROWS) return;
      yield;
    }
  }
}

function groupsOf(sessions: readonly Row[]): readonly (readonly Row[])[] {
  const groups: Row[][] = [];
  let room = -1;
  for (const session of sessions) {
    if (session.size > room) {
      groups.push([]);
      room = RECORDS_MAX;
    }
    groups.at(-1)!.push(session);
    room -= session.size;
  }
  return groups;
}
