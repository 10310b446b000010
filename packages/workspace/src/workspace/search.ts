// Searches the files of a workspace, line by line.
//
// A model's regular expression may never finish (`(a+)+$`), and a thread cannot interrupt itself. Expressions
// therefore run in a separate thread, which is ended when the time is over.

import { clearTimeout, setTimeout } from "node:timers";
import { Worker } from "node:worker_threads";
import { defined, HoldfastError } from "@holdfast/core";

import type { FileContent, FileListing } from "./contained-files.ts";
import type { WorkspaceLimits } from "./limits.ts";

/** A search in the files of a workspace. */
export interface SearchQuery {
  /** The text or the regular expression that is looked for. */
  readonly pattern: string;
  /** The pattern is a JavaScript regular expression; otherwise it is the text itself. */
  readonly isRegex?: boolean;
  readonly ignoreCase?: boolean;
  /** A directory; the root by default. */
  readonly path?: string;
  /** Whether a file is left out. */
  readonly isHidden?: (path: string) => boolean;
}

/** A line that a search found. */
export interface SearchMatch {
  readonly path: string;
  /** From 1. */
  readonly line: number;
  /** The line, cut when it is long. */
  readonly text: string;
}

/** The matches of a search, and whether they are all. */
export interface SearchResult {
  readonly matches: readonly SearchMatch[];
  /** The number of files that were read. */
  readonly filesSearched: number;
  /** The reason why there may be more matches, for people; `undefined` when the list is complete. */
  readonly incomplete?: string;
}

const LINE_CHARS_MAX = 400;

/** @throws HoldfastError `invalid_input` for a pattern that is empty, is no expression, or takes too long. */
export async function searchFiles(
  query: SearchQuery,
  listing: FileListing,
  read: (path: string) => Promise<FileContent>,
  limits: WorkspaceLimits,
  signal: AbortSignal | undefined,
): Promise<SearchResult> {
  const matcher = openMatcher(query);
  const deadline = performance.now() + limits.searchMs;
  const matches: SearchMatch[] = [];
  let filesSearched = 0;
  let incomplete = listing.isCut ? `there are more than ${limits.entries} files` : undefined;
  try {
    for (const path of listing.files) {
      if (query.isHidden?.(path) === true) continue;
      signal?.throwIfAborted();
      const timeLeftMs = deadline - performance.now();
      if (timeLeftMs <= 0) {
        incomplete = `the time of ${limits.searchMs} ms was over after ${filesSearched} files`;
        break;
      }
      // Gone meanwhile, too large or no file: there is nothing in it that could be found.
      const file = await read(path).catch(() => undefined);
      // A link is not followed: the file that it leads to is searched in its own place, if it may be.
      if (file === undefined || file.isBinary || file.path !== path) continue;
      filesSearched += 1;
      for (const { line, text } of await matcher.match(file.text, timeLeftMs)) {
        matches.push({ path: file.path, line, text: cutLine(text) });
      }
      if (matches.length > limits.matches) {
        incomplete = `there are more than ${limits.matches} matches`;
        break;
      }
    }
  } finally {
    await matcher.close();
  }
  return {
    matches: matches.slice(0, limits.matches),
    filesSearched,
    ...defined({ incomplete }),
  };
}

interface Matcher {
  match(text: string, timeMs: number): Promise<readonly { line: number; text: string }[]>;
  close(): Promise<void>;
}

function openMatcher({ pattern, isRegex = false, ignoreCase = false }: SearchQuery): Matcher {
  if (pattern === "") throw new HoldfastError("invalid_input", "the pattern is empty");
  if (!isRegex) return new LiteralMatcher(pattern, ignoreCase);
  try {
    void new RegExp(pattern, ignoreCase ? "i" : "");
  } catch (error) {
    throw new HoldfastError(
      "invalid_input",
      `"${pattern}" is not a regular expression: ${(error as Error).message}`,
      {
        fix: "correct it, or search for the text itself with isRegex: false",
      },
    );
  }
  return new RegexMatcher(pattern, ignoreCase);
}

class LiteralMatcher implements Matcher {
  readonly #isIn: (line: string) => boolean;

  constructor(pattern: string, ignoreCase: boolean) {
    const lower = pattern.toLowerCase();
    this.#isIn = ignoreCase ? (line) => line.toLowerCase().includes(lower) : (line) => line.includes(pattern);
  }

  async match(text: string): Promise<readonly { line: number; text: string }[]> {
    return text
      .split("\n")
      .flatMap((line, index) => (this.#isIn(line) ? [{ line: index + 1, text: line }] : []));
  }

  async close(): Promise<void> {
    // Holds nothing.
  }
}

/** JavaScript as text, so that it is the same whether sources or what was built from them run. */
const REGEX_THREAD = `
  const { parentPort, workerData } = require("node:worker_threads");
  const pattern = new RegExp(workerData.pattern, workerData.flags);
  parentPort.on("message", (text) => {
    const found = [];
    text.split("\\n").forEach((line, index) => {
      if (pattern.test(line)) found.push({ line: index + 1, text: line });
    });
    parentPort.postMessage(found);
  });
`;

class RegexMatcher implements Matcher {
  readonly #pattern: string;
  readonly #worker: Worker;

  constructor(pattern: string, ignoreCase: boolean) {
    this.#pattern = pattern;
    // No environment: an expression needs none.
    this.#worker = new Worker(REGEX_THREAD, {
      eval: true,
      env: {},
      workerData: { pattern, flags: ignoreCase ? "i" : "" },
    });
  }

  match(text: string, timeMs: number): Promise<readonly { line: number; text: string }[]> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(
          new HoldfastError("invalid_input", `the expression "${this.#pattern}" takes too long`, {
            fix: "use one without nested repetitions, or search for literal text",
          }),
        );
      }, timeMs);
      this.#worker.removeAllListeners();
      this.#worker.once("message", (found: readonly { line: number; text: string }[]) => {
        clearTimeout(timer);
        resolve(found);
      });
      this.#worker.once("error", (error: Error) => {
        clearTimeout(timer);
        reject(error);
      });
      this.#worker.postMessage(text);
    });
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }
}

function cutLine(line: string): string {
  return line.length <= LINE_CHARS_MAX
    ? line
    : `${line.slice(0, LINE_CHARS_MAX)}… (${line.length} characters)`;
}
