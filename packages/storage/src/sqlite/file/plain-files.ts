// The only functions of this folder that open files with `node:fs` (`tidy` checks that).
//
// Closing any descriptor of a file drops all POSIX locks that this process holds on it, SQLite's among them.
// A database of ours would then look unowned to every other process. These functions therefore never get a
// file that SQLite may have open in this process; the content of a database is read through SQLite. The
// write-ahead log is the exception: SQLite locks the database and the index of the log, and never the log
// itself.

import { closeSync, fsyncSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";

/** Make an empty file for this user only. It must not exist yet, so nobody has it open. */
export function makeEmptyFile(path: string): void {
  closeSync(openSync(path, "wx", 0o600));
}

/** @param path a folder, or a file that was closed before. */
export function syncPath(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * A descriptor of a write-ahead log, to be closed by `closeLog`.
 *
 * @param path never a database or the index of its log.
 */
export function openLog(path: string): number {
  return openSync(path, "r");
}

export function closeLog(descriptor: number): void {
  closeSync(descriptor);
}

/** @param path a note of ours, never a database. */
export function readNote(path: string): string {
  return readFileSync(path, "utf8");
}

/**
 * Write a note in the place of whatever is there, and never through a link.
 *
 * @param path a note of ours, never a database.
 */
export function writeNote(path: string, text: string): void {
  rmSync(path, { force: true });
  writeFileSync(path, text, { mode: 0o600, flag: "wx" });
}

/** Whether a parsed JSON value is an object, rather than an array, a scalar or null. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
