// One supervised process: `SupervisedProcess`, which `ProcessSupervisor` makes.
//
//   supervised-process-1. It runs in its own process group, with exactly the environment that it was given
//       and a marker.
//   - Both pipes are always drained. Output is kept up to a limit, with a mark where it was cut.
//   - The process ends when its program ends. Processes that the program left running are ended with it, and
//     a pipe that is still open delays the report by less than a second.
//   - Time-out, abort and stop: SIGTERM to the whole tree, SIGKILL after the grace. An urgent abort shortens
//     the grace.
//   - The report names the first cause. A program that ends during a stop was stopped.

import type { ChildProcess } from "node:child_process";
import type { Writable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import { clearInterval, clearTimeout, setInterval, setTimeout } from "node:timers";
import { defined, MIB } from "@holdfast/core";

import { OutputCapture } from "./output-capture.ts";
import type { PidNamespace } from "./pid-namespace.ts";
import {
  isUrgentAbort,
  notStarted,
  type ProcessEnd,
  type ProcessExit,
  type StopMeans,
} from "./process-end.ts";
import { endTree, holdsOutputOf, killGroup, signalTree, type ProcessTree } from "./process-tree.ts";
import { within } from "./within.ts";

export interface StartOptions {
  /** The program and its arguments; no shell reads them. */
  readonly argv: readonly [string, ...string[]];
  /** An existing directory. */
  readonly cwd: string;
  /** The whole environment, apart from the marker: see `scrubEnvironment`. */
  readonly env: Readonly<Record<string, string>>;
  /** Given to its standard input, which is empty otherwise. */
  readonly input?: string;
  /** Leaves its standard input open for `write`. */
  readonly keepsInputOpen?: boolean;
  /** Given to its file descriptor 3, which is closed otherwise: for secrets, which no argument or variable may hold. */
  readonly handover?: string;
  /** It is ended after this time; there is no limit otherwise. */
  readonly timeoutMs?: number;
  /** From SIGTERM to SIGKILL. */
  readonly killGraceMs?: number;
  /** Output kept, both streams together. */
  readonly outputBytes?: number;
  /** Called with output as it comes. Must not throw. */
  readonly onOutput?: (stream: "stdout" | "stderr", text: string) => void;
  /** It is ended soon after it has closed its standard output: for a process whose output is a conversation. */
  readonly needsOutput?: boolean;
  /** Its abort stops the process, with the reason `aborted`. */
  readonly signal?: AbortSignal;
  /** Marks the tree, so that `endTagged` finds it, also from another process. */
  readonly tag?: string;
}

export interface ProcessReport {
  readonly end: ProcessEnd;
  readonly stdout: string;
  readonly stderr: string;
  /** Output was left out; the texts carry a mark where. */
  readonly isCut: boolean;
  readonly durationMs: number;
  /** False when a process of the tree could not be ended. */
  readonly isTreeGone: boolean;
}

export interface StopOptions {
  /** Asks the process to end, before any signal. Must not throw. */
  readonly ask?: () => void;
  /** How long the request may take. */
  readonly askMs?: number;
  /** From SIGTERM to SIGKILL; that of the start by default. */
  readonly graceMs?: number;
  /** The request and the grace take half a second each at most, also those of a stop that is under way. */
  readonly isUrgent?: boolean;
}

/** The parts that `ProcessSupervisor` has started for a process. */
export interface Spawned {
  /** `error` is what the system refused with. */
  readonly child: ChildProcess | { readonly error: unknown };
  readonly marker: string;
  readonly namespace: PidNamespace | undefined;
  readonly isCwdThere: boolean;
}

const OUTPUT_BYTES = 10 * MIB;
const KILL_GRACE_MS = 5_000;
/** The most that each step of an urgent stop takes. */
const URGENT_STEP_MS = 500;
/** From the exit of the program to the SIGKILL of what it left behind, and to closing our ends of its pipes. */
const LEFTOVER_GRACE_MS = 300;
const PIPES_OPEN_MS = 400;
/** A killed program whose exit is not reported hangs in the kernel. */
const EXIT_WAIT_MS = 5_000;
/** A program that ends closes its output a moment before. */
const OUTPUT_CLOSED_MS = 1_000;
/** Looks in a row at which no process of a namespace holds the output. */
const OUTPUT_MISSES = 3;

interface Stop {
  readonly end: (means: StopMeans, exit: ProcessExit | undefined) => ProcessEnd;
  readonly options: StopOptions;
}

export class SupervisedProcess {
  /** The id of the program, or of the helper that runs it in a namespace; `undefined` when it did not start. */
  readonly pid: number | undefined;
  /** Settles when nothing of the tree runs any more. Never rejects: how it ended is a value. */
  readonly ended: Promise<ProcessReport>;
  readonly #options: StartOptions;
  readonly #spawned: Spawned;
  readonly #startedAt = performance.now();
  readonly #stopped = Promise.withResolvers<Stop>();
  readonly #isUrgent = Promise.withResolvers<void>();
  readonly #output: Readonly<Record<"stdout" | "stderr", OutputCapture>>;

  constructor(options: StartOptions, spawned: Spawned) {
    this.#options = options;
    this.#spawned = spawned;
    const bytesEach = (options.outputBytes ?? OUTPUT_BYTES) / 2;
    this.#output = { stdout: new OutputCapture(bytesEach), stderr: new OutputCapture(bytesEach) };
    this.pid = "error" in spawned.child ? undefined : spawned.child.pid;
    this.ended = this.#run();
  }

  /** Writes to its standard input. @returns false when the process does not read it any more. */
  write(text: string): Promise<boolean> {
    const input = this.#input();
    if (input === undefined || !input.writable) return Promise.resolve(false);
    return new Promise((resolve) => {
      input.write(text, (error) => resolve(error === null || error === undefined));
    });
  }

  closeInput(): void {
    this.#input()?.end();
  }

  /** Ends the process: by the request, then SIGTERM, then SIGKILL. A later call only waits, or makes the stop urgent. */
  stop(reason: string, options: StopOptions = {}): Promise<ProcessReport> {
    if (options.isUrgent === true) this.#isUrgent.resolve();
    this.#stopped.resolve({
      end: (means, exit) => ({ type: "stopped", reason, means, ...defined({ exit }) }),
      options,
    });
    return this.ended;
  }

  /** Without waiting and without grace: for the moment in which our own process ends. */
  killNow(): void {
    this.#spawned.namespace?.destroyNow();
    if (this.pid !== undefined) killGroup(this.pid);
  }

  #input(): Writable | undefined {
    const { child } = this.#spawned;
    return "error" in child ? undefined : (child.stdin ?? undefined);
  }

  async #run(): Promise<ProcessReport> {
    const { child, marker, namespace } = this.#spawned;
    if ("error" in child || child.pid === undefined) {
      const error =
        "error" in child ? child.error : await new Promise((resolve) => child.once("error", resolve));
      const { argv, cwd } = this.#options;
      await namespace?.destroy();
      return this.#report(notStarted(error, argv[0], this.#spawned.isCwdThere, cwd), true);
    }
    const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
    const exited = new Promise<ProcessExit>((resolve) => {
      child.once("exit", (exitCode, signal) => {
        resolve(signal === null ? { type: "exit", exitCode: exitCode ?? 0 } : { type: "signal", signal });
      });
    });
    child.on("error", () => {});
    this.#drain(child, "stdout");
    this.#drain(child, "stderr");
    this.#feed(child);
    // In a namespace the group's leader is the helper, which reports the program's end and receives no
    // signal.
    const tree: ProcessTree =
      namespace === undefined ? { group: child.pid, marker } : { marker, except: child.pid };
    try {
      const end = await this.#watch(child, tree, exited);
      // Most programs leave nothing behind: their pipes close at once and one look at /proc finds no process.
      const isTreeGone = await endTree(tree, LEFTOVER_GRACE_MS);
      const isNamespaceGone = await (namespace?.destroy() ?? true);
      await within(closed, PIPES_OPEN_MS);
      return this.#report(this.#failedInside(end), namespace === undefined ? isTreeGone : isNamespaceGone);
    } finally {
      for (const pipe of child.stdio) pipe?.destroy();
      child.unref();
    }
  }

  #drain(child: ChildProcess, name: "stdout" | "stderr"): void {
    const { onOutput } = this.#options;
    const decoder = new StringDecoder("utf8");
    child[name]?.on("data", (chunk: Buffer) => {
      this.#output[name].push(chunk);
      const text = onOutput === undefined ? "" : decoder.write(chunk);
      if (text !== "") onOutput?.(name, text);
    });
    child[name]?.on("error", () => {});
  }

  #feed(child: ChildProcess): void {
    const { input, handover, keepsInputOpen = false } = this.#options;
    child.stdin?.on("error", () => {}); // It ended without reading its input (EPIPE).
    if (input !== undefined) child.stdin?.write(input);
    if (!keepsInputOpen) child.stdin?.end();
    const secret = child.stdio[3] as Writable | null | undefined;
    secret?.on("error", () => {});
    secret?.end(handover);
  }

  /** Waits for the exit; ends the process when its time is over or it is no longer wanted. */
  async #watch(child: ChildProcess, tree: ProcessTree, exited: Promise<ProcessExit>): Promise<ProcessEnd> {
    const { timeoutMs, signal, needsOutput = false } = this.#options;
    const onAbort = (): void => void this.stop("aborted", { isUrgent: isUrgentAbort(signal!) });
    const timer =
      timeoutMs === undefined
        ? undefined
        : setTimeout(() => this.#decide({ type: "timeout", timeoutMs }), timeoutMs);
    const watching = needsOutput ? this.#watchOutput(child, tree, exited) : undefined;
    signal?.addEventListener("abort", onAbort, { once: true });
    if (signal?.aborted === true) onAbort();
    try {
      const first = await Promise.race([exited, this.#stopped.promise]);
      if ("type" in first) return first;
      const means = await this.#end(tree, exited, first.options);
      return first.end(means, await Promise.race([exited, Promise.resolve(undefined)]));
    } finally {
      clearTimeout(timer);
      clearInterval(watching);
      signal?.removeEventListener("abort", onAbort);
    }
  }

  #watchOutput(child: ChildProcess, tree: ProcessTree, exited: Promise<unknown>): NodeJS.Timeout | undefined {
    child.stdout?.once("end", () => {
      void within(exited, OUTPUT_CLOSED_MS).then(
        (isOver) => isOver || this.#decide({ type: "output_closed" }),
      );
    });
    if (this.#spawned.namespace === undefined) return undefined;
    // The helper of a namespace holds the output as well, so its pipe does not end. A process that is just
    // changing its program is not found, so one look is not enough.
    let misses = 0;
    return setInterval(() => {
      void holdsOutputOf(tree, child.pid!).then((isHeld) => {
        misses = isHeld ? 0 : misses + 1;
        if (misses >= OUTPUT_MISSES) this.#decide({ type: "output_closed" });
      });
    }, OUTPUT_CLOSED_MS);
  }

  #decide(end: ProcessEnd): void {
    this.#stopped.resolve({ end: () => end, options: {} });
  }

  async #end(tree: ProcessTree, exited: Promise<unknown>, options: StopOptions): Promise<StopMeans> {
    const { ask, askMs = 0, graceMs = this.#options.killGraceMs ?? KILL_GRACE_MS } = options;
    if (ask !== undefined) {
      ask();
      if (await this.#exitsWithin(exited, askMs)) return "request";
    }
    await signalTree(tree, "SIGTERM");
    if (await this.#exitsWithin(exited, graceMs)) return "SIGTERM";
    await signalTree(tree, "SIGKILL");
    const isOver = this.#spawned.namespace?.destroy();
    await within(exited, EXIT_WAIT_MS);
    await isOver;
    return "SIGKILL";
  }

  /** Whether it exits in this time, which an urgent stop shortens. */
  #exitsWithin(exited: Promise<unknown>, ms: number): Promise<boolean> {
    const sooner = this.#isUrgent.promise.then(() => within(exited, Math.min(ms, URGENT_STEP_MS)));
    return Promise.race([within(exited, ms), sooner]);
  }

  /** The helper of a namespace reports a program that the system refused by its own exit code. */
  #failedInside(end: ProcessEnd): ProcessEnd {
    if (this.#spawned.namespace === undefined || end.type !== "exit") return end;
    if (end.exitCode !== 126 && end.exitCode !== 127) return end;
    if (!this.#output.stderr.text().startsWith("nsenter: failed to execute")) return end;
    const { argv, cwd } = this.#options;
    return notStarted({ code: end.exitCode === 127 ? "ENOENT" : "EACCES", message: "" }, argv[0], true, cwd);
  }

  #report(end: ProcessEnd, isTreeGone: boolean): ProcessReport {
    const { stdout, stderr } = this.#output;
    return {
      end,
      stdout: stdout.text(),
      stderr: stderr.text(),
      isCut: stdout.isCut || stderr.isCut,
      durationMs: Math.round(performance.now() - this.#startedAt),
      isTreeGone,
    };
  }
}
