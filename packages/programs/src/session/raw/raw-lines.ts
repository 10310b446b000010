// The lines that the program of a turn has written (`RawLines`), as one file that its hash names.
// `readRawLines` reads them again.
//
//   - A turn has one file, compressed, for this user alone. It is in the folder of its session, and is
//     removed after months.
//   - Lines beyond a size are dropped, and the record says so.
//   - A file that cannot be written fails no turn.
//   - A content that differs from its hash is never given to a reader.
//
// The adapter replaces keys before a line comes here.

import { createHash, randomBytes, type Hash } from "node:crypto";
import { closeSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { DAY_MS, MIB } from "@holdfast/core";
import { makePrivateFolder, openPrivateAppend } from "@holdfast/system";

/** Where the lines of a turn are, as the record of the turn names them. */
export interface RawReference {
  /** The folder of the session and the hash of the file, below the folder for raw lines. */
  readonly blob: string;
  readonly lines: number;
  /** Without compression. */
  readonly chars: number;
  readonly isCut: boolean;
}

/** The lines of one turn. */
const CHARS_MAX = 64 * MIB;
/** Lines in memory. */
const WAITING_CHARS = 128 * 1024;
const DAYS = 180;
/** Fast, and a sixth of the size: most lines resemble the one before. */
const COMPRESSION = { level: 1 };
/** The form of the id that a program's session gets from us. The record of an imported session may have another. */
export const OWN_ID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;
const BLOB = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}\/[\da-f]{64}$/;

/** The folder for the lines of programs, beside the copies of their session files. */
export function rawLinesFolder(mirrors: string | undefined): string | undefined {
  return mirrors === undefined ? undefined : join(mirrors, "raw");
}

export class RawLines {
  readonly #folder: string;
  readonly #session: string;
  readonly #hash: Hash = createHash("sha256");
  #waiting: string[] = [];
  #waitingChars = 0;
  #lines = 0;
  #chars = 0;
  #isCut = false;
  #file: { readonly path: string; readonly descriptor: number } | undefined;
  #isBroken = false;

  /** @param folder the folder for raw lines, which need not exist. */
  constructor(folder: string, agentSessionId: string) {
    this.#folder = folder;
    this.#session = agentSessionId;
  }

  add(line: string): void {
    if (this.#chars + line.length > CHARS_MAX) this.#isCut = true;
    if (this.#isCut || this.#isBroken) return;
    this.#lines++;
    this.#chars += line.length + 1;
    this.#waiting.push(line);
    this.#waitingChars += line.length + 1;
    if (this.#waitingChars > WAITING_CHARS) this.#write();
  }

  /** @returns `undefined` for a turn without a line, or whose lines cannot be kept. */
  end(): RawReference | undefined {
    if (this.#waiting.length > 0) this.#write();
    const file = this.#file;
    if (file === undefined) return undefined;
    try {
      closeSync(file.descriptor);
      if (this.#isBroken) throw new Error("a line could not be written");
      const hash = this.#hash.digest("hex");
      renameSync(file.path, join(this.#folder, this.#session, hash));
      const blob = `${this.#session}/${hash}`;
      return { blob, lines: this.#lines, chars: this.#chars, isCut: this.#isCut };
    } catch {
      rmSync(file.path, { force: true }); // A file that cannot be written fails no turn.
      return undefined;
    }
  }

  /** Files of several compressed parts are one compressed file. */
  #write(): void {
    const content = gzipSync(`${this.#waiting.join("\n")}\n`, COMPRESSION);
    this.#waiting = [];
    this.#waitingChars = 0;
    try {
      this.#file ??= this.#open();
      writeSync(this.#file.descriptor, content);
      this.#hash.update(content);
    } catch {
      this.#isBroken = true;
    }
  }

  #open(): { readonly path: string; readonly descriptor: number } {
    const folder = join(this.#folder, this.#session);
    makePrivateFolder(folder);
    const path = join(folder, `${randomBytes(6).toString("hex")}.part`);
    return { path, descriptor: openPrivateAppend(path) };
  }
}

/** @returns the lines, each with its line feed; `undefined` where this machine does not have them, or not as they were. */
export function readRawLines(folder: string, { blob }: Pick<RawReference, "blob">): string | undefined {
  if (!BLOB.test(blob)) return undefined;
  try {
    const content = readFileSync(join(folder, blob));
    const hash = createHash("sha256").update(content).digest("hex");
    return blob.endsWith(`/${hash}`) ? gunzipSync(content).toString("utf8") : undefined;
  } catch {
    return undefined;
  }
}

/** Removes the lines of sessions that have added none for months. */
export function pruneRawLines(folder: string): void {
  const oldest = Date.now() - DAYS * DAY_MS;
  try {
    for (const name of readdirSync(folder)) {
      const path = join(folder, name);
      if (statSync(path).mtimeMs < oldest) rmSync(path, { recursive: true, force: true });
    }
  } catch {
    // Without a folder there is nothing to remove.
  }
}
