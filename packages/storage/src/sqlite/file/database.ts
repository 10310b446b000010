// openForWriting and openForReading: make a new database file, refuse a foreign one, migrate an old one.
//
//   - A file is inspected before it is opened for writing, by means that change nothing and leave nothing
//     behind. A refused file keeps every byte (D2).
//   - A new database appears whole or not at all: it is made under another name and moved. An empty file is
//     therefore never an unfinished database of ours. It is refused like any other file that is no database.
//   - Only the owner (`ownership.ts`) opens for writing.
//   - No trigger and no view is in a database of ours. A file with one is refused, because a stranger's would
//     act at each commit.

import { accessSync, chmodSync, constants, renameSync, rmSync } from "node:fs";
import { randomUUID } from "node:crypto";
import { dirname } from "node:path";
import { CorruptRecordError, HoldfastError, UnavailableError } from "@holdfast/core";
import { openDriver, type SqlDriver } from "./driver.ts";
import { APPLICATION_ID, migrate, SCHEMA_VERSION } from "./migrations.ts";
import { fileNotFound, pathError, statFile } from "./paths.ts";
import { noteName } from "./other-names.ts";
import { makeEmptyFile, syncPath } from "./plain-files.ts";
import { RESTORE, SQLITE, sqliteCode, toStorageError } from "./sql-errors.ts";

const ID = "id";
const MARK = "mark";

/** Longer waits would only block the event loop: nobody else writes, and readers do not lock us out. */
const BUSY_TIMEOUT_MS = 50;

/**
 * Open for writing; the caller owns the file.
 *
 * @param create make the database when there is no file.
 */
export function openForWriting(file: string, create: boolean, mark?: Mark): SqlDriver {
  makeMissing(file, create, mark);
  // A log is judged by a reader first: the closing of a refused writer would move the log into the file.
  if (hasLog(file)) openForReading(file).close();
  else inspectDatabase(file);
  const driver = openDriver(file, { mode: "write", busyTimeoutMs: BUSY_TIMEOUT_MS });
  return prepared(driver, file, () => {
    assertVersion(driver, file);
    assertPlain(driver, file);
    configure(driver, file);
    // A file that may only be read opens without a word; asking for the right to write does not.
    driver.exec("BEGIN IMMEDIATE; ROLLBACK");
    migrate(driver);
    noteName(driver, file);
  });
}

/**
 * Make the database when there is no file; the caller owns its name.
 *
 * @throws NotFoundError `file_not_found` when it is not to be made.
 */
export function makeMissing(file: string, create: boolean, mark?: Mark): void {
  if (statFile(file) !== undefined) return;
  if (!create) throw fileNotFound(file);
  createDatabase(file, mark);
}

/** Open for reading, beside an owner or without one. */
export function openForReading(file: string): SqlDriver {
  if (statFile(file) === undefined) throw fileNotFound(file);
  inspectDatabase(file);
  try {
    const driver = openDriver(file, { mode: "read", busyTimeoutMs: BUSY_TIMEOUT_MS });
    return prepared(driver, file, () => {
      assertVersion(driver, file);
      assertPlain(driver, file);
    });
  } catch (error) {
    // On a disk that is full or read-only SQLite cannot make the index of a write-ahead log. Without a log it
    // needs none.
    if (!hasLog(file) && isAboutTheDisk(error))
      return openDriver(file, { mode: "immutable", busyTimeoutMs: 0 });
    throw error;
  }
}

function isAboutTheDisk(error: unknown): boolean {
  return (
    HoldfastError.is(error) &&
    ["storage_readonly", "storage_full", "storage_unavailable"].includes(error.code)
  );
}

function hasLog(file: string): boolean {
  return (statFile(`${file}-wal`)?.size ?? 0) > 0;
}

/** Run `work`; when it throws, close the driver and say so in our words. */
function prepared(driver: SqlDriver, file: string, work: () => void): SqlDriver {
  try {
    work();
    return driver;
  } catch (error) {
    driver.close();
    if (sqliteCode(error) === SQLITE.cantopen) assertFolderWritable(file);
    throw toStorageError(error, file, "opening it");
  }
}

/** SQLite says "cannot open" also when it is the log beside the file that cannot be made. */
function assertFolderWritable(file: string): void {
  try {
    accessSync(dirname(file), constants.W_OK);
  } catch (error) {
    throw pathError(error, file);
  }
}

/**
 * Refuse a file that is no database of ours, from the main file alone and without touching it.
 *
 * @throws CorruptRecordError, or HoldfastError `version_unsupported` or `storage_unavailable`.
 */
export function inspectDatabase(file: string): void {
  const stats = statFile(file);
  if (stats === undefined) throw fileNotFound(file);
  if (!stats.isFile()) {
    throw new UnavailableError(
      "storage_unavailable",
      `the database's path is ${stats.isDirectory() ? "a folder" : "no file"}: ${file}`,
      {
        at: file,
        expected: "a file, or a path where one can be made",
        fix: "choose another path, for example one inside the folder",
      },
    );
  }
  if (stats.size === 0) {
    throw new CorruptRecordError(file, "the file is empty, and a database never is", {
      got: "0 bytes",
      expected: "a database made by Holdfast",
      fix: "restore it from a backup, or delete the file to start with an empty database",
    });
  }
  let driver: SqlDriver | undefined;
  try {
    driver = openDriver(file, { mode: "immutable", busyTimeoutMs: 0 });
    if (hasLog(file)) {
      // With a log the file alone need not be whole: a checkpoint may have run out of room half-way. The
      // header's statement of origin is valid all the same. The rest is judged when file and log are opened
      // together.
      driver.exec("PRAGMA writable_schema = ON"); // SQLite then reads the header even of a file that is too short.
      assertVersion(driver, file);
    } else {
      assertVersion(driver, file);
      assertWhole(driver, file, stats.size);
    }
  } catch (error) {
    throw toStorageError(error, file, "opening it");
  } finally {
    driver?.close();
  }
}

function assertVersion(driver: SqlDriver, file: string): void {
  const id = driver.value("PRAGMA application_id");
  const version = Number(driver.value("PRAGMA user_version"));
  if (id !== APPLICATION_ID) {
    throw new CorruptRecordError(file, "the file is a SQLite database, but not one of Holdfast", {
      got: `application id ${String(id)}`,
      expected: `application id ${APPLICATION_ID}`,
      fix: "choose another path; the file was left as it is",
    });
  }
  // mutant: newer-database-opened
  if (version > SCHEMA_VERSION) {
    throw new HoldfastError("version_unsupported", `the database was written by a newer Holdfast: ${file}`, {
      at: file,
      got: `schema version ${version}`,
      expected: `schema version ${SCHEMA_VERSION} or older`,
      fix: "use the newer Holdfast; the file was left as it is",
    });
  }
  if (version < 1)
    throw new CorruptRecordError(file, "the database has no schema version", {
      got: String(version),
      fix: RESTORE,
    });
}

function assertPlain(driver: SqlDriver, file: string): void {
  const found = driver.value("SELECT name FROM sqlite_schema WHERE type IN ('trigger', 'view') LIMIT 1");
  if (found === undefined) return;
  throw new CorruptRecordError(file, "the database has a trigger or a view, and none of Holdfast has one", {
    got: String(found),
    fix: "do not use this file: somebody else has changed it",
  });
}

/** A file that was cut off. A write-ahead log beside it, made since, may hold the rest. */
function assertWhole(driver: SqlDriver, file: string, bytes: number): void {
  const expected = Number(driver.value("PRAGMA page_count")) * Number(driver.value("PRAGMA page_size"));
  if (bytes >= expected || hasLog(file)) return;
  throw new CorruptRecordError(file, "the file was cut off", {
    got: `${bytes} bytes`,
    expected: `${expected} bytes`,
    fix: RESTORE,
  });
}

function createDatabase(file: string, mark: Mark | undefined): void {
  const draft = `${file}-new`;
  const discard = () => {
    for (const suffix of ["", "-journal", "-wal", "-shm"]) rmSync(draft + suffix, { force: true });
  };
  try {
    discard(); // A former owner may have died over it.
    makeEmptyFile(draft);
    chmodSync(draft, 0o600); // Where the umask takes even the user's own rights.
    const driver = openDriver(draft, { mode: "write", busyTimeoutMs: 0 });
    try {
      // Nobody can see the draft before it is moved, so it needs to survive no crash before the one sync
      // below.
      driver.exec("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF");
      migrate(driver);
      noteName(driver, file);
      if (mark !== undefined) writeMark(driver, mark);
      driver.exec("PRAGMA journal_mode = WAL"); // Remembered in the file.
    } finally {
      driver.close();
    }
    syncPath(draft);
    renameSync(draft, file);
    syncPath(dirname(file));
  } catch (error) {
    discard();
    throw sqliteCode(error) === undefined ? pathError(error, file) : toStorageError(error, file, "making it");
  }
}

function configure(driver: SqlDriver, file: string): void {
  const mode = driver.value("PRAGMA journal_mode = WAL");
  if (mode !== "wal") {
    throw new UnavailableError(
      "storage_unavailable",
      `the file system cannot hold a write-ahead log: ${file}`,
      {
        at: file,
        got: `journal mode ${String(mode)}`,
        expected: "a local file system with shared memory",
        fix: "put the database on a local disk",
      },
    );
  }
  // mutant: commit-not-synced
  driver.exec("PRAGMA synchronous = FULL");
  if (process.platform === "darwin") driver.exec("PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON");
  // 8 MiB. The system's own cache of the file holds the rest; twice as much measured no faster.
  driver.exec("PRAGMA cache_size = -8192; PRAGMA temp_store = MEMORY");
  // A burst may leave a long log behind; the next checkpoint gives the room back.
  driver.exec("PRAGMA journal_size_limit = 67108864");
}

/**
 * The mark of a database is a text for its id, by which a caller knows its own databases; `undefined` where
 * there can be none. It must not throw.
 */
export type Mark = (id: string) => string | undefined;

/** Whether the database has the text for its id. */
export function hasMark(driver: SqlDriver, mark: Mark): boolean {
  const [id, text] = [textOf(driver, ID), textOf(driver, MARK)];
  return id !== undefined && text !== undefined && text === mark(id);
}

/** The caller owns the database. */
export function writeMark(driver: SqlDriver, mark: Mark): void {
  const id = textOf(driver, ID) ?? randomUUID();
  const put = driver.prepare("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)");
  put.run(ID, id);
  const text = mark(id);
  if (text !== undefined) put.run(MARK, text);
}

function textOf(driver: SqlDriver, key: string): string | undefined {
  const value = driver.prepare("SELECT value FROM meta WHERE key = ?").get(key)?.["value"];
  if (value === undefined || typeof value === "string") return value;
  throw new HoldfastError("corrupt_record", `the ${key} of the database is no text`);
}
