// Ownership of a database: `acquireOwnership` makes one process its owner (O13).
//
//   ownership-1. The owner is the process that holds an exclusive lock on a lock database beside the file.
//       The operating system frees the lock at any death. A file's presence, a pid or a time decides nothing,
//       as each can be stale.
//   - A lock can be lost while its owner lives: its file is removed, or code in the owner's process opens and
//     closes it. A process that gets the lock therefore first checks that nobody still listens on the socket.
//     It then holds a name that cannot be deleted (`folder-name.ts`), and only then is the owner.
//   - The note `-owner` holds the owner's pid, start and socket. It serves people, and the next holder of the
//     lock: a note that is left there says that the last owner did not close. Then a write-ahead log must be
//     there. The note names the boot of the machine, which tells the death of a process from a loss of power.
//   ownership-4. The lock is by path, for every version of Holdfast. On Linux the owner also holds a name
//       made of the file's device and inode. Two hard links have one owner even where `other-names.ts` does
//       not know both.

import { rmSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { holdFile, holdName } from "./folder-name.ts";
import { lockFile, type FileLock } from "./lock-file.ts";
import { openSocket } from "./open-socket.ts";
import { errno, isOurFolder, type DatabasePaths } from "./paths.ts";
import { isObject, readNote, writeNote } from "./plain-files.ts";

export interface OwnerInfo {
  readonly pid: number;
  /** Epoch milliseconds. */
  readonly since: number;
}

export interface Ownership {
  readonly info: OwnerInfo;
  /** ownership-4. Own the file that the path leads to by now. `false`: it has an owner under another name. */
  ownFile(): Promise<boolean>;
  /** Whether the owner before did not end by closing. */
  readonly wasLeftOpen: boolean;
  /** Whether the owner before died without closing, and the machine has run since. */
  readonly hasOwnerDied: boolean;
  release(): void;
}

/**
 * Become the owner, or `undefined` when another process (or another part of this one) is.
 *
 * @param boot names the time since the machine was started, where that is known.
 * @throws HoldfastError when the lock cannot be made at all.
 */
export async function acquireOwnership(
  paths: DatabasePaths,
  info: OwnerInfo,
  boot?: string,
): Promise<Ownership | undefined> {
  const lock = lockFile(paths.lock);
  if (lock === undefined) return undefined;
  let releaseName: (() => void) | undefined;
  try {
    releaseName = await outliveOwner(paths);
  } finally {
    if (releaseName === undefined) lock.close();
  }
  if (releaseName === undefined) return undefined;
  const left = readOwnerFile(paths);
  writeOwner(paths, info, boot);
  let releaseFile: (() => void) | undefined;
  return {
    info,
    wasLeftOpen: left !== undefined,
    hasOwnerDied: left !== undefined && left["boot"] === boot,
    async ownFile() {
      releaseFile = await outlive(() => holdFile(paths.file));
      return releaseFile !== undefined;
    },
    release() {
      releaseFile?.();
      release(lock, releaseName, paths);
    },
  };
}

/** A process that is being killed loses its lock first and what it listens on a moment later. */
const DEATH_MS = 500;
const DEATH_STEP_MS = 20;

/** Hold the database's name; `undefined` when an owner that lost its lock still lives. */
function outliveOwner(paths: DatabasePaths): Promise<(() => void) | undefined> {
  return outlive(async () => ((await isListening(paths)) ? undefined : holdName(paths.file)));
}

/** Try until an owner that is being killed is gone. */
async function outlive(hold: () => Promise<(() => void) | undefined>): Promise<(() => void) | undefined> {
  const giveUpAt = performance.now() + DEATH_MS;
  for (;;) {
    const releaseHeld = await hold();
    if (releaseHeld !== undefined || performance.now() >= giveUpAt) return releaseHeld;
    await sleep(DEATH_STEP_MS);
  }
}

/** An owner that is stopped or busy listens as well. */
export async function isListening(paths: DatabasePaths): Promise<boolean> {
  const path = readSocketPath(paths);
  if (paths.socketFolder !== undefined && !isOurFolder(dirname(path))) return false;
  const socket = await openSocket(path);
  socket?.destroy();
  return socket !== undefined;
}

/** The process that claims in its note to own the database. A hint: the process may be dead (ownership-1). */
export function readOwner(paths: DatabasePaths): OwnerInfo | undefined {
  const said = readOwnerFile(paths);
  if (said === undefined) return undefined;
  const { pid, since } = said;
  return typeof pid === "number" && typeof since === "number" ? { pid, since } : { pid: 0, since: 0 };
}

/** Where the owner listens. It may have been started with another temporary folder than we have. */
export function readSocketPath(paths: DatabasePaths): string {
  const socket = paths.socketFolder === undefined ? undefined : readOwnerFile(paths)?.["socket"];
  return typeof socket === "string" ? socket : paths.socket;
}

function readOwnerFile(paths: DatabasePaths): Record<string, unknown> | undefined {
  try {
    const said: unknown = JSON.parse(readNote(paths.owner));
    return isObject(said) ? said : {};
  } catch (error) {
    // Anything else than a missing file: cut off by a crash or not yet written to its end. Somebody was
    // there.
    return errno(error) === "ENOENT" ? undefined : {};
  }
}

function writeOwner(paths: DatabasePaths, { pid, since }: OwnerInfo, boot: string | undefined): void {
  try {
    writeNote(paths.owner, `${JSON.stringify({ pid, since, socket: paths.socket, boot })}\n`);
  } catch {
    // On a full disk a database must still open, if only to be read. The socket also says which process owns
    // it.
  }
}

/** The lock is released last, so that its next holder finds nothing of ours. */
function release(lock: FileLock, releaseName: () => void, paths: DatabasePaths): void {
  try {
    removeSocket(paths);
    if (paths.socketFolder !== undefined) rmSync(paths.socketFolder, { force: true, recursive: true });
    rmSync(paths.owner, { force: true });
  } finally {
    releaseName();
    lock.close();
  }
}

/** Something else may stand in its place, and is not ours to remove. */
function removeSocket({ socket }: DatabasePaths): void {
  try {
    rmSync(socket, { force: true });
  } catch {
    // The next owner that listens there gets the error.
  }
}
