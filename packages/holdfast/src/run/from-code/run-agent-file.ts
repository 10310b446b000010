// `runAgentFile`: runs an agent file from code, with all that belongs to it.
//
// The agent gets its skills, scripts, hooks, MCP servers, sub-agents and sandbox as with `holdfast run`. A
// file that nobody has trusted is refused in the same way. Nothing here writes to a terminal.

import { resolve } from "node:path";
import {
  checkOptions,
  environmentRule,
  functionRule,
  objectRule,
  textRule,
  wrongArgument,
  type OptionRule,
} from "@holdfast/core";
import { ownFile } from "@holdfast/system";
import type { RunAgentFileOptions } from "./run-options.ts";

const RULES: Readonly<Record<keyof RunAgentFileOptions, OptionRule>> = {
  database: textRule,
  sessionId: textRule,
  budget: objectRule("an object with limits"),
  folder: textRule,
  environment: environmentRule,
  env: objectRule("an object with variables"),
  answer: functionRule("a function that answers a question"),
};

/**
 * Run the agent of an agent file to its end.
 *
 * @param nameOrPath the path of the file, or the name of an agent of the project or of the user.
 * @param input a text, or a value that the input schema of the agent takes.
 * @returns the output of the agent: a text, or a value of its output schema.
 * @throws HoldfastError when the file cannot be used, its input is refused, or a secret is missing. The same
 *   when the session fails, is
 * cancelled, or is paused. UsageError for a question that nobody can answer.
 */
export async function runAgentFile(
  nameOrPath: string,
  input: unknown,
  options: RunAgentFileOptions = {},
): Promise<unknown> {
  if (typeof nameOrPath !== "string") throw wrongArgument("runAgentFile", "nameOrPath", nameOrPath, "a text");
  checkOptions("runAgentFile", options, RULES);
  const { folder: cwd = process.cwd(), env = process.env, database } = options;
  const { AgentFileRun } = await loadWork();
  const { withSqliteStorage } = await import("@holdfast/storage/sqlite");
  const { MemoryStorage } = await import("@holdfast/runtime");
  const run = await AgentFileRun.load(nameOrPath, { cwd, env }, options.environment);
  if (database === undefined) return run.over(new MemoryStorage(), input, options);
  return withSqliteStorage({ path: resolve(cwd, database) }, ({ storage }) =>
    run.over(storage, input, options),
  );
}

/**
 * Bundlers must not follow this import. It leads to all parts of Holdfast. Their threads and native libraries
 * are files that no bundle has, and the bundlers would stop at them.
 */
function loadWork(): Promise<typeof import("./agent-file-run.ts")> {
  const { href } = ownFile("runAgentFile", "./agent-file-run", import.meta.url);
  return import(/* webpackIgnore: true */ /* @vite-ignore */ href) as Promise<
    typeof import("./agent-file-run.ts")
  >;
}
