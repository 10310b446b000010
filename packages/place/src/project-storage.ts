// `projectStorage`: the database of a project for a process that stays long and owns nothing, such as
// `holdfast ui`. `findDriver`: the process that owns a database, and the sessions that are run.
//
//   - Every read opens the file and closes it, so another process may own the database, move it or replace it
//     at any time. A database that does not exist is empty.
//   - A commit goes through the owner of the database, and without an owner the process owns it for that one
//     commit.
//   - Nothing is claimed.
//   - Changes of other processes are noticed by the times, sizes and numbers of the database's files. These
//     are looked at while something follows, because not every file system announces changes.

import { statSync } from "node:fs";
import { clearInterval, clearTimeout, setInterval, setTimeout } from "node:timers";
import { isLost, type AgentStorage, type Session, type StorageReader } from "@holdfast/core";
import { withReader, withStorage } from "./find-session.ts";
import type { Database } from "./project.ts";

/** How often the files are looked at. */
const LOOK_MS = 40;
/** A busy owner answers late. */
const PATIENCE_MS = 300;
/** The same where nothing else is shown meanwhile. */
const LONG_PATIENCE_MS = 5_000;

export function projectStorage(database: Database): AgentStorage {
  const read =
    <T>(otherwise: T, call: (reader: StorageReader) => Promise<T>) =>
    (): Promise<T> =>
      withReader(database, async (reader) => (reader === undefined ? otherwise : call(reader)));
  const reader: StorageReader = {
    sessions: (query) => read([], (each) => each.sessions(query))(),
    counts: (query) => read({}, (each) => each.counts(query))(),
    session: (id) => read(undefined, (each) => each.session(id))(),
    journal: (id, from, limit) => read([], (each) => each.journal(id, from, limit))(),
    entries: (id, from, limit) => read([], (each) => each.entries(id, from, limit))(),
    pendingSignals: (id) => read([], (each) => each.pendingSignals(id))(),
    seenSignals: (id) => withStorage(database, ({ storage }) => storage.reader.seenSignals(id), false),
    schedules: read([], (each) => each.schedules()),
    document: (collection, id) => read(undefined, (each) => each.document(collection, id))(),
    documents: (query) => read([], (each) => each.documents(query))(),
    audit: (query) => read([], (each) => each.audit(query))(),
  };
  const refuse = (): never => {
    throw new Error("a process that owns nothing claims nothing (project-storage-3)");
  };
  return {
    name: database.path,
    durable: true,
    reader,
    commit: (changes, now) => withStorage(database, ({ storage }) => storage.commit(changes, now), false),
    heldClaims: () => Promise.resolve([]),
    subscribe: () => () => {},
    drafts: {
      async watch(sessionIds, after) {
        const { watchSqliteDrafts } = await import("@holdfast/storage/sqlite");
        return watchSqliteDrafts(database, sessionIds, after);
      },
    },
    follow(_sessionId, onNotice) {
      let before = stateOfFiles(database.path);
      const timer = setInterval(() => {
        const now = stateOfFiles(database.path);
        if (now === before) return;
        before = now;
        onNotice(false);
      }, LOOK_MS);
      return () => clearInterval(timer);
    },
    claim: refuse,
    renew: refuse,
    load: refuse,
    arrivals: refuse,
    conversation: refuse,
    due: refuse,
    close: () => Promise.resolve(),
  };
}

/**
 * A text that differs when the database or its log was written or replaced. The time of a file is coarse. A
 * file that was written just now may be written again at the same time, and therefore has a new state at each
 * look.
 */
function stateOfFiles(path: string): string {
  return ["", "-wal"]
    .map((ending) => {
      const stat = statSync(`${path}${ending}`, { throwIfNoEntry: false });
      if (stat === undefined || stat.size === 0) return ""; // A reader makes an empty log.
      const isFresh = Math.abs(Date.now() - stat.mtimeMs) < COARSE_MS;
      return [stat.ino, stat.size, stat.mtimeMs, isFresh ? performance.now() : ""].join(" ");
    })
    .join("; ");
}

const COARSE_MS = 20;

/** The process that owns a database, and the sessions that may be running. */
export interface Driver {
  readonly pid: number;
  /**
   * Whether a process may be running the session. A session that works is claimed by its process. A
   * session that waits may have left the memory of its process, which claims it again. Where the owner
   * answers too late, it may be running each of them.
   */
  isDriven(session: Session): boolean;
}

/**
 * The owner of a database; `undefined` when there is none.
 *
 * @param sessions those that `isDriven` is asked about.
 */
export async function findDriver(
  { path, coordinator }: Pick<Database, "path" | "coordinator">,
  sessions: readonly Session[] = [],
  patienceMs = PATIENCE_MS,
): Promise<Driver | undefined> {
  if (coordinator !== undefined) return undefined;
  const { askSqliteOwner, findSqliteOwner } = await import("@holdfast/storage/sqlite");
  const ids = sessions.filter(isHeldByDriver).map(({ sessionId }) => sessionId);
  const timer = Promise.withResolvers<undefined>();
  const timeout = setTimeout(timer.resolve, patienceMs, undefined);
  try {
    // An error says no more than silence: the owner is of another version, or it has ended meanwhile.
    const asked = askSqliteOwner({ path }, ids).catch(() => undefined);
    const answer = await Promise.race([asked, timer.promise]);
    if (answer === undefined) {
      const silent = await findSqliteOwner({ path });
      return silent && { pid: silent.pid, isDriven: () => true };
    }
    const claimed = new Set(answer.claimed);
    return {
      pid: answer.owner.pid,
      isDriven: (session) => !isHeldByDriver(session) || claimed.has(session.sessionId),
    };
  } finally {
    clearTimeout(timeout);
  }
}

/** Whether another process may be running the session of this database. */
export async function isRunElsewhere(database: Database, session: Session): Promise<boolean> {
  const driver = await findDriver(database, [session], LONG_PATIENCE_MS);
  if (driver?.isDriven(session) !== true) return false;
  // A process that only looks on owns the database after the one that ran the session has ended.
  return isHeldByDriver(session) || driver.pid !== process.pid;
}

/** Whether only the process that has claimed it can be running it. */
function isHeldByDriver(session: Session): boolean {
  return session.status === "working" || session.status === "cancelling" || isLost(session);
}
