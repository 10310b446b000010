// Runs one command of a workspace (`launch`).
//
// The process supervisor of `@holdfast/runtime` starts the command and ends its process tree. This file turns
// a command into arguments, and its end into the form that journals hold. Every stop from outside is recorded
// as `aborted`.
//
// No isolation: a command may do whatever the operating system lets the user of this process do.

import { defined, HoldfastError } from "@holdfast/core";
import type { ProcessEnd } from "@holdfast/system";
import type { ProcessSupervisor } from "@holdfast/system/processes";

import type { PathMask } from "./paths/path-mask.ts";

/** A line for the shell, or a program and its arguments without one. */
export type Command = string | readonly string[];

/** Options of one command in a workspace. */
export interface ExecuteOptions {
  /** Inside the workspace; its root by default. */
  readonly cwd?: string;
  /** Added to the workspace's environment. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** How long the command may run. */
  readonly timeoutMs?: number;
  /** Folders of the workspace with programs, by their paths from its root. They stand behind all others on the PATH. */
  readonly pathFolders?: readonly string[];
  /** Given to its standard input, which is empty otherwise. */
  readonly input?: string;
  /** Output kept, both streams together. */
  readonly outputBytes?: number;
  /** Ends the command and everything that it started. */
  readonly signal?: AbortSignal;
  /** Called with output as it comes. Must not throw. */
  readonly onOutput?: (stream: "stdout" | "stderr", text: string) => void;
  /** Marks what it starts, so that `endTagged` finds it, also from another process. */
  readonly tag?: string;
  /** Files that a sandbox keeps from the command. The sandbox `filesystem` cannot keep any. */
  readonly mask?: PathMask;
  /**
   * The program and its arguments are Holdfast's own, such as `git status`. A sandbox without programs runs
   * it on this machine.
   */
  readonly isOwn?: boolean;
}

/** Why a command ended. Only `exit` says what the command thought of it. */
export type ExecutionEnd =
  | { readonly type: "exit"; readonly exitCode: number }
  | { readonly type: "signal"; readonly signal: string }
  | { readonly type: "timeout"; readonly timeoutMs: number }
  | { readonly type: "aborted" }
  | { readonly type: "spawn_error"; readonly code: string; readonly message: string };

/** The output of one command in a workspace, and its end. */
export interface Execution {
  /** As a person would type it. */
  readonly command: string;
  /** How the command ended. */
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
  readonly mask: PathMask | undefined;
}

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
export async function launch(supervisor: ProcessSupervisor, request: Launch): Promise<Execution> {
  const { command, input, signal, onOutput, tag, ...options } = request;
  if (signal?.aborted === true) {
    const end = { type: "aborted" } as const;
    return { command, end, stdout: "", stderr: "", isCut: false, durationMs: 0, isTreeGone: true };
  }
  const started = await supervisor.start({
    ...options,
    ...defined({ input, signal, onOutput, tag }),
  });
  const { end, ...report } = await started.ended;
  return { command, end: recordedEnd(end), ...report };
}

/** Journals hold ends in this form. */
function recordedEnd(end: ProcessEnd): ExecutionEnd {
  switch (end.type) {
    case "exit":
    case "signal":
    case "timeout":
      return end;
    case "not_started":
      return { ...end, type: "spawn_error" };
    case "stopped":
    case "output_closed":
      return { type: "aborted" };
  }
}

function quoteForShell(part: string): string {
  return /^[\w@%+=:,./-]+$/.test(part) ? part : `'${part.replaceAll("'", String.raw`'\''`)}'`;
}
