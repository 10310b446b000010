// `CanaryScan` searches everything that a test has made for a secret that must be nowhere. That includes
// files and database pages, output, answers and events, and the arguments and environments of processes.
//
//   - The secret is found in every encoding that `secret-forms.ts` knows, in bytes as they are.
//   - A process is looked at while it lives: `watch` looks at all descendants of a process again and again.
//
// Leaky: the environment and the arguments of a process that lives for less than a look are not seen.

import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync, type Dirent } from "node:fs";
import { join, relative } from "node:path";
import { clearInterval, setInterval } from "node:timers";
import { secretForms } from "@holdfast/system";

const LOOK_MS = 5;

export class CanaryScan {
  /** A new secret, with characters that encodings change. */
  readonly secret: string;
  readonly #forms: readonly Buffer[];
  readonly #found = new Set<string>();
  #looked = 0;

  constructor(secret = `sk-CANARY/${randomBytes(12).toString("hex")}+"&'end`) {
    this.secret = secret;
    this.#forms = secretForms(secret).map((form) => Buffer.from(form));
  }

  /** Where the secret was found: a test expects none. */
  get found(): readonly string[] {
    return [...this.#found].toSorted();
  }

  /** How many texts, files and processes were searched: a test expects more than none. */
  get looked(): number {
    return this.#looked;
  }

  /** @param where names the content in `found`. */
  search(where: string, content: string | Uint8Array): void {
    this.#looked += 1;
    const bytes = Buffer.from(content as string);
    if (this.#forms.some((form) => bytes.includes(form))) this.#found.add(where);
  }

  /**
   * All files below a folder, byte by byte. No link is followed, because it may lead to the root of the
   * machine. Sockets and pipes have no content, and a file may go while it is searched.
   */
  searchFolder(folder: string): void {
    for (const entry of entriesBelow(folder)) {
      const path = join(entry.parentPath, entry.name);
      this.search(`the name of ${path}`, relative(folder, path));
      const content = entry.isFile() ? readIfThere(path) : undefined;
      if (content !== undefined) this.search(path, content);
    }
  }

  /** The arguments and environments of the descendants of a process, now. Only where there is /proc. */
  searchProcesses(root: number = process.pid): void {
    for (const pid of descendantsOf(root)) {
      for (const file of ["cmdline", "environ"]) {
        const content = readProc(`/proc/${pid}/${file}`);
        if (content !== undefined)
          this.search(`${file} of ${readProc(`/proc/${pid}/comm`)?.trim() ?? pid}`, content);
      }
    }
  }

  /**
   * The arguments of all processes of the machine, now: also of those that left their parents. Only where
   * there is /proc.
   */
  searchArguments(): void {
    for (const pid of namesIn("/proc").filter((name) => /^\d+$/.test(name))) {
      const content = readProc(`/proc/${pid}/cmdline`);
      if (content !== undefined)
        this.search(`cmdline of ${readProc(`/proc/${pid}/comm`)?.trim() ?? pid}`, content);
    }
  }

  /** Answers the function that ends it. */
  watch(root: number = process.pid): () => void {
    const timer = setInterval(() => this.searchProcesses(root), LOOK_MS);
    return () => clearInterval(timer);
  }
}

function descendantsOf(root: number): readonly number[] {
  const parents = new Map<number, number>();
  for (const name of namesIn("/proc")) {
    const stat = /^\d+$/.test(name) ? readProc(`/proc/${name}/stat`) : undefined;
    const [, parent] = /^\d+ \(.*\) \S (\d+)/s.exec(stat ?? "") ?? [];
    if (parent !== undefined) parents.set(Number(name), Number(parent));
  }
  const found = new Set([root]);
  for (let known = 0; known < found.size;) {
    known = found.size;
    for (const [pid, parent] of parents) if (found.has(parent)) found.add(pid);
  }
  found.delete(root);
  return [...found];
}

/** Everything below a folder. `readdirSync` with `recursive` would follow links to folders. */
export function* entriesBelow(folder: string): Generator<Dirent> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    yield entry;
    if (!entry.isDirectory()) continue;
    try {
      yield* entriesBelow(join(folder, entry.name));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error; // A program has removed it meanwhile.
    }
  }
}

function readIfThere(path: string): Buffer | undefined {
  try {
    return readFileSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined; // It is gone.
    throw error;
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return []; // Another system.
  }
}

/** `undefined` for a process that has ended meanwhile, or that belongs to another user. */
function readProc(path: string): string | undefined {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return undefined;
  }
}
