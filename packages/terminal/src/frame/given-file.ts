// Files that somebody names: on the command line, in a variable, in the configuration. It does not know what
// is in them.
//
//   - A read that may never end is refused: a named pipe or a device is no file. A stream that a shell has
//     opened (`<(…)`, /dev/stdin) has a writer, and is read.
//   - No more is read than may be.

import { accessSync, closeSync, constants, openSync, readSync, statSync, type Stats } from "node:fs";
import { HoldfastError } from "@holdfast/core";
import { isWritableByOthers } from "@holdfast/system";
import { quoted } from "./plain-text.ts";

const OPEN_ALREADY = /^(\/dev\/stdin|(\/dev|\/proc\/self)\/fd\/\d+)$/;
const CHUNK_BYTES = 64 * 1024;

/** @throws Error with words for what is no file, or what the system says. */
export function checkFile(path: string): Stats {
  const stats = statSync(path);
  if (stats.isDirectory()) throw new Error("it is a folder");
  if (!stats.isFile() && !OPEN_ALREADY.test(path)) throw new Error("it is not a file");
  return stats;
}

/** All of a file. @throws Error with words for one that is none, or that is too large. */
export function readGiven(path: string, bytesMax: number): Buffer {
  const tooLarge = (bytes: string): Error => new Error(`it has ${bytes} bytes; the limit is ${bytesMax}`);
  const { size } = checkFile(path);
  if (size > bytesMax) throw tooLarge(String(size));
  const file = openSync(path, "r");
  try {
    const chunks: Buffer[] = [];
    for (let bytes = 0; ;) {
      const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
      const read = readSync(file, chunk);
      if (read === 0) return Buffer.concat(chunks);
      bytes += read;
      if (bytes > bytesMax) throw tooLarge(`more than ${bytesMax}`);
      chunks.push(chunk.subarray(0, read));
    }
  } finally {
    closeSync(file);
  }
}

/**
 * A file that secrets or settings are read from: links are followed, as the secrets of containers are links.
 *
 * @param note is told of one that other users may read, where that can be changed.
 * @throws HoldfastError `config_invalid` for one that other users may write.
 */
export function checkTrusted(path: string, note?: (warning: string) => void): void {
  const found = lookAtPath(path);
  if (typeof found === "string" || !found.isFile()) return;
  if (isWritableByOthers(found)) {
    const isOfOther = isWritableByOthers({ uid: found.uid, gid: found.gid, mode: 0o600 });
    throw new HoldfastError("config_invalid", `other users may write the file ${path}`, {
      at: path,
      got: `owner ${found.uid}, mode ${(found.mode & 0o7777).toString(8)}`,
      expected: "a file of this user or root that no other user may write",
      fix: isOfOther ? "make a copy of it that this user owns" : `run chmod go-w ${quoted(path)}`,
    });
  }
  if (note === undefined || (found.mode & 0o044) === 0 || found.uid !== process.getuid?.()) return;
  try {
    accessSync(path, constants.W_OK);
  } catch {
    return; // On a read-only mount nobody can change it.
  }
  note(`other users may read ${path}, and a later version refuses that: run chmod 600 ${path}`);
}

/**
 * The file at a path, or the reason why there is none. A link to itself counts as missing, like a link to
 * nowhere.
 */
export function lookAtPath(path: string): Stats | string {
  try {
    return statSync(path);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? "";
  }
}

export function isFolder(path: string): boolean {
  const found = lookAtPath(path);
  return typeof found !== "string" && found.isDirectory();
}

/** The kind of a value, with the value itself only if it can be no secret. */
export function kindOfValue(value: unknown): string {
  if (typeof value === "string") return value === "" ? '""' : "a text";
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" && value !== null ? "an object" : String(value);
}
