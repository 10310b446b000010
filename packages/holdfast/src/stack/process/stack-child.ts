// One process of the local stack, or of a runner that starts another one (`StackChild`): its start, what it
// reports, and its end.
//
//   - The process carries a marker in its environment, and so does all that it starts. After its death the
//     marker finds what is left.
//   - A channel connects it with the supervisor. The channel closes with either of them.
//   - It has a process group of its own, so that Ctrl-C reaches the supervisor alone.
//   - A line that it writes is logged up to LINE_CHARS; the rest of the line is read and dropped.

import { spawn, type ChildProcess } from "node:child_process";
import type { Readable } from "node:stream";
import { clearTimeout, setTimeout } from "node:timers";
import { HoldfastError } from "@holdfast/core";
import { errorOf } from "@holdfast/terminal/frame/command-error";
import type { Order, Report } from "./supervisor-link.ts";

export interface ChildOptions {
  readonly component: "coordinator" | "runner";
  /** The program and its arguments. */
  readonly argv: readonly [string, ...string[]];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The value of its marker. */
  readonly marker: string;
  /** Called with each line that it writes. */
  readonly log: (line: string) => void;
  readonly onReport: (report: Report) => void;
}

/** A process that runs steps is ended by force this long after its grace. */
export const KILL_AFTER_MS = 4_000;

const LINE_CHARS = 64 * 1024;

type ReportOf<T extends Report["type"]> = Extract<Report, { type: T }>;

export class StackChild {
  readonly component: ChildOptions["component"];
  readonly marker: string;
  readonly pid: number | undefined;
  /** Resolves with the end as a text for people. Never rejects. */
  readonly ended: Promise<string>;
  readonly #child: ChildProcess;
  readonly #reports = new Map<Report["type"], Report>();
  #onReport = Promise.withResolvers<void>();
  #isOver = false;

  constructor(options: ChildOptions) {
    const { component, argv, cwd, env, marker, log, onReport } = options;
    this.component = component;
    this.marker = marker;
    const [program, ...args] = argv;
    this.#child = spawn(program, args, {
      cwd,
      env,
      detached: true, // Ctrl-C reaches the supervisor alone.
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    this.pid = this.#child.pid;
    this.#child.on("message", (message) => {
      const report = message as Report;
      this.#reports.set(report.type, report);
      onReport(report);
      this.#wake();
    });
    for (const stream of [this.#child.stdout, this.#child.stderr]) readLines(stream as Readable, log);
    this.ended = new Promise((resolve) => {
      const end = (text: string): void => {
        this.#isOver = true;
        resolve(text);
        this.#wake();
      };
      this.#child.on("error", (error) => end(`could not be started: ${error.message}`));
      this.#child.on("exit", (code, signal) =>
        end(signal === null ? `exit code ${code}` : `ended by ${signal}`),
      );
    });
  }

  /** The first report of a type. @throws HoldfastError when the process reports a failure or ends before. */
  async reported<T extends Report["type"]>(type: T): Promise<ReportOf<T>> {
    for (;;) {
      const report = this.#reports.get(type);
      if (report !== undefined) return report as ReportOf<T>;
      const failed = this.#reports.get("failed") as ReportOf<"failed"> | undefined;
      if (failed !== undefined) throw errorOf(failed.error);
      if (this.#isOver)
        throw new HoldfastError(
          "agent_error",
          `the ${this.component} ended before it was ready: ${await this.ended}`,
          {
            fix: "run `holdfast local logs` to see what it wrote",
          },
        );
      await this.#onReport.promise;
    }
  }

  order(order: Order): void {
    if (this.#child.connected) this.#child.send(order, () => {});
  }

  /** Asks it to end, and ends it by force after a time. Resolves when it has ended. */
  async stop(graceMs: number): Promise<void> {
    this.terminate();
    const timer = setTimeout(() => this.kill(), graceMs);
    await this.ended;
    clearTimeout(timer);
  }

  /** The second time it hands over at once. */
  terminate(): void {
    this.#child.kill("SIGTERM");
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }

  #wake(): void {
    this.#onReport.resolve();
    this.#onReport = Promise.withResolvers<void>();
  }
}

function readLines(stream: Readable, log: (line: string) => void): void {
  let line = "";
  let isCut = false;
  const end = (): void => {
    if (!isCut) log(line.replace(/\r$/, ""));
    line = "";
    isCut = false;
  };
  stream.setEncoding("utf8");
  stream.on("error", () => {});
  stream.on("data", (text: string) => {
    const parts = text.split("\n");
    for (const [index, part] of parts.entries()) {
      if (index > 0) end();
      if (isCut) continue;
      line += part;
      if (line.length <= LINE_CHARS) continue;
      log(`${line.slice(0, LINE_CHARS)}… (a line longer than ${LINE_CHARS} characters)`);
      isCut = true;
    }
  });
  stream.on("end", () => {
    if (line !== "") end();
  });
}
