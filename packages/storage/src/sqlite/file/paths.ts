// DatabasePaths: the paths of a database and of the files that belong to it.
//
//   - Two spellings of one path must lead to one lock, so every file is named after the real path. A file
//     with hard links is named after the link in use (`other-names.ts`).
//   - Nobody but the user may read any of it: folders we make are 0700, files 0600, whatever the umask.
//   - Nothing here opens a file with `node:fs` (`plain-files.ts` says why).

import { hash } from "node:crypto";
import { chmodSync, existsSync, lstatSync, mkdirSync, realpathSync, statSync, type Stats } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { HoldfastError, NotFoundError, toError, UnavailableError } from "@holdfast/core";
import { nameInUse } from "./other-names.ts";

export interface DatabasePaths {
  /** The database itself. */
  readonly file: string;
  readonly wal: string;
  /** The lock database (ownership-1). */
  readonly lock: string;
  /** The owner's note: a hint for people, and the sign that an owner ended without closing. */
  readonly owner: string;
  readonly socket: string;
  /** The folder of `socket` when it is not the database's own: its path was too long for a socket. */
  readonly socketFolder: string | undefined;
}

/** A socket's path has 104 bytes on macOS and 108 on Linux. */
const SOCKET_PATH_BYTES = 100;

/**
 * The paths of a database, real as far as they exist.
 *
 * @param create make the missing folder.
 * @throws NotFoundError `file_not_found` when the folder is missing and not to be made.
 * @throws UnavailableError when several hard links of the database are in use.
 */
export function resolvePaths(path: string, create: boolean): DatabasePaths {
  const file = nameInUse(realFile(resolve(path), create));
  const beside = `${file}-socket`;
  const fits = Buffer.byteLength(beside) <= SOCKET_PATH_BYTES;
  const folder = join(tmpdir(), `holdfast-${hash("sha256", file, "hex").slice(0, 24)}`);
  return {
    file,
    wal: `${file}-wal`,
    lock: `${file}-lock`,
    owner: `${file}-owner`,
    socket: fits ? beside : join(folder, "socket"),
    socketFolder: fits ? undefined : folder,
  };
}

function realFile(path: string, create: boolean): string {
  try {
    return realpathSync(path);
  } catch (error) {
    if (errno(error) !== "ENOENT") throw pathError(error, path);
  }
  const folder = dirname(path);
  try {
    // The mode only bears on what is made now; a folder that exists is the user's affair.
    if (create) makeFolders(folder);
    return join(realpathSync(folder), basename(path));
  } catch (error) {
    if (errno(error) === "ENOENT" && !create) throw fileNotFound(path);
    throw pathError(error, path);
  }
}

/**
 * Make a folder of this user alone, and those above it that are missing. Node's own recursive way never
 * returns where a folder is that nothing can be made in, such as /proc.
 */
function makeFolders(folder: string): void {
  const missing: string[] = [];
  for (let at = folder; !existsSync(at) && dirname(at) !== at; at = dirname(at)) missing.unshift(at);
  for (const each of missing) {
    try {
      mkdirSync(each, { mode: 0o700 });
    } catch (error) {
      if (errno(error) !== "EEXIST") throw error; // Somebody else made it meanwhile.
    }
  }
}

/** The file's status, or `undefined` when there is none. Does not open it. */
export function statFile(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch (error) {
    if (errno(error) === "ENOENT") return undefined;
    throw pathError(error, path);
  }
}

/** Make the socket's own folder, and trust it only when nobody else could have made it. */
export function makeSocketFolder(folder: string): void {
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if (errno(error) !== "EEXIST") throw pathError(error, folder);
  }
  if (!isOurFolder(folder)) {
    throw new UnavailableError(
      "storage_unavailable",
      `the folder of the owner's socket belongs to another user: ${folder}`,
      {
        at: folder,
        expected: "a folder of this user that no other user can write",
        fix: "remove it, or use a database with a shorter path",
      },
    );
  }
  chmodSync(folder, 0o700);
}

/**
 * Whether a socket in this folder can only be ours: anyone may make names in the system's temporary folder.
 */
export function isOurFolder(folder: string): boolean {
  try {
    const { uid, mode } = lstatSync(folder);
    const isFolder = (mode & 0o170000) === 0o040000;
    return isFolder && uid === process.getuid?.() && (mode & 0o022) === 0;
  } catch {
    return false;
  }
}

export function errno(thrown: unknown): string | undefined {
  return thrown instanceof Error && "code" in thrown && typeof thrown.code === "string"
    ? thrown.code
    : undefined;
}

export function fileNotFound(path: string): NotFoundError {
  return new NotFoundError("file_not_found", `there is no database at ${path}`, {
    at: path,
    fix: "check the path; `holdfast run` makes a database when it starts the first session",
  });
}

/** An error of the file system about a path, as a `HoldfastError`. */
export function pathError(thrown: unknown, path: string): HoldfastError {
  const code = errno(thrown) ?? toError(thrown).message;
  const details = { at: path, got: toError(thrown).message, cause: thrown };
  switch (code) {
    case "EROFS":
    case "EACCES":
    case "EPERM":
      return new HoldfastError("storage_readonly", `the database cannot be written: ${path} (${code})`, {
        ...details,
        expected: "a folder and files that this user may write",
        fix: "check the permissions and whether the disk is mounted read-only",
      });
    case "ENOSPC":
    case "EDQUOT":
      return new HoldfastError("storage_full", `the disk is full: ${path}`, {
        ...details,
        fix: "make room and try again",
      });
    case "ENOTDIR":
    case "EEXIST":
      return new UnavailableError(
        "storage_unavailable",
        `a part of the database's path is a file, not a folder: ${path}`,
        {
          ...details,
          expected: "a path whose parents are folders",
          fix: "choose another path",
        },
      );
    case "ELOOP":
      return new UnavailableError(
        "storage_unavailable",
        `the database's path runs in a circle of links: ${path}`,
        {
          ...details,
          fix: "choose another path",
        },
      );
    default:
      return new UnavailableError(
        "storage_unavailable",
        `the database's path cannot be used: ${path} (${code})`,
        {
          ...details,
          fix: "choose another path",
        },
      );
  }
}
