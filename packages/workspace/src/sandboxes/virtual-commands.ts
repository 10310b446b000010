// Runs commands of a virtual sandbox (`VirtualCommands`), each in a thread that can be ended at any time.
//
//   - A thread runs one command at a time. Commands at the same time get threads of their own, and one idle
//     thread is kept for the next command.
//   - A time-out and an abort end the thread. The output until then is lost, and the result says so.
//   - An idle thread keeps no process alive, and ends soon.
//   - Git of Holdfast's own tools runs on this machine, because the emulated shell has none. The sandbox can
//     change no `.git`, so git finds no program of the sandbox there.

import { delimiter } from "node:path";
import { clearTimeout, setTimeout } from "node:timers";
import { Worker } from "node:worker_threads";
import { defined } from "@holdfast/core";
import { OutputCapture } from "@holdfast/system";

import type { WorkspaceCapabilities } from "../workspace/capabilities.ts";
import { hostCommands, type CommandRunner } from "../workspace/command-runner.ts";
import type { Execution, ExecutionEnd, Launch } from "../workspace/execute.ts";
import type { VirtualCommand, VirtualResult, VirtualThreadData } from "./virtual-thread.ts";

export const VIRTUAL_CAPABILITIES: WorkspaceCapabilities = {
  exec: "emulated",
  files: "workspace",
  pty: false,
  ports: false,
  snapshot: "git_tree",
  changes: "at_once",
  network: "none",
  limits: ["time", "output", "memory", "file_size", "processes"],
  credentials: "hidden",
};

/** The memory of one command. */
const MEMORY_MIB = 512;
/** A thread without a command ends after this time; a process may hold many sandboxes. */
const IDLE_MS = 10_000;
/** The folder for a user of the sandbox. It is empty before each command. */
const HOME = "/home/user";

/** How the thread of a command ended. */
type ThreadEnd =
  | { readonly type: "result"; readonly result: VirtualResult }
  | { readonly type: "stopped"; readonly end: ExecutionEnd }
  | { readonly type: "failed"; readonly message: string };

export class VirtualCommands implements CommandRunner {
  readonly sandbox = "virtual";
  readonly capabilities = VIRTUAL_CAPABILITIES;
  readonly containment =
    "commands run in an emulated shell without processes and network; they can change the files of this folder alone";
  readonly #data: VirtualThreadData;
  readonly #host = hostCommands();
  #idle: VirtualThread | undefined;
  #idleTimer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(data: VirtualThreadData) {
    this.#data = data;
  }

  async run(request: Launch, isOwn: boolean): Promise<Execution> {
    // The emulated shell has no git, and the sandbox can change no `.git`.
    if (isOwn) return this.#host.run(request, isOwn);
    const { command, timeoutMs, signal } = request;
    const startedAt = performance.now();
    const ended =
      signal?.aborted === true
        ? ({ type: "stopped", end: { type: "aborted" } } as const)
        : await this.#runInThread(request, timeoutMs, signal);
    const stdout = new OutputCapture(request.outputBytes / 2);
    const stderr = new OutputCapture(request.outputBytes / 2);
    stdout.push(Buffer.from(ended.type === "result" ? ended.result.stdout : ""));
    stderr.push(Buffer.from(saidOf(ended)));
    const texts = { stdout: stdout.text(), stderr: stderr.text() };
    for (const stream of ["stdout", "stderr"] as const)
      if (texts[stream] !== "") request.onOutput?.(stream, texts[stream]);
    return {
      command,
      end: endOf(ended),
      ...texts,
      isCut: stdout.isCut || stderr.isCut,
      durationMs: Math.round(performance.now() - startedAt),
      isTreeGone: true,
    };
  }

  endTagged(tag: string): Promise<void> {
    return this.#host.endTagged(tag);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#idleTimer);
    await this.#idle?.end();
    this.#idle = undefined;
  }

  async #runInThread(
    request: Launch,
    timeoutMs: number,
    signal: AbortSignal | undefined,
  ): Promise<ThreadEnd> {
    const thread = this.#idle ?? new VirtualThread(this.#data);
    this.#idle = undefined;
    clearTimeout(this.#idleTimer);
    const stopped = Promise.withResolvers<ThreadEnd>();
    const stop = (end: ExecutionEnd) => () => stopped.resolve({ type: "stopped", end });
    const onAbort = stop({ type: "aborted" });
    const timer = setTimeout(stop({ type: "timeout", timeoutMs }), timeoutMs);
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      const command = commandOf(request, this.#data.root);
      const end = await Promise.race([thread.run(command), stopped.promise]);
      if (end.type === "result" && !this.#isClosed && this.#idle === undefined) this.#keep(thread);
      else await thread.end();
      return end;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
    }
  }

  #keep(thread: VirtualThread): void {
    this.#idle = thread;
    thread.rest();
    this.#idleTimer = setTimeout(() => {
      this.#idle = undefined;
      void thread.end();
    }, IDLE_MS).unref();
  }
}

/** The program of a thread. */
export function threadFile(): URL {
  const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
  return new URL(`./virtual-thread.${extension}`, import.meta.url);
}

/** A thread and the command that it runs. */
class VirtualThread {
  readonly #worker: Worker;
  #answer: (end: ThreadEnd) => void = () => {};

  constructor(workerData: VirtualThreadData) {
    this.#worker = new Worker(threadFile(), {
      workerData,
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: MEMORY_MIB },
    });
    this.#worker.on("message", (result: VirtualResult) => this.#answer({ type: "result", result }));
    this.#worker.on("error", ({ message }: Error) => this.#answer({ type: "failed", message }));
    this.#worker.on("exit", () =>
      this.#answer({ type: "failed", message: "the thread of the sandbox ended" }),
    );
  }

  run(command: VirtualCommand): Promise<ThreadEnd> {
    return new Promise((resolve) => {
      this.#answer = resolve;
      this.#worker.ref();
      this.#worker.postMessage(command);
    });
  }

  /** It keeps no process alive until its next command. */
  rest(): void {
    this.#answer = () => {};
    this.#worker.unref();
  }

  async end(): Promise<void> {
    await this.#worker.terminate();
  }
}

/** The programs and the home folder are the shell's own. Folders of the workspace stand behind them. */
function commandOf({ command, cwd, env, input = "", mask }: Launch, root: string): VirtualCommand {
  const added = (env["PATH"] ?? "").split(delimiter).filter((folder) => folder.startsWith(`${root}/`));
  const variables = { ...env, PATH: ["/usr/bin:/bin", ...added].join(":"), HOME, TMPDIR: "/tmp" };
  return { command, cwd, env: variables, input, ...defined({ mask }) };
}

function saidOf(ended: ThreadEnd): string {
  switch (ended.type) {
    case "result":
      return ended.result.stderr;
    case "failed":
      return `${ended.message}\n`;
    case "stopped":
      return "[the command was stopped; the output until then is lost]\n";
  }
}

function endOf(ended: ThreadEnd): ExecutionEnd {
  switch (ended.type) {
    case "result":
      return { type: "exit", exitCode: ended.result.exitCode };
    case "stopped":
      return ended.end;
    case "failed":
      return { type: "signal", signal: "SIGKILL" }; // The thread ran out of memory.
  }
}
