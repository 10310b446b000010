// toStorageError: SQLite's errors as ours, with what happened, which file, and what to do about it.

import {
  CorruptRecordError,
  HoldfastError,
  InvariantError,
  toError,
  UnavailableError,
  type ErrorDetails,
} from "@holdfast/core";

/** SQLite's primary result codes that mean something to a person. */
export const SQLITE = {
  error: 1,
  perm: 3,
  busy: 5,
  locked: 6,
  readonly: 8,
  ioerr: 10,
  corrupt: 11,
  full: 13,
  cantopen: 14,
  toobig: 18,
  constraint: 19,
  mismatch: 20,
  range: 25,
  notadb: 26,
} as const;

/** Codes by which SQLite refuses a statement because of its values. */
const OF_ONE_CHANGE: ReadonlySet<number> = new Set([
  SQLITE.error,
  SQLITE.toobig,
  SQLITE.constraint,
  SQLITE.mismatch,
  SQLITE.range,
]);

/** Our error codes for failures of the file system. */
const OF_THE_FILE: ReadonlySet<string> = new Set(["storage_lost", "storage_unavailable", "storage_readonly"]);

/** The `-shm` file could not grow: on a full disk this comes instead of `full`. */
const IOERR_SHMSIZE = 10 | (19 << 8);

/** The primary result code of an error that SQLite raised; `undefined` for any other error. */
export function sqliteCode(thrown: unknown): number | undefined {
  return extendedCode(thrown) === undefined ? undefined : extendedCode(thrown)! & 0xff;
}

function extendedCode(thrown: unknown): number | undefined {
  if (!(thrown instanceof Error) || !("errcode" in thrown) || typeof thrown.errcode !== "number")
    return undefined;
  return thrown.errcode;
}

/**
 * Whether the error blames the environment rather than one change of a group. Trying the changes one by one
 * would then only fail again.
 */
export function isEnvironmental(thrown: unknown): boolean {
  if (HoldfastError.is(thrown)) return OF_THE_FILE.has(thrown.code);
  const code = sqliteCode(thrown);
  return code !== undefined && !OF_ONE_CHANGE.has(code);
}

/** Why one change of a group was not applied, for people. */
export function describeRefusal(thrown: unknown): string {
  if (HoldfastError.is(thrown)) return thrown.message;
  return `the database refused it: ${toError(thrown).message}`;
}

/**
 * Anything thrown while a file was used, as an error of ours.
 *
 * @param doing completes "while …", for example `committing`.
 */
export function toStorageError(thrown: unknown, path: string, doing: string): HoldfastError {
  if (HoldfastError.is(thrown)) return thrown;
  const extended = extendedCode(thrown);
  const text = toError(thrown).message;
  const details = (expected: string, fix: string): ErrorDetails => ({
    at: path,
    got: extended === undefined ? text : `${text} (SQLite ${extended})`,
    expected,
    fix,
    cause: thrown,
  });
  if (extended === undefined) return new InvariantError(`${text}, while ${doing} in ${path}`);
  if (extended === IOERR_SHMSIZE) return fullError(path, doing, details);

  switch (extended & 0xff) {
    case SQLITE.full:
      return fullError(path, doing, details);
    case SQLITE.readonly:
    case SQLITE.perm:
      return new HoldfastError(
        "storage_readonly",
        `the database cannot be written, while ${doing}: ${path}`,
        details(
          "a file and a folder that this user may write",
          "check the permissions and whether the disk is mounted read-only",
        ),
      );
    case SQLITE.busy:
    case SQLITE.locked:
      return new UnavailableError(
        "storage_unavailable",
        `another program holds the database, while ${doing}: ${path}`,
        details(
          "no other program writing to this file",
          "close programs that have the file open (such as a SQLite shell) and try again",
        ),
      );
    case SQLITE.corrupt:
      return new CorruptRecordError(path, "the database is damaged", details("an intact database", RESTORE));
    case SQLITE.notadb:
      return new CorruptRecordError(
        path,
        "the file is no SQLite database",
        details("a database made by Holdfast", RESTORE),
      );
    case SQLITE.cantopen:
      return new UnavailableError(
        "storage_unavailable",
        `the database cannot be opened: ${path}`,
        details(
          "a file this user may open, in a folder that exists",
          "check the path and the permissions of its folder",
        ),
      );
    case SQLITE.ioerr:
      return new UnavailableError(
        "storage_unavailable",
        `the disk failed, while ${doing}: ${path}`,
        details(
          "a disk that reads and writes",
          "check the disk and the system's log; what was acknowledged before is kept",
        ),
      );
    default:
      return new UnavailableError(
        "storage_unavailable",
        `the database refused a statement, while ${doing}: ${path}`,
        details("a statement that succeeds", "report this with the message above"),
      );
  }
}

/** The way out of an error of a file that cannot be used. */
export const RESTORE =
  "the file was left as it is. Restore it from a backup, or move it and its -wal away to start with an empty database";

function fullError(
  path: string,
  doing: string,
  details: (expected: string, fix: string) => ErrorDetails,
): HoldfastError {
  return new HoldfastError(
    "storage_full",
    `the disk is full, while ${doing}: ${path}`,
    details(
      "room on the disk of the database",
      "make room; nothing was applied, what was acknowledged before is kept, and the next commit works without a restart",
    ),
  );
}
