// The ways to open a SQLite storage. `openSqliteStorage` and `withSqliteStorage` own it, or share it with the
// process that does. `connectSqliteStorage` only shares it, `ownSqliteStorage` only owns it, and
// `openSqliteReader` only reads.

import { setTimeout as sleep } from "node:timers/promises";
import {
  ConflictError,
  HoldfastError,
  type AgentStorage,
  type NewDrafts,
  type StorageReader,
} from "@holdfast/core";
import { bootId } from "../host-presence.ts";
import { Blobs } from "./tables/blobs.ts";
import { connectToOwner, HELLO_TIMEOUT_MS, type SocketStorage } from "./socket/client.ts";
import {
  hasMark,
  inspectDatabase,
  makeMissing,
  openForReading,
  openForWriting,
  writeMark,
  type Mark,
} from "./file/database.ts";
import { assertSqliteVersion, type SqlDriver } from "./file/driver.ts";
import { FileGuard } from "./file/file-guard.ts";
import { acquireOwnership, isListening, readOwner, type OwnerInfo } from "./file/ownership.ts";
import { fileNotFound, resolvePaths, statFile, type DatabasePaths } from "./file/paths.ts";
import { Reads, SqliteReader } from "./engine/reads.ts";
import type { Line } from "./shared-line.ts";
import { SharedStorage } from "./shared-storage.ts";
import { StorageServer } from "./socket/server.ts";
import { toStorageError } from "./file/sql-errors.ts";
import { SqliteStorage } from "./engine/sqlite-storage.ts";
import type { VerifyReport } from "../verify-report.ts";
import { verifyDatabase } from "./engine/verify.ts";

/** Options of the functions that open a SQLite file. */
export interface OpenSqlite {
  /** The database file. Its folder and itself are made when missing, readable by this user only. */
  readonly path: string;
  /** `false` refuses a missing file instead of making it. */
  readonly create?: boolean;
  /** The mark of a database that is made (`isMarkedDatabase`). */
  readonly mark?: Mark;
}

/**
 * How long a process that lost the race for the lock retries while the same process owns it, and how often.
 */
const RACE_MS = 2_000;
const RACE_STEP_MS = 25;
/** Enough to ask a live owner for its pid; a busy one is named from its file. */
const ASK_PID_MS = 500;

/** A storage in a file. */
export interface SqliteFileStorage extends AgentStorage {
  readonly path: string;
}

/**
 * Open a database, whichever process owns it. The first process owns it and serves it to the other processes
 * of this user. When it ends, one of the others owns the database, and what they run goes on.
 *
 * @throws ConflictError `locked` when for two seconds the same process owned it, and could not be reached.
 * @throws HoldfastError when the file cannot be used: `file_not_found`, `corrupt_record`,
 *   `version_unsupported`, `storage_readonly`, `storage_full`, `storage_unavailable`. The file is left as it
 *   was.
 */
export async function openSqliteStorage(open: OpenSqlite): Promise<SqliteFileStorage> {
  return (await reachStorage(open)).storage;
}

/**
 * Own a database: open it for writing and serve it to other processes of this user, until `close`.
 *
 * @throws ConflictError `locked`, naming the owner, when another process owns it.
 * @throws HoldfastError when the file cannot be used: `file_not_found`, `corrupt_record`,
 *   `version_unsupported`, `storage_readonly`, `storage_full`, `storage_unavailable`. The file is left as it
 *   was.
 */
export async function ownSqliteStorage(open: OpenSqlite): Promise<SqliteStorage> {
  return (await ownDatabase(open)).storage;
}

type OwnLine = Extract<Line, { readonly role: "owner" }>;

async function ownDatabase({ path, create = true, mark }: OpenSqlite): Promise<OwnLine> {
  assertSqliteVersion();
  const paths = resolvePaths(path, create);
  // Before the lock, so that a path that cannot be used gets no lock beside it either.
  let isDoubtful = false;
  if (statFile(paths.file) !== undefined) isDoubtful = !isUsable(paths);
  else if (!create) throw fileNotFound(paths.file);

  const info: OwnerInfo = { pid: process.pid, since: Date.now() };
  const ownership = await acquireOwnership(paths, info, bootId());
  if (ownership === undefined) throw await locked(paths);
  let driver: SqlDriver | undefined;
  let guard: FileGuard | undefined;
  let storage: SqliteStorage;
  try {
    if (isDoubtful) inspectDatabase(paths.file);
    const warnings = ownership.wasLeftOpen ? findLoss(paths) : [];
    makeMissing(paths.file, create, mark);
    if (!(await ownership.ownFile())) throw lockedElsewhere(paths);
    driver = openForWriting(paths.file, create, mark);
    guard = new FileGuard(driver, paths.file);
    storage = new SqliteStorage({
      driver,
      guard,
      path: paths.file,
      warnings,
      lastOwner: ownership.hasOwnerDied ? "died" : "closed",
      beforeClose: () => server.close(),
      afterClose: () => ownership.release(),
    });
  } catch (error) {
    guard?.close();
    driver?.close();
    ownership.release();
    throw toStorageError(error, paths.file, "opening it");
  }
  const server = new StorageServer({ storage, paths, info, now: () => Date.now() });
  try {
    await server.listen();
  } catch (error) {
    await storage.close();
    throw error;
  }
  return { role: "owner", storage, processes: server.processes };
}

/** Whether a file is a database. An owner may write it at this moment: then the holder of the lock looks again. */
function isUsable(paths: DatabasePaths): boolean {
  try {
    inspectDatabase(paths.file);
    return true;
  } catch (error) {
    if (statFile(paths.lock) === undefined) throw error;
    return false;
  }
}

/**
 * The storage of a database that another process owns, or `undefined` when nobody owns it. When that process
 * ends, this one goes on over the next owner, or owns the database itself. Claims made here end with `close`.
 */
export async function connectSqliteStorage({
  path,
}: {
  readonly path: string;
}): Promise<SharedStorage | undefined> {
  const paths = findPaths(path);
  const client = paths && (await connectToOwner(paths, HELLO_TIMEOUT_MS));
  return client === undefined ? undefined : shared(path, client);
}

/** The process that owns a database, and those of the sessions that it or another process holds. */
interface OwnerAnswer {
  readonly owner: OwnerInfo;
  readonly claimed: readonly string[];
}

/** Ask the owner of a database, if there is one. Nothing is claimed, and the database gets no new owner. */
export async function askSqliteOwner(
  { path }: { readonly path: string },
  sessionIds: readonly string[],
): Promise<OwnerAnswer | undefined> {
  const paths = findPaths(path);
  const client = paths && (await connectToOwner(paths, HELLO_TIMEOUT_MS));
  if (client === undefined) return undefined;
  try {
    return { owner: client.owner, claimed: await client.claimed(sessionIds) };
  } finally {
    await client.close();
  }
}

/** The drafts of watched sessions, from the owner of the database. Without an owner there are none. */
export async function watchSqliteDrafts(
  { path }: { readonly path: string },
  sessionIds: readonly string[],
  after: number,
): Promise<NewDrafts> {
  const paths = findPaths(path);
  const client = paths && (await connectToOwner(paths, HELLO_TIMEOUT_MS));
  if (client === undefined) return { drafts: [], next: after };
  try {
    return await client.drafts.watch(sessionIds, after);
  } finally {
    await client.close();
  }
}

/**
 * The process that owns a database, by its note. It is asked nothing, so a busy one is found too.
 *
 * @returns its pid and since when, as 0 where its note cannot be read.
 */
export async function findSqliteOwner({ path }: { readonly path: string }): Promise<OwnerInfo | undefined> {
  const paths = findPaths(path);
  if (paths === undefined || !(await isListening(paths))) return undefined;
  return readOwner(paths) ?? { pid: 0, since: 0 };
}

function shared(path: string, client: SocketStorage): SharedStorage {
  const reach = (): Promise<Line> => reachLine({ path, create: false });
  return new SharedStorage({ path, first: { role: "client", storage: client }, reach });
}

/** The way in which `withSqliteStorage` reached the database. */
export type StorageAccess =
  | { readonly role: "client"; readonly storage: SharedStorage; readonly owner: OwnerInfo }
  | { readonly role: "owner"; readonly storage: SqliteStorage };

/**
 * Run `work` on a database: over the socket of its owner, or as its owner until the work is done.
 *
 * @throws ConflictError `locked` when for two seconds the same one owned it, and could not be reached.
 */
export async function withSqliteStorage<T>(
  open: OpenSqlite,
  work: (access: StorageAccess) => Promise<T>,
): Promise<T> {
  const access = await reachStorage(open);
  try {
    return await work(access);
  } finally {
    await access.storage.close();
  }
}

async function reachStorage(open: OpenSqlite): Promise<StorageAccess> {
  const line = await reachLine(open);
  if (line.role === "owner") return line;
  return { role: "client", storage: shared(open.path, line.storage), owner: line.storage.owner };
}

async function reachLine(open: OpenSqlite): Promise<Line> {
  let giveUpAt = performance.now() + RACE_MS;
  let lostTo: number | undefined;
  for (;;) {
    const paths = findPaths(open.path);
    const client = paths === undefined ? undefined : await connectToOwner(paths, HELLO_TIMEOUT_MS);
    if (client !== undefined) return { role: "client", storage: client };
    try {
      return await ownDatabase(open);
    } catch (error) {
      // Between our two tries another process became the owner, or is just closing.
      if (!isLocked(error)) throw error;
      const since = paths && readOwner(paths)?.since;
      if (since !== lostTo) giveUpAt = performance.now() + RACE_MS; // Owners change, so our turn will come.
      else if (performance.now() >= giveUpAt) throw error;
      lostTo = since;
    }
    await sleep(RACE_STEP_MS);
  }
}

function isLocked(error: unknown): boolean {
  return HoldfastError.is(error) && error.code === "locked";
}

/** A reader with a connection of its own. */
export interface SqliteFileReader extends StorageReader {
  readonly path: string;
  /** Read everything and check it. Takes as long as reading the whole file takes. */
  verify(): VerifyReport;
  close(): void;
}

/**
 * Read a database beside a live owner or without one. Never blocks the owner: no transaction outlives a call.
 *
 * @throws HoldfastError as `openSqliteStorage` does; a missing file is `file_not_found`.
 */
export function openSqliteReader({ path }: { readonly path: string }): SqliteFileReader {
  assertSqliteVersion();
  const { file } = resolvePaths(path, false);
  const driver = openForReading(file);
  const guard = <T>(read: () => T): T => {
    try {
      return read();
    } catch (error) {
      throw toStorageError(error, file, "reading");
    }
  };
  try {
    return Object.assign(new SqliteReader(new Reads(driver, file, new Blobs(driver, file)), guard), {
      path: file,
      verify: () => guard(() => verifyDatabase(driver, file)),
      close: () => driver.close(),
    });
  } catch (error) {
    driver.close();
    throw toStorageError(error, file, "opening it");
  }
}

/** Whether a database has this mark. @throws HoldfastError as `openSqliteReader` does. */
export function isMarkedDatabase(path: string, mark: Mark): boolean {
  assertSqliteVersion();
  const driver = openForReading(resolvePaths(path, false).file);
  try {
    return hasMark(driver, mark);
  } finally {
    driver.close();
  }
}

/** Gives a database this mark. @throws ConflictError `locked` when another process owns it. */
export async function markDatabase(path: string, mark: Mark): Promise<void> {
  assertSqliteVersion();
  const paths = resolvePaths(path, false);
  const ownership = await acquireOwnership(paths, { pid: process.pid, since: Date.now() }, bootId());
  if (ownership === undefined) throw await locked(paths);
  try {
    if (!(await ownership.ownFile())) throw lockedElsewhere(paths);
    const driver = openForWriting(paths.file, false);
    try {
      writeMark(driver, mark);
    } finally {
      driver.close();
    }
  } catch (error) {
    throw toStorageError(error, paths.file, "marking it");
  } finally {
    ownership.release();
  }
}

/** The paths of a database that may not exist; `undefined` when not even its folder does. */
function findPaths(path: string): DatabasePaths | undefined {
  try {
    return resolvePaths(path, false);
  } catch (error) {
    if (HoldfastError.is(error) && error.code === "file_not_found") return undefined;
    throw error;
  }
}

async function locked(paths: DatabasePaths): Promise<ConflictError> {
  const owner = (await askOwner(paths)) ?? readOwner(paths);
  const who = owner === undefined || owner.pid === 0 ? "another process" : `process ${owner.pid}`;
  const since =
    owner === undefined || owner.since === 0 ? "" : ` since ${new Date(owner.since).toISOString()}`;
  return new ConflictError("locked", `the database is in use by ${who}${since}: ${paths.file}`, {
    at: paths.file,
    got: `a lock on ${paths.lock}, held by ${who}`,
    expected: "no other owner",
    fix:
      "signals, approvals and cancels reach the running process by themselves; to run agents here as well, " +
      "give this program a database of its own, or end the other process first",
  });
}

/** ownership-4. */
function lockedElsewhere({ file }: DatabasePaths): ConflictError {
  return new ConflictError(
    "locked",
    `the database is in use by another process under another name: ${file}`,
    {
      at: file,
      got: "an owner of the same file by another path",
      expected: "no other owner",
      fix: "give commands the path that the other process uses, or end that process first",
    },
  );
}

async function askOwner(paths: DatabasePaths): Promise<OwnerInfo | undefined> {
  let client: SocketStorage | undefined;
  try {
    client = await connectToOwner(paths, ASK_PID_MS);
    return client?.owner;
  } catch {
    return undefined; // The lock has shown that the owner lives; this call only asks for its pid.
  } finally {
    await client?.close();
  }
}

/**
 * The last owner did not close; then its write-ahead log must be there, and it held what was not yet in the
 * main file.
 */
function findLoss(paths: DatabasePaths): string[] {
  if (statFile(paths.file) === undefined || statFile(paths.wal) !== undefined) return [];
  return [
    `the last process that owned ${paths.file} did not close it, and its write-ahead log ${paths.wal} is gone. What was ` +
      "committed since the last checkpoint of the file may be lost; sessions resume from what the file holds",
  ];
}
