// The name under which a database with several names is used: `nameInUse`.
//
// SQLite names a write-ahead log after the database's path, and a file with hard links has several paths. A
// log under another name holds acknowledged data, and an owner under another name holds another lock. Every
// command therefore uses the same name of a file.
//
//   - The main file of a database records the name under which its owner last opened it (`noteName`). In a
//     copy or a moved file that name does not lead to the file. Then the path in use is the path that was
//     given.
//   - A name is in use when an owner's note or a log lies beside it. If exactly one known name is in use,
//     that name wins. A database that was made on a full disk records no name, so there only the names in the
//     same folder are known. Two names in use are refused: each may have a log.
//   - A link count of 1 ends the question at the cost of one `stat`.

import { readdirSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { UnavailableError } from "@holdfast/core";
import { openDriver, type SqlDriver } from "./driver.ts";
import { SQLITE, sqliteCode } from "./sql-errors.ts";

const KEY = "path";

/**
 * The path of the database at `file` that everybody uses.
 *
 * @param file a real path; there may be no file.
 * @throws UnavailableError when more than one name of the file is in use.
 */
export function nameInUse(file: string): string {
  const links = statSync(file, { throwIfNoEntry: false });
  // A link count of 1 ends the question at the cost of one `stat`.
  if (links === undefined || !links.isFile() || links.nlink < 2) return file;
  const said = saidName(file);
  const names = namesOf(file, said);
  const used = [...names.values()].filter(isInUse);
  const [only, other] = used;
  if (only !== undefined && other !== undefined) throw severalInUse(file, used);
  if (only !== undefined) return only;
  return said === undefined ? file : (names.get(placeOf(said)) ?? file);
}

/**
 * Record in the database the name that it is used under, before anything is stored under that name. The
 * caller owns the database.
 *
 * @throws UnavailableError when the log beside its last name stayed behind.
 */
export function noteName(driver: SqlDriver, file: string): void {
  const said = readName(driver);
  if (said === file) return;
  if (said !== undefined && identityOf(said) === undefined && isFilled(`${said}-wal`))
    throw logLeftBehind(file, said);
  try {
    driver.prepare("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)").run(KEY, file);
    // Into the main file. A reader may delay that until the next checkpoint; until then only a note or a log
    // tells the name in use.
    driver.value("PRAGMA wal_checkpoint(TRUNCATE)");
  } catch (error) {
    if (sqliteCode(error) !== SQLITE.full) throw error; // On a full disk a database must still open, if only to be read.
  }
}

/** The names of the file that are known, by where they lie: two paths to one folder are one name. */
function namesOf(file: string, said: string | undefined): Map<string, string> {
  const identity = identityOf(file);
  const names = new Map([[placeOf(file), file]]);
  const folder = dirname(file);
  const beside = readdirSync(folder).flatMap((name) => /^(.+)-(?:owner|wal)$/.exec(name)?.[1] ?? []);
  for (const name of [...beside.map((each) => join(folder, each)), ...(said === undefined ? [] : [said])]) {
    if (identityOf(name) !== identity) continue;
    const real = realpathSync(name);
    const place = placeOf(real);
    if (!names.has(place)) names.set(place, real);
  }
  return names;
}

function isInUse(name: string): boolean {
  return isFilled(`${name}-wal`) || identityOf(`${name}-owner`) !== undefined;
}

function isFilled(path: string): boolean {
  return (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0;
}

function placeOf(path: string): string {
  return `${identityOf(dirname(path)) ?? dirname(path)}/${basename(path)}`;
}

/** Device and inode; `undefined` where no file can be found. */
export function identityOf(path: string): string | undefined {
  try {
    const found = statSync(path, { bigint: true });
    return `${found.dev}:${found.ino}`;
  } catch {
    return undefined;
  }
}

/**
 * The name in the main file alone, as its log is not known yet. A file without a readable name gets its error
 * when it is opened.
 */
function saidName(file: string): string | undefined {
  let driver: SqlDriver | undefined;
  try {
    driver = openDriver(file, { mode: "immutable", busyTimeoutMs: 0 });
    return readName(driver);
  } catch {
    return undefined;
  } finally {
    driver?.close();
  }
}

function readName(driver: SqlDriver): string | undefined {
  const said = driver.value(`SELECT value FROM meta WHERE key = '${KEY}'`);
  return typeof said === "string" ? said : undefined;
}

function severalInUse(file: string, used: readonly string[]): UnavailableError {
  return new UnavailableError(
    "storage_unavailable",
    `the database is in use under several names, each with a log of its own: ${file}`,
    {
      at: file,
      got: `the names ${used.join(" and ")}`,
      expected: "one name of the file that has an owner or a write-ahead log",
      fix: "end the processes that use it and open each name with the Holdfast that used it, then use one name only",
    },
  );
}

function logLeftBehind(file: string, said: string): UnavailableError {
  return new UnavailableError(
    "storage_unavailable",
    `the database was last used as ${said}, and its write-ahead log is still there: ${file}`,
    {
      at: file,
      got: `a log at ${said}-wal without a database beside it`,
      expected: "the log beside the database",
      fix: `move ${said}-wal to ${file}-wal; remove it only if it belongs to another database`,
    },
  );
}
