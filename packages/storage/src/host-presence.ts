// Presence: whether another process of this host is gone, proven by a Unix socket that dies with the process.
//
//   - Only one thing proves a death: the socket's own file, in this very kernel, refuses a connection. A
//     process that is stopped or busy still accepts connections, because its kernel does so in its name.
//   - A missing file proves nothing: it may be in another container, or a cleaner removed it. Another file at
//     its path proves nothing either, so the mark names device and inode. The mark names the kernel too,
//     because a network file system or a copied disk shows the same file to another kernel, where nobody
//     listens.
//   - A mark is published only once its owner listens. A clean close removes the file.
//   - macOS refuses a connection also when a queue is full, so there the process id must be unused as well.
//     It has no separate id spaces.
//   - On Linux each start looks at some sockets of the folder. A socket that refuses is noted by an access
//     time of zero, and removed by a start a minute later. Until then peers use it as their proof.

import { lstatSync, lutimesSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { isAbsolute, join } from "node:path";
import { errno, isOurFolder } from "./sqlite/file/paths.ts";

/** Where a process shows that it is there. Plain JSON, to be stored where peers read it. */
export interface PresenceMark {
  /** Names this start of the host's kernel. */
  readonly boot: string;
  readonly socket: string;
  /** Device and inode of the socket's file. */
  readonly file: string;
  readonly pid: number;
}

export interface Presence {
  readonly mark: PresenceMark;
  close(): Promise<void>;
}

/**
 * Listen on a socket of this user's runtime folder for as long as the process lives.
 *
 * @param name a file name that no other process uses, such as a UUID.
 * @returns `undefined` where the host offers no safe way. Peers then find out by time.
 */
export async function showPresence(name: string): Promise<Presence | undefined> {
  const boot = bootId();
  const folder = boot === undefined ? undefined : runtimeFolder();
  if (boot === undefined || folder === undefined) return undefined;
  const socket = join(folder, name);
  const peers = new Set<Socket>();
  const server = createServer((peer) => {
    peers.add(peer.unref());
    peer.on("error", () => undefined);
    peer.on("close", () => peers.delete(peer));
    peer.resume();
  });
  server.unref();
  if (!(await listens(server, socket))) return undefined;
  void removeDeadSockets(folder).catch(() => undefined);
  const file = fileId(socket);
  const close = async (): Promise<void> => {
    for (const peer of peers) peer.destroy();
    await new Promise<void>((resolve) => void server.close(() => resolve()));
  };
  if (file !== undefined) return { mark: { boot, socket, file, pid: process.pid }, close };
  await close();
  return undefined;
}

/** `gone` is proven; `unknown` says nothing about the process. */
export type Found = "gone" | "unknown" | Connected;

/** The process is there, or was a moment ago. */
export interface Connected {
  /** Resolves when the connection ends: then it is worth looking again. */
  readonly ended: Promise<void>;
  leave(): void;
}

/** Look for a process by its mark, and stay connected to it. The connection keeps no process alive. */
export function findPresence(mark: PresenceMark): Promise<Found> {
  if (mark.boot !== bootId() || fileId(mark.socket) !== mark.file) return Promise.resolve("unknown");
  return new Promise((resolve) => {
    const socket = connect(mark.socket);
    const ended = new Promise<void>((end) => void socket.once("close", () => end()));
    socket.on("error", (error) => resolve(isRefusal(error, mark) ? "gone" : "unknown"));
    socket.once("connect", () => {
      socket.unref().resume();
      resolve({ ended, leave: () => void socket.destroy() });
    });
  });
}

/** Remove what a dead process has left. */
export function forgetPresence({ socket, file }: PresenceMark): void {
  if (fileId(socket) === file) rmSync(socket, { force: true });
}

/**
 * How long peers keep the proof of a death. After that they release the claims of a silent process without
 * a proof.
 */
const PROOF_MS = 60_000;
/** How many sockets one start looks at. */
const SOCKETS_LOOKED_AT = 64;

/** Remove sockets that killed processes have left in the runtime folder. */
export async function removeDeadSockets(folder: string, now = Date.now()): Promise<void> {
  if (process.platform !== "linux") return; // A name does not say the process id.
  const names = readdirSync(folder);
  const first = Math.floor(Math.random() * names.length); // Live sockets at the front hide no others.
  const looked = [...names.slice(first), ...names.slice(0, first)].slice(0, SOCKETS_LOOKED_AT);
  for (const name of looked) {
    const path = join(folder, name);
    const file = fileId(path);
    if (file === undefined || !lstatSync(path).isSocket() || !(await refuses(path))) continue;
    if (fileId(path) !== file) continue;
    const { atimeMs, mtimeMs } = lstatSync(path);
    if (atimeMs !== 0) lutimesSync(path, 0, now / 1_000);
    else if (mtimeMs + PROOF_MS <= now) rmSync(path, { force: true });
  }
}

function refuses(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once("error", (error) => resolve(errno(error) === "ECONNREFUSED"));
    socket.once("connect", () => {
      socket.destroy();
      resolve(false);
    });
  });
}

/** Read a mark that was stored. @returns `undefined` for what is none. */
export function readMark(text: string): PresenceMark | undefined {
  try {
    const { boot, socket, file, pid } = JSON.parse(text) as Record<string, unknown>;
    if (typeof boot !== "string" || typeof socket !== "string") return undefined;
    if (typeof file !== "string" || typeof pid !== "number") return undefined;
    return isAbsolute(socket) ? { boot, socket, file, pid } : undefined;
  } catch {
    return undefined;
  }
}

function isRefusal(error: Error, mark: PresenceMark): boolean {
  // The file is checked once more, as its name may belong to another file by now.
  // mutant: any-error-proves-death
  if (errno(error) !== "ECONNREFUSED" || fileId(mark.socket) !== mark.file) return false;
  return process.platform === "linux" || !isInUse(mark.pid);
}

function isInUse(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return errno(error) !== "ESRCH";
  }
}

function listens(server: Server, path: string): Promise<boolean> {
  return new Promise((resolve) => {
    server.once("error", () => resolve(false));
    // `exclusive`: in a cluster the primary would listen, and outlive the worker.
    server.listen({ path, exclusive: true }, () => resolve(true));
  });
}

function fileId(path: string): string | undefined {
  try {
    const { dev, ino } = lstatSync(path, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return undefined;
  }
}

/** A socket's path has 104 bytes on macOS and 108 on Linux, of which a UUID takes 37. */
const FOLDER_BYTES = 64;

/**
 * A folder of this user alone, so that only our processes make names in it. Peers learn it from the mark,
 * wherever their own is.
 */
function runtimeFolder(): string | undefined {
  const folder = join(tmpdir(), `holdfast-${process.getuid?.()}`);
  if (Buffer.byteLength(folder) > FOLDER_BYTES) return undefined;
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch {
    // It is there already, or cannot be made: the check says which.
  }
  return isOurFolder(folder) ? folder : undefined;
}

let knownBoot: { readonly id: string | undefined } | undefined;

/** Names the time since the machine was started; `undefined` where the system does not say. */
export function bootId(): string | undefined {
  return (knownBoot ??= { id: readBootId() }).id;
}

function readBootId(): string | undefined {
  try {
    if (process.platform === "linux") return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    if (process.platform !== "darwin") return undefined;
    const { spawnSync } = process.getBuiltinModule("node:child_process");
    const said = spawnSync("/usr/sbin/sysctl", ["-n", "kern.bootsessionuuid"], { encoding: "utf8" });
    return said.stdout.trim() || undefined;
  } catch {
    return undefined;
  }
}
