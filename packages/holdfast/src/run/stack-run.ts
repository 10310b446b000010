// Sessions of the local stack, as `run` and `resume` use it: the stack's runner runs them, and this process follows.

import { isEnded, type Session } from "@holdfast/core";
import type { Agent } from "@holdfast/runtime";
import type { Arguments, Io } from "../frame/command.ts";
import type { Database, StackDatabase } from "../place/project.ts";
import { drive } from "./drive/drive.ts";
import { parksOf } from "./drive/parks.ts";

/** Options of `run` that only this process can honour. */
const HERE_ONLY = ["local", "ephemeral", "trace"] as const;

/**
 * The local stack, if it runs the agent of a file. A note says when it does not, because a person may expect it.
 *
 * @param file absolute.
 */
export function stackThatRuns(
  agent: Agent,
  file: string,
  database: Database | undefined,
  args: Arguments,
  io: Io,
): StackDatabase | undefined {
  const stack = database?.stack;
  if (stack === undefined || HERE_ONLY.some((option) => args.has(option))) return undefined;
  if (hasLoaded(stack, agent, file)) return stack;
  io.note(io.notes.paint.dim("the local stack has not loaded this agent: it runs in this process"));
  return undefined;
}

/** Whether the stack's runner offers the agent of this file. */
export function hasLoaded(
  { files, agents }: StackDatabase,
  { name }: Pick<Agent, "name">,
  file: string,
): boolean {
  return files.includes(file) && agents.includes(name);
}

/**
 * Follows a session that the local stack runs, to its end.
 *
 * @returns the exit code, or `undefined` for a session that this process has to run.
 */
export async function followInStack(
  { sessionId, status, agent }: Session,
  database: Database,
  args: Arguments,
  io: Io,
): Promise<number | undefined> {
  const isOfStack = "agents" in database && (database as StackDatabase).agents.includes(agent.name);
  // A paused session is resumed by the process that asks for it.
  if (!isOfStack || isEnded(status) || status === "paused" || args.has("agent")) return undefined;
  return drive(
    {
      agent: undefined,
      sessionId,
      database,
      begin: () => Promise.resolve(undefined),
      tracer: undefined,
      parks: parksOf(args),
      readsStdin: true,
    },
    io,
  );
}
