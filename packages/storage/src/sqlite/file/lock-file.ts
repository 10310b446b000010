// `lockFile`: an exclusive lock that the operating system frees at any death of its process.
//
// The lock is SQLite's on a database that stays empty, because Node offers no lock of files itself.

import { chmodSync } from "node:fs";
import { CorruptRecordError } from "@holdfast/core";
import { openDriver, type SqlDriver } from "./driver.ts";
import { errno, pathError } from "./paths.ts";
import { makeEmptyFile } from "./plain-files.ts";
import { SQLITE, sqliteCode, toStorageError } from "./sql-errors.ts";

export type FileLock = Pick<SqlDriver, "close">;

/**
 * Lock a file, which is made if it is missing. `undefined` when another process (or another part of this one)
 * has locked it.
 *
 * @throws HoldfastError when the lock cannot be made at all.
 */
export function lockFile(path: string): FileLock | undefined {
  makeLockFile(path);
  let lock: SqlDriver | undefined;
  try {
    lock = openDriver(path, { mode: "write", busyTimeoutMs: 0 });
    // Nothing is ever written to it; this keeps SQLite from making a journal beside it.
    lock.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    return lock;
  } catch (error) {
    lock?.close();
    const code = sqliteCode(error);
    if (code === SQLITE.busy) return undefined;
    if (code === SQLITE.notadb || code === SQLITE.corrupt) {
      throw new CorruptRecordError(path, "the lock file is damaged", {
        fix: "delete this file; it holds nothing",
        cause: error,
      });
    }
    throw toStorageError(error, path, "locking it");
  }
}

function makeLockFile(path: string): void {
  try {
    // Opened here only if it is new: closing an existing lock file would drop a lock that this process holds.
    makeEmptyFile(path);
    chmodSync(path, 0o600);
  } catch (error) {
    if (errno(error) !== "EEXIST") throw pathError(error, path);
  }
}
