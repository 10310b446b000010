// Runs one command (`launch`): starts it, watches it, ends it, and reports exactly how it ended.
//
//   execute-1. The command runs in its own process group, with a scrubbed environment that carries a marker.
//   execute-2. Both pipes are always drained; output is kept up to a limit.
//   execute-3. The command ends when its process ends. Processes that it left running are ended with it, and
//       a pipe that is still open delays the result by less than a second.
//   execute-4. Time-out and abort: SIGTERM to the whole tree, SIGKILL after the grace.
//
// Not an isolation: a command may do whatever its user may.

import { spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { StringDecoder } from "node:string_decoder";
import { HoldfastError } from "@holdfast/core";
import { EXECUTION_MARKER } from "@holdfast/runtime/internal";

import { OutputCapture } from "./output-capture.ts";
import { endTree, killGroup, signalTree, type ProcessTree } from "./process-tree.ts";

/** A line for the shell, or a program and its arguments without one. */
export type Command = string | readonly string[];

export interface ExecuteOptions {
  /** Inside the workspace; its root by default. */
  readonly cwd?: string;
  /** Added to the workspace's environment. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly timeoutMs?: number;
  /** Given to its standard input, which is empty otherwise. */
  readonly input?: string;
  /** Output kept, both streams together. */
  readonly outputBytes?: number;
  readonly signal?: AbortSignal;
  /** Called with output as it comes. Must not throw. */
  readonly onOutput?: (stream: "stdout" | "stderr", text: string) => void;
  /** Marks what it starts, so that `endTagged` finds it, also from another process. */
  readonly tag?: string;
}

/** Why a command ended. Only `exit` says what the command thought of it. */
export type ExecutionEnd =
  | { readonly type: "exit"; readonly exitCode: number }
  | { readonly type: "signal"; readonly signal: string }
  | { readonly type: "timeout"; readonly timeoutMs: number }
  | { readonly type: "aborted" }
  | { readonly type: "spawn_error"; readonly code: string; readonly message: string };

export interface Execution {
  /** As a person would type it. */
  readonly command: string;
  readonly end: ExecutionEnd;
  readonly stdout: string;
  readonly stderr: string;
  /** Output was left out; the texts carry a mark where. */
  readonly isCut: boolean;
  readonly durationMs: number;
  /** False when a process of it could not be ended. */
  readonly isTreeGone: boolean;
}

/** A command with everything decided. */
export interface Launch {
  readonly argv: readonly [string, ...string[]];
  readonly command: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly killGraceMs: number;
  readonly outputBytes: number;
  readonly input: string | undefined;
  readonly signal: AbortSignal | undefined;
  readonly onOutput: ExecuteOptions["onOutput"];
  readonly tag: string | undefined;
  /** Groups that run, to be killed when this process ends. */
  readonly groups: Set<number>;
}

const TAG_MARKER = "HOLDFAST_TAG";
/** From the exit of the command to the SIGKILL of what it left behind, and to closing our ends of its pipes. */
const LEFTOVER_GRACE_MS = 300;
const PIPES_OPEN_MS = 400;
/** A killed command whose exit is not reported hangs in the kernel. */
const EXIT_WAIT_MS = 5_000;

/** @throws HoldfastError `invalid_input` for what no program can be given. */
export function parseCommand(command: Command): Pick<Launch, "argv" | "command"> {
  const argv = typeof command === "string" ? (["/bin/sh", "-c", command] as const) : command;
  const [program, ...rest] = argv;
  const text = typeof command === "string" ? command : command.map(quoteForShell).join(" ");
  if (program === undefined || program === "" || (typeof command === "string" && command.trim() === "")) {
    throw new HoldfastError("invalid_input", "the command is empty");
  }
  if (argv.some((part) => part.includes("\0"))) {
    throw new HoldfastError(
      "invalid_input",
      "the command contains a NUL character, which no program can be given",
    );
  }
  return { argv: [program, ...rest], command: text };
}

/** Never rejects: how it ended is a value. */
export async function launch(request: Launch): Promise<Execution> {
  const startedAt = performance.now();
  const output = {
    stdout: new OutputCapture(request.outputBytes / 2),
    stderr: new OutputCapture(request.outputBytes / 2),
  };
  const { end, isTreeGone } = await run(request, output);
  return {
    command: request.command,
    end,
    stdout: output.stdout.text(),
    stderr: output.stderr.text(),
    isCut: output.stdout.isCut || output.stderr.isCut,
    durationMs: Math.round(performance.now() - startedAt),
    isTreeGone,
  };
}

type Output = Readonly<Record<"stdout" | "stderr", OutputCapture>>;
type Ended = Pick<Execution, "end" | "isTreeGone">;

async function run(request: Launch, output: Output): Promise<Ended> {
  if (request.signal?.aborted === true) return { end: { type: "aborted" }, isTreeGone: true };
  const executionId = randomUUID();
  const [program, ...args] = request.argv;
  let child: ChildProcess;
  try {
    child = spawn(program, args, {
      cwd: request.cwd,
      env: {
        ...request.env,
        [EXECUTION_MARKER]: executionId,
        ...(request.tag === undefined ? {} : { [TAG_MARKER]: request.tag }),
      },
      detached: true, // execute-1.
      stdio: [request.input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
      windowsHide: true,
    });
  } catch (error) {
    return { end: spawnError(error, program), isTreeGone: true }; // E2BIG comes here, ENOENT as an event.
  }

  const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const exited = new Promise<ExecutionEnd>((resolve) => {
    child.once("error", (error) => {
      if (child.pid === undefined) resolve(spawnError(error, program));
    });
    child.once("exit", (exitCode, signal) => {
      resolve(signal === null ? { type: "exit", exitCode: exitCode ?? 0 } : { type: "signal", signal });
    });
  });
  drain(child, "stdout", output, request);
  drain(child, "stderr", output, request);
  if (child.pid === undefined) return { end: await exited, isTreeGone: true };

  child.stdin?.on("error", () => {}); // It ended without reading its input (EPIPE).
  child.stdin?.end(request.input);
  const tree: ProcessTree = { group: child.pid, marker: `${EXECUTION_MARKER}=${executionId}` };
  request.groups.add(child.pid);
  try {
    const end = await watch(request, tree, exited);
    // execute-3. Most commands leave nothing behind: their pipes close at once and one look at /proc finds no
    //     process.
    const isTreeGone = await endTree(tree, LEFTOVER_GRACE_MS);
    await within(closed, PIPES_OPEN_MS);
    return { end, isTreeGone };
  } finally {
    request.groups.delete(child.pid);
    child.stdout?.destroy();
    child.stderr?.destroy();
    child.unref();
  }
}

function drain(child: ChildProcess, name: "stdout" | "stderr", output: Output, { onOutput }: Launch): void {
  const decoder = new StringDecoder("utf8");
  child[name]?.on("data", (chunk: Buffer) => {
    output[name].push(chunk);
    const text = onOutput === undefined ? "" : decoder.write(chunk);
    if (text !== "") onOutput?.(name, text);
  });
  child[name]?.on("error", () => {});
}

/** execute-4. Waits for the exit; ends the command when its time is over or it is no longer wanted. */
async function watch(
  request: Launch,
  tree: ProcessTree,
  exited: Promise<ExecutionEnd>,
): Promise<ExecutionEnd> {
  const stop = Promise.withResolvers<ExecutionEnd>();
  const onAbort = (): void => stop.resolve({ type: "aborted" });
  const timer = setTimeout(
    () => stop.resolve({ type: "timeout", timeoutMs: request.timeoutMs }),
    request.timeoutMs,
  );
  request.signal?.addEventListener("abort", onAbort, { once: true });
  if (request.signal?.aborted === true) onAbort();
  try {
    const first = await Promise.race([exited, stop.promise]);
    if (first.type !== "timeout" && first.type !== "aborted") return first;
    await signalTree(tree, "SIGTERM");
    const endedInTime = await within(exited, request.killGraceMs);
    if (!endedInTime) {
      await signalTree(tree, "SIGKILL");
      await within(exited, EXIT_WAIT_MS);
    }
    return first;
  } finally {
    clearTimeout(timer);
    request.signal?.removeEventListener("abort", onAbort);
  }
}

/** Whether the promise settled in time. */
async function within(promise: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  try {
    return await Promise.race([promise.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}

function spawnError(error: unknown, program: string): ExecutionEnd {
  const { code = "UNKNOWN", message } = error as NodeJS.ErrnoException;
  switch (code) {
    case "ENOENT":
      return { type: "spawn_error", code, message: `there is no program "${program}" on the PATH` };
    case "EACCES":
      return { type: "spawn_error", code, message: `"${program}" may not be executed` };
    case "E2BIG":
      return {
        type: "spawn_error",
        code,
        message: "the command or its environment is too long for this system",
      };
    default:
      return { type: "spawn_error", code, message };
  }
}

/** End whatever runs under a tag; git, for one, needs the grace to remove its locks. */
export async function endTagged(tag: string): Promise<void> {
  await endTree({ marker: `${TAG_MARKER}=${tag}` }, LEFTOVER_GRACE_MS);
}

/** Kill what runs, now: for the end of this process. */
export function killGroups(groups: ReadonlySet<number>): void {
  for (const group of groups) killGroup(group);
}

function quoteForShell(part: string): string {
  return /^[\w@%+=:,./-]+$/.test(part) ? part : `'${part.replaceAll("'", String.raw`'\''`)}'`;
}
