// `fileTracer`: writes trace events as lines of JSON to a file, which is rotated at a limit.
//
//   - No session waits for a write: at most `bufferChars` characters are held in memory, and written in the
//     background.
//   - Lines that cannot be held or written are dropped. Once writing works again, the file gets a line with
//     their number. `onProblem` is called when the problem begins. A session never notices.
//   - Only the file's owner may read it (0600), also if it existed before; a link in its place is not
//     followed.
//   - After a write that failed half-way, the next write begins on a new line, so only one line is torn.

import { constants } from "node:fs";
import { setImmediate } from "node:timers";
import { MIB, traceJson, type AgentTracer, type TraceTextOptions } from "@holdfast/core";

/** Options of `fileTracer`. */
export interface FileTracerOptions extends TraceTextOptions {
  /** The file, which is made where it is missing. */
  readonly path: string;
  /** A file of this size becomes `path.1`, and a new one is begun. */
  readonly bytesMax?: number;
  /** How many old files are kept, at least one: `path.1` is the youngest. */
  readonly filesMax?: number;
  /** Characters held back while a write is under way. */
  readonly bufferChars?: number;
  /** Called once each time lines begin to be dropped. Must not throw. */
  readonly onProblem?: (message: string) => void;
}

/** Opens without waiting: a pipe without a reader is refused. */
const FLAGS =
  constants.O_APPEND |
  constants.O_CREAT |
  constants.O_WRONLY |
  constants.O_NOFOLLOW |
  (constants.O_NONBLOCK ?? 0);

/** A tracer that appends a line for each event to a file. */
export function fileTracer(options: FileTracerOptions): AgentTracer {
  return new FileTracer(options);
}

class FileTracer implements AgentTracer {
  readonly #options: Required<Pick<FileTracerOptions, "path" | "bytesMax" | "filesMax" | "bufferChars">> &
    FileTracerOptions;
  #lines: string[] = [];
  #chars = 0;
  #dropped = 0;
  #isTorn = false;
  #writing: Promise<void> | undefined;

  constructor(options: FileTracerOptions) {
    this.#options = { bytesMax: 64 * MIB, filesMax: 3, bufferChars: 8 * MIB, ...options };
  }

  trace(event: Parameters<AgentTracer["trace"]>[0]): void {
    const line = `${traceJson(event, this.#options)}\n`;
    if (this.#chars + line.length > this.#options.bufferChars) {
      this.#drop(1, "more is traced than can be written");
      return;
    }
    this.#lines.push(line);
    this.#chars += line.length;
    // In a turn of its own, so that events of one turn are written together.
    this.#writing ??= new Promise<void>((resolve) => setImmediate(resolve)).then(() => this.#write());
  }

  async flush(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
  }

  async #write(): Promise<void> {
    while (this.#lines.length > 0) {
      const lines = this.#lines;
      this.#lines = [];
      this.#chars = 0;
      const dropped = this.#dropped;
      const note =
        dropped === 0 ? "" : `${JSON.stringify({ type: "dropped", lines: dropped, at: Date.now() })}\n`;
      try {
        // The line of a write that failed half-way ends here, so only it is torn.
        await this.#append(`${this.#isTorn ? "\n" : ""}${note}${lines.join("")}`);
        this.#isTorn = false;
        this.#dropped -= dropped;
      } catch (error) {
        this.#isTorn = true;
        this.#drop(lines.length, (error as Error).message);
      }
    }
    this.#writing = undefined;
  }

  async #append(text: string): Promise<void> {
    const { path, bytesMax } = this.#options;
    const { open } = await import("node:fs/promises");
    let file = await open(path, FLAGS, 0o600);
    try {
      const stats = await file.stat();
      if ((stats.mode & 0o077) !== 0) await file.chmod(0o600);
      if (stats.size >= bytesMax) {
        await this.#rotate();
        await file.close();
        file = await open(path, FLAGS, 0o600);
      }
      await file.writeFile(text);
    } finally {
      await file.close();
    }
  }

  async #rotate(): Promise<void> {
    const { path, filesMax } = this.#options;
    const { rename, rm } = await import("node:fs/promises");
    await rm(`${path}.${filesMax}`, { force: true });
    for (let age = filesMax - 1; age >= 0; age--) {
      await rename(age === 0 ? path : `${path}.${age}`, `${path}.${age + 1}`).catch(
        (error: NodeJS.ErrnoException) => {
          if (error.code !== "ENOENT") throw error;
        },
      );
    }
  }

  #drop(lines: number, why: string): void {
    const isFirst = this.#dropped === 0;
    this.#dropped += lines;
    if (isFirst) this.#options.onProblem?.(`trace lines for ${this.#options.path} are dropped: ${why}`);
  }
}
