// `createPrivate`, `replacePrivate` and `makePrivateFolder`: files that hold a secret, a token or a lock, and
// folders, made for this user alone. An existing folder is taken as it is. `isWritableByOthers` judges files
// that are only read.
//
//   private-file-1. A file is created exclusively (O_EXCL), never through a link (O_NOFOLLOW), with mode 0600
//       whatever the umask. An existing file is never opened but for logs, by `openPrivateAppend`;
//       `replacePrivate` replaces it by a rename. A file is there with its whole content or not at all, also
//       after a kill, which may leave a draft (`*.part`) beside it. Leaky: a file system without hard links,
//       where a new file grows at its path.
//   - Only this user, root and the members of this process's groups can replace the file in its folder. The
//     folder belongs to this user or root, and others may write to it only if it is sticky. Volumes of
//     containers are shared by a group.

import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  type Stats,
} from "node:fs";
import { dirname } from "node:path";
import { HoldfastError } from "@holdfast/core";

const FLAGS = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | (constants.O_NOFOLLOW ?? 0);
// mutant: private-file-readable
const MODE = 0o600;

/**
 * Make a new file (private-file-1) in a folder that is checked.
 *
 * @param syncs whether the file outlasts a power failure. Without it a file is written faster.
 * @throws HoldfastError `config_invalid` for the folder, or an error of the file system, such as `EEXIST`.
 */
export function createPrivate(path: string, content: string | Uint8Array, syncs = true): void {
  const draft = writeDraft(path, content, syncs);
  try {
    linkSync(draft, path); // In one step, and refused where there is a file.
  } catch (error) {
    if (!WITHOUT_LINKS.has((error as NodeJS.ErrnoException).code ?? "")) throw error;
    writeNew(path, content, syncs);
  } finally {
    rmSync(draft, { force: true });
  }
}

const WITHOUT_LINKS: ReadonlySet<string> = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"]);

/** @returns the path of a file beside this one with the content. */
function writeDraft(path: string, content: string | Uint8Array, syncs = true): string {
  checkFolder(dirname(path));
  const draft = `${path}.${randomBytes(6).toString("hex")}.part`;
  writeNew(draft, content, syncs);
  return draft;
}

function writeNew(path: string, content: string | Uint8Array, syncs: boolean): void {
  const file = openSync(path, FLAGS, MODE);
  try {
    fchmodSync(file, MODE); // The umask may have taken even the user's own rights.
    writeFileSync(file, content);
    if (syncs) fsyncSync(file);
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  } finally {
    closeSync(file);
  }
}

/** Open a file to append to, and make it if it is missing. A link at the path is refused. @returns its descriptor. */
export function openPrivateAppend(path: string): number {
  checkFolder(dirname(path));
  const file = openSync(path, (FLAGS & ~constants.O_EXCL) | constants.O_APPEND, MODE);
  fchmodSync(file, MODE);
  return file;
}

/**
 * Make a folder and the folders above it, where they are missing. Node's own `recursive` never returns for a
 * path below `/proc`.
 *
 * @throws HoldfastError `storage_unavailable`
 */
export function makePrivateFolder(path: string): void {
  if (existsSync(path)) return;
  const above = dirname(path);
  if (above !== path) makePrivateFolder(above);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (cause) {
    const { code = "it failed" } = cause as NodeJS.ErrnoException;
    if (code === "EEXIST") return; // Another process made it in between.
    throw new HoldfastError("storage_unavailable", `the folder ${path} cannot be created: ${code}`, {
      at: path,
      got: code,
      fix: "make its parent folder writable for this user, or name another place in XDG_DATA_HOME",
      cause,
    });
  }
}

/** Replace any file at the path with a new one, in one step. @throws as `createPrivate` does. */
export function replacePrivate(path: string, content: string | Uint8Array): void {
  const draft = writeDraft(path, content);
  try {
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}

/** Whether a user other than this one and root may write to a file with these stats, or change its mode. */
export function isWritableByOthers({ uid, gid, mode }: Pick<Stats, "uid" | "gid" | "mode">): boolean {
  const own = process.getuid?.();
  if (own === undefined) return false; // Windows has another permission model.
  if (uid !== own && uid !== 0) return true;
  if ((mode & 0o002) !== 0) return true;
  return (mode & 0o020) !== 0 && gid !== process.getgid?.() && process.getgroups?.().includes(gid) !== true;
}

function checkFolder(folder: string): void {
  const found = statSync(folder);
  const isSticky = (found.mode & 0o1000) !== 0 && (found.uid === 0 || found.uid === process.getuid?.());
  if (isSticky || !isWritableByOthers(found)) return;
  throw new HoldfastError("config_invalid", `other users can replace files in the folder ${folder}`, {
    at: folder,
    got: `owner ${found.uid}, mode ${(found.mode & 0o7777).toString(8)}`,
    expected: "a folder of this user that no other user may write to",
    fix: `run chmod go-w on it as its owner, or choose another folder`,
  });
}
