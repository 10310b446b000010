// `SessionFiles`: the hashes and copies of the session files of external agents, as this process has taken
// them.
//
//   session-files-1. A session file grows at its end. Only what was added is read, hashed and added to the
//       copy. A file that was replaced, became shorter, was changed without an addition, or has another end
//       before the addition is read as a whole. Leaky: a change further up together with an addition.
//   session-files-2. The recorded bytes of a copy are never changed. A crash in the middle of an addition
//       leaves more bytes behind them.
//   session-files-3. A file that was not changed since its hash was taken is not read again.

import { createHash, type Hash } from "node:crypto";
import {
  closeSync,
  createReadStream,
  fsyncSync,
  ftruncateSync,
  openSync,
  readSync,
  statSync,
  writeFileSync,
  type Stats,
} from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { makePrivateFolder, openPrivateAppend, replacePrivate } from "@holdfast/system";

import { MIRROR_BYTES_MAX, type SessionFile } from "./restore-receipt.ts";

/** Files whose hashes are kept. */
const KNOWN_MAX = 100;
/** The end of what is known, which must still be there before an addition. */
const END_BYTES = 4 * 1024;
/** The clock of a file system steps by up to 10 ms. */
export const SETTLED_MS = 20;

export type Hashed = Pick<SessionFile, "bytes" | "sha256">;

interface Known extends Hashed {
  /** Changes with every change of the file; `undefined` where a change could go unseen. */
  readonly stamp: string | undefined;
  readonly ino: number;
  readonly hash: Hash;
  readonly end: Buffer;
  /** The copy with exactly these bytes; `undefined` without one. */
  readonly mirror: string | undefined;
}

export class SessionFiles {
  readonly #known = new Map<string, Known>();

  /**
   * Hashes the file, and makes its copy equal to it.
   *
   * @param mirror the path of the copy; `undefined` for none.
   * @returns `null` for a file that cannot be read.
   */
  async keep(path: string, mirror: string | undefined): Promise<SessionFile | null> {
    const facts = factsOf(path);
    if (facts === undefined) return null;
    if (mirror === undefined || facts.size > MIRROR_BYTES_MAX) {
      const hashed = await hashOf(path);
      return hashed && { path, ...hashed, isMirrored: false };
    }
    const last = this.#known.get(path);
    const isCopied = last?.mirror === mirror && sizeOf(mirror) >= last.bytes;
    const added = isCopied ? readAddition(path, last, facts) : undefined;
    const taken = added !== undefined && last !== undefined ? extended(last, added) : await readWhole(path);
    if (taken === undefined) return null;
    const { bytes, hash, end, content } = taken;
    const isMirrored =
      added === undefined ? replaceCopy(mirror, content) : addToCopy(mirror, content, bytes - content.length);
    const sha256 = hash.copy().digest("hex");
    const stamp = stampOf(facts);
    this.#note(path, {
      bytes,
      sha256,
      stamp,
      ino: facts.ino,
      hash,
      end,
      mirror: isMirrored ? mirror : undefined,
    });
    return { path, bytes, sha256, isMirrored };
  }

  /** The hash of the first bytes of a file. */
  async hashOf(path: string, bytes: number): Promise<Hashed | null> {
    const known = this.#known.get(path);
    if (known?.stamp !== undefined && known.bytes === bytes) {
      const facts = factsOf(path);
      if (facts !== undefined && stampOf(facts) === known.stamp) return { bytes, sha256: known.sha256 };
    }
    return hashOf(path, bytes);
  }

  #note(path: string, known: Known): void {
    this.#known.delete(path);
    this.#known.set(path, known);
    const [oldest] = this.#known.keys();
    if (this.#known.size > KNOWN_MAX && oldest !== undefined) this.#known.delete(oldest);
  }
}

type Taken = Pick<Known, "bytes" | "hash" | "end"> & { readonly content: Buffer };

async function readWhole(path: string): Promise<Taken | undefined> {
  const content = await readFile(path).catch(() => undefined);
  return content && extended({ bytes: 0, hash: createHash("sha256"), end: Buffer.alloc(0) }, content);
}

function extended({ bytes, hash, end }: Pick<Known, "bytes" | "hash" | "end">, content: Buffer): Taken {
  return {
    content,
    bytes: bytes + content.length,
    hash: hash.copy().update(content),
    // Without a copy the whole content would stay in memory.
    end: Buffer.concat([end, content.subarray(-END_BYTES)].map((part) => part.subarray(-END_BYTES))).subarray(
      -END_BYTES,
    ),
  };
}

/** session-files-1. @returns `undefined` where the file must be read as a whole. */
function readAddition(path: string, { ino, bytes, end, stamp }: Known, facts: Stats): Buffer | undefined {
  if (facts.ino !== ino || facts.size < bytes) return undefined;
  if (facts.size === bytes && (stamp === undefined || stampOf(facts) !== stamp)) return undefined;
  const from = bytes - end.length;
  try {
    const file = openSync(path, "r");
    try {
      const buffer = Buffer.alloc(facts.size - from);
      const bytesRead = readSync(file, buffer, 0, buffer.length, from);
      const isSame = bytesRead === buffer.length && buffer.subarray(0, end.length).equals(end);
      return isSame ? buffer.subarray(end.length) : undefined;
    } finally {
      closeSync(file);
    }
  } catch {
    return undefined;
  }
}

/** A look at a file by another thread, which must wake up first, takes several times as long. */
export function factsOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

function stampOf({ ino, size, ctimeMs }: Stats): string | undefined {
  const isSettled = Math.abs(Date.now() - ctimeMs) >= SETTLED_MS && ctimeMs % 1_000 !== 0;
  return isSettled ? `${ino} ${size} ${ctimeMs}` : undefined;
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** @returns whether the copy was written. A full disk is no reason to fail a turn. */
function replaceCopy(path: string, content: Buffer): boolean {
  try {
    makePrivateFolder(dirname(path));
    replacePrivate(path, content);
    return true;
  } catch {
    return false;
  }
}

/** session-files-2. @returns whether the copy has the addition. */
function addToCopy(path: string, content: Buffer, bytes: number): boolean {
  try {
    const file = openPrivateAppend(path);
    try {
      ftruncateSync(file, bytes);
      writeFileSync(file, content);
      fsyncSync(file);
      return true;
    } finally {
      closeSync(file);
    }
  } catch {
    return false;
  }
}

/** The hash of the first bytes of a file, or of all of it. */
export async function hashOf(path: string, bytes = Infinity): Promise<Hashed | null> {
  if (factsOf(path) === undefined) return null;
  const hash = createHash("sha256");
  let read = 0;
  try {
    const pieces = createReadStream(path, bytes === Infinity ? {} : { end: Math.max(bytes - 1, 0) });
    for await (const piece of pieces as AsyncIterable<Buffer>) {
      const part = piece.subarray(0, bytes - read);
      hash.update(part);
      read += part.length;
    }
  } catch {
    return null;
  }
  return { bytes: read, sha256: hash.digest("hex") };
}
