// `stampOf`: a text that differs when something was changed of what `git status` says of a repository. It
// starts no process.
//
//   workspace-stamp-1. Equal stamps mean an equal status. Each file that git would look at is in the stamp,
//       with the time of its last change. A program cannot choose that time. Ignored files are left out. The
//       files of ignore rules and git's own files are in it.
//   workspace-stamp-2. There is no stamp where a change could go unseen. That is so after a change a moment
//       ago, and where a file system keeps whole seconds. It is also so with a repository inside of this one,
//       and with references in another form. A caller with time waits for that moment, once.
//   - There is none either where a look at all files would cost more than git.

import { createHash, type Hash } from "node:crypto";
import { existsSync, lstatSync, readdirSync, readFileSync, statSync, type Stats } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { SETTLED_MS } from "./session-files.ts";

export interface Repository {
  readonly root: string;
  readonly gitFolder: string;
}

/** A look at a file takes 3 µs, and a start of git some 5 ms, as measured. */
export const FILES_MAX = 1_000;

/** A timer and the clock of a file may be apart by a little. */
const WAIT_MS = SETTLED_MS + 5;

/** @param ignored the paths that git ignores. @param waits until a change of this moment is in the past. */
export async function stampOf(
  repository: Repository,
  ignored: ReadonlySet<string>,
  waits: boolean,
): Promise<string | undefined> {
  try {
    const stamp = readStamp(repository, ignored);
    if (!waits || !stamp.isRecent) return stamp.text();
    await delay(WAIT_MS);
    return readStamp(repository, ignored).text();
  } catch {
    return undefined; // A file was removed in between, or cannot be read.
  }
}

function readStamp({ root, gitFolder }: Repository, ignored: ReadonlySet<string>): Stamp {
  const stamp = new Stamp();
  const common = commonFolder(gitFolder);
  for (const folder of new Set([gitFolder, common])) {
    // No other folder of git decides which files it lists.
    stamp.folder(folder, (_, entry) => !entry.isDirectory());
    const info = join(folder, "info");
    if (existsSync(info)) stamp.folder(info, (_, entry) => !entry.isDirectory());
  }
  const head = readFileSync(join(gitFolder, "HEAD"), "latin1").trim();
  const name = /^ref: (refs\/.+)$/.exec(head)?.[1];
  if (name !== undefined && !name.endsWith(".invalid")) stamp.reference(join(common, name));
  else if (!/^[\da-f]{40,64}$/.test(head)) stamp.refuse();
  const waiting = [""];
  while (!stamp.isRefused && waiting.length > 0) {
    const folder = waiting.pop()!;
    stamp.folder(join(root, folder), (path, entry) => {
      const inside = folder === "" ? path : `${folder}/${path}`;
      if (path === ".git") {
        if (folder !== "") stamp.refuse(); // workspace-stamp-2.
        return false;
      }
      if (ignored.has(inside)) return false;
      if (entry.isDirectory()) waiting.push(inside);
      return true;
    });
  }
  return stamp;
}

interface Entry {
  isDirectory(): boolean;
}

class Stamp {
  isRefused = false;
  /** It is refused for a change of this moment. */
  isRecent = false;
  readonly #hash: Hash = createHash("sha256");
  readonly #now = Date.now();
  #files = 0;

  refuse(): void {
    this.isRefused = true;
  }

  /** Adds the entries of a folder for which `isPart` says so. */
  folder(path: string, isPart: (name: string, entry: Entry) => boolean): void {
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      if (this.isRefused || !isPart(entry.name, entry)) continue;
      if (++this.#files > FILES_MAX) return this.refuse();
      const file = join(path, entry.name);
      this.#add(file, lstatSync(file));
      if (!entry.isSymbolicLink()) continue;
      const target = statSync(file, { throwIfNoEntry: false });
      if (target !== undefined) this.#add(file, target);
    }
  }

  /** Adds a reference, which may stand in a file with all others instead. */
  reference(path: string): void {
    const text = existsSync(path) ? readFileSync(path, "latin1") : "";
    if (text.startsWith("ref:")) this.refuse();
    this.#hash.update(text);
  }

  text(): string | undefined {
    return this.isRefused ? undefined : this.#hash.digest("base64url");
  }

  #add(path: string, { ctimeMs, size, ino, mode }: Stats): void {
    // workspace-stamp-2.
    const isRecent = Math.abs(this.#now - ctimeMs) < SETTLED_MS;
    this.isRecent ||= isRecent;
    if (isRecent || ctimeMs % 1_000 === 0) this.refuse();
    this.#hash.update(`${path}\0${ctimeMs} ${size} ${ino} ${mode}\0`);
  }
}

/** The folder with what the worktrees of a repository share. */
function commonFolder(gitFolder: string): string {
  const file = join(gitFolder, "commondir");
  return existsSync(file) ? resolve(gitFolder, readFileSync(file, "utf8").trim()) : gitFolder;
}
