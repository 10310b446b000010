// Reads the hooks of agent files in Holdfast's own form: `holdfastHooks`.

import { parseDuration } from "@holdfast/core";
import { z } from "zod";
import type { AgentHook, HookPoint } from "../record/agent-record.ts";

/** The time of a hook that names none. */
export const TIMEOUT_MS = 60_000;
export const TIMEOUT_MAX_MS = 600_000;
/** Hooks of one agent. Each costs a task for each call that it sees. */
export const HOOKS_MAX = 50;

const points = [
  "on_run_start",
  "on_run_finish",
  "before_tool",
  "after_tool",
] as const satisfies readonly HookPoint[];

export const program = z.string().min(1).max(10_000);
const hook = z
  .strictObject({
    command: program.optional(),
    script: z.string().min(1).optional(),
    agent: z.string().min(1).optional(),
    tools: z.array(z.string().min(1)).optional(),
    timeout: z.string().optional(),
    on_error: z.enum(["block", "continue"]).optional(),
  })
  .refine(
    ({ command, script, agent }) => [command, script, agent].filter((one) => one !== undefined).length === 1,
    {
      error: "a hook has either `command`, `script` or `agent`",
    },
  );

/** The value of `holdfast.hooks`: for each point a hook or a list of them. */
export const holdfastHooksSchema = z
  .strictObject(Object.fromEntries(points.map((point) => [point, z.union([hook, z.array(hook)]).optional()])))
  .describe(`programs that see a session, by their points: ${points.join(", ")}`);

/** @returns the hooks, or the problem as a text. */
export function holdfastHooks(given: z.output<typeof holdfastHooksSchema>): readonly AgentHook[] | string {
  const hooks: AgentHook[] = [];
  for (const point of points) {
    const value = given[point];
    for (const one of value === undefined ? [] : [value].flat()) {
      const { command, script, agent, tools, timeout, on_error: onError } = one;
      if (tools !== undefined && !point.endsWith("_tool"))
        return `${point} concerns no tool; leave \`tools\` out`;
      const timeoutMs = timeout === undefined ? TIMEOUT_MS : durationOf(timeout);
      if (timeoutMs === undefined) return `the time-out ${timeout} of ${point} is not between 1ms and 10m`;
      hooks.push({
        point,
        tools: tools ?? null,
        run:
          command !== undefined
            ? { type: "command", command }
            : script !== undefined
              ? { type: "script", name: script, hash: null }
              : { type: "agent", name: agent ?? "" },
        timeoutMs,
        // A hook before something may be there to forbid it.
        onError: onError ?? (point === "on_run_start" || point === "before_tool" ? "block" : "continue"),
        claudeEvent: null,
      });
    }
  }
  return hooks.length > HOOKS_MAX ? `there are ${hooks.length} hooks, and ${HOOKS_MAX} is the limit` : hooks;
}

function durationOf(text: string): number | undefined {
  try {
    const ms = parseDuration(text, "timeout");
    return ms > 0 && ms <= TIMEOUT_MAX_MS ? ms : undefined;
  } catch {
    return undefined;
  }
}
