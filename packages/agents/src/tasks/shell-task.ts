// A durable task for shell commands.
//
// A command runs at most once. After a crash it is unknown whether the command took effect, and running it
// again may do harm. The same holds after an orderly stop whose grace it outlasts. The task then fails and
// says so. For a command that may be repeated (tests, queries),
// schedule the task with REPEATABLE.

import { defined, HOUR_MS, type EffectClass, type RetryPolicy } from "@holdfast/core";
import type { TaskContext } from "@holdfast/runtime";
import { describeProcessEnd, storedSecret } from "@holdfast/system";
import { z } from "zod";

import type { ExecutionEnd } from "@holdfast/workspace";
import { SCRIPT_BIN, ScriptCalls, type ScriptCall } from "./script-calls.ts";
import { workspaceField, type WorkspaceSource } from "./workspace-source.ts";
import { defineWorkspaceTask, type SessionEnded } from "./workspace-task.ts";

/** The options of a command that may run again: `ctx.scheduleTask(shell, input, REPEATABLE)`. */
export const REPEATABLE = {
  effect: "repeatable",
  retry: { maxAttempts: 100 },
} as const satisfies { readonly effect: EffectClass; readonly retry: RetryPolicy };

export const shellEnvironment = z.strictObject({
  values: z.record(z.string(), z.string()),
  secrets: z.array(z.string()),
  stored: z.record(z.string(), z.string()).optional(),
});

/** Variables of a command, and the names of secrets that are variables too. `stored` are those of a coordinator. */
export type ShellEnvironment = z.output<typeof shellEnvironment>;

export const shellInput = z.strictObject({
  command: z.string().min(1).describe("A command line for sh"),
  cwd: z.string().min(1).optional().describe("Directory to run it in; the root by default"),
  timeoutMs: z
    .int()
    .min(1)
    .max(HOUR_MS)
    .optional()
    .describe("Milliseconds after which it is ended; 120000 by default"),
  environment: shellEnvironment.optional(),
  mask: z
    .strictObject({ unreadable: z.array(z.string()), unwritable: z.array(z.string()) })
    .optional()
    .describe("Patterns of paths that the sandbox keeps from the command"),
  scripts: z.boolean().optional().describe("The commands of the session's scripts are on the PATH"),
  ...workspaceField,
});

export interface ShellOutput {
  readonly command: string;
  readonly end: ExecutionEnd;
  readonly stdout: string;
  readonly stderr: string;
  /** Output was left out; the texts carry a mark where. */
  readonly isCut: boolean;
  readonly durationMs: number;
  /** The calls of scripts in the command, in their order. */
  readonly scripts?: readonly ScriptCall[];
}

/** The limit for the recorded output of a command. A model reads far less. */
const OUTPUT_BYTES = 256 * 1024;

/** @param secrets names of secrets that commands may get. The list may grow until a session starts. */
export function shellTask(
  source: WorkspaceSource,
  secrets: readonly string[] = [],
  sessionEnded?: SessionEnded,
) {
  return defineWorkspaceTask(source, {
    name: "shell",
    description:
      "Run a command line in the workspace. It is not isolated. Processes that it leaves running are ended with it.",
    input: shellInput,
    // One attempt alone would not say so: an orderly stop hands it over without counting it.
    // mutant: stopped-command-again
    effect: "once",
    retry: { maxAttempts: 1 },
    secrets,
    sessionEnded,
    run: async (workspace, input, task): Promise<ShellOutput> => {
      const calls = input.scripts === true ? new ScriptCalls(workspace, task.idempotencyKey) : undefined;
      const { command, end, stdout, stderr, isCut, durationMs } = await workspace.execute(input.command, {
        outputBytes: OUTPUT_BYTES,
        tag: task.idempotencyKey,
        signal: task.signal,
        onOutput: (stream, text) => task.progress({ stream, text }),
        env: { ...variablesOf(input.environment, task), ...calls?.variables },
        pathFolders: calls === undefined ? [] : [SCRIPT_BIN],
        ...defined({ cwd: input.cwd, mask: input.mask, timeoutMs: input.timeoutMs }),
      });
      if (end.type === "aborted") task.signal.throwIfAborted();
      const scripts = (await calls?.read()) ?? [];
      const output = { command, end, stdout, stderr, isCut, durationMs };
      return scripts.length === 0 ? output : { ...output, scripts };
    },
  });
}

/** The values of secrets are looked up here, so that no record has them. */
export function variablesOf(
  environment: ShellEnvironment = { values: {}, secrets: [] },
  task: Pick<TaskContext, "secret">,
): Readonly<Record<string, string>> {
  return { ...environment.values, ...secretsOf(environment, task) };
}

/** The values of secrets by the names of their variables. @throws as `task.secret` does. */
export function secretsOf(
  {
    secrets,
    stored = {},
  }: {
    readonly secrets: readonly string[];
    readonly stored?: Readonly<Record<string, string>> | undefined;
  },
  task: Pick<TaskContext, "secret">,
): Readonly<Record<string, string>> {
  return Object.fromEntries([
    ...secrets.map((name) => [name, task.secret(name)]),
    ...Object.entries(stored).map(([name, of]) => [name, task.secret(storedSecret(of, name))]),
  ]) as Readonly<Record<string, string>>;
}

/** The end of a command as a text for people. */
export function describeEnd(end: ExecutionEnd): string {
  switch (end.type) {
    case "aborted":
      return "aborted";
    case "spawn_error":
      return `not started: ${end.message}`;
    default:
      return describeProcessEnd(end);
  }
}
