// Reads the hooks of agent files and of Claude Code into a draft: `holdfastHooks` and `claudeHooks`.
//
//   hook-fields-1. A hook that may forbid something and that cannot be run refuses its file. Any other such hook is ignored with its reason.
//   hook-fields-2. A matcher that cannot be mapped exactly is mapped to more tools, so that the hook sees no fewer calls.

import { parseDuration } from "@holdfast/core/internal";
import { z } from "zod";
import type { AgentHook, HookPoint } from "../agent-record.ts";
import type { FieldReport, Verdict } from "./field-report.ts";
import { CLAUDE_TOOLS, TOOLS } from "./tool-names.ts";

/** The time of a hook that names none. */
const TIMEOUT_MS = 60_000;
const TIMEOUT_MAX_MS = 600_000;
/** Hooks of one agent. Each costs a task for each call that it sees. */
const HOOKS_MAX = 50;

const points = [
  "on_run_start",
  "on_run_finish",
  "before_tool",
  "after_tool",
] as const satisfies readonly HookPoint[];

const program = z.string().min(1).max(10_000);
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

/** The points of Holdfast for events of Claude Code, and the differences. */
const CLAUDE_EVENTS: Readonly<Record<string, readonly [point: HookPoint, note: string]>> = {
  PreToolUse: ["before_tool", ""],
  PostToolUse: ["after_tool", ""],
  SessionStart: ["on_run_start", ", and before each request of a conversation"],
  UserPromptSubmit: ["on_run_start", ""],
  Stop: ["on_run_finish", "; it cannot make the agent continue"],
};

/** Events whose hooks may forbid something. */
const MAY_FORBID = /^(Pre(?!Compact)|Permission|UserPrompt|Elicitation)/;

const claudeHook = z.looseObject({
  type: z.literal("command"),
  command: program,
  timeout: z.number().positive().optional(),
});
const claudeGroup = z.looseObject({ matcher: z.string().optional(), hooks: z.array(z.unknown()) });

/** The hooks of Claude Code's form, with a verdict for each event. */
export function claudeHooks(
  given: Readonly<Record<string, unknown>>,
  path: readonly string[],
  report: FieldReport,
): readonly AgentHook[] {
  const found = Object.entries(given).flatMap(([event, groups]) => {
    const known = Object.hasOwn(CLAUDE_EVENTS, event) ? CLAUDE_EVENTS[event] : undefined;
    const { hooks, problem } =
      known === undefined ? nothing("Holdfast has no such event") : hooksOf(event, known[0], groups);
    const verdict: Verdict =
      problem === undefined ? "mapped" : MAY_FORBID.test(event) ? "refused" : "ignored"; // hook-fields-1.
    const why =
      problem !== undefined && verdict === "refused"
        ? `${problem}, and the hook may be there to forbid something`
        : problem;
    report.add(
      [...path, event],
      verdict,
      why ?? `holdfast.hooks.${known?.[0]}${known?.[1]}: ${shownTools(hooks)}`,
    );
    return verdict === "mapped" ? hooks : [];
  });
  if (found.length <= HOOKS_MAX) return found;
  report.add(path, "refused", `there are ${found.length} hooks, and ${HOOKS_MAX} is the limit`);
  return [];
}

function nothing(problem: string) {
  return { hooks: [], problem };
}

function hooksOf(
  claudeEvent: string,
  point: HookPoint,
  given: unknown,
): { readonly hooks: readonly AgentHook[]; readonly problem: string | undefined } {
  const groups = z.array(claudeGroup).safeParse(given);
  if (!groups.success) return nothing("it is no list of { matcher, hooks }");
  const hooks: AgentHook[] = [];
  for (const { matcher = "", hooks: members } of groups.data) {
    const tools = point.endsWith("_tool") ? toolsOf(matcher) : null;
    if (typeof tools === "string") return nothing(tools);
    for (const member of members) {
      const one = claudeHook.safeParse(member);
      if (!one.success) return nothing("Holdfast runs hooks of the type command with a command");
      const { command, timeout } = one.data;
      const timeoutMs = timeout === undefined ? TIMEOUT_MS : Math.min(timeout * 1_000, TIMEOUT_MAX_MS);
      hooks.push({
        point,
        tools,
        run: { type: "command", command },
        timeoutMs,
        onError: "continue",
        claudeEvent,
      });
    }
  }
  return { hooks, problem: undefined };
}

/** hook-fields-2. @returns the names of the tools, `null` for all, or the problem as a text. */
function toolsOf(matcher: string): readonly string[] | null | string {
  if (matcher === "" || matcher === "*") return null;
  const plain = matcher.split("|").map((name) => name.trim());
  if (plain.every((name) => /^\w+$/.test(name))) return plain.flatMap(namesOf);
  // A repetition of a repetition may take years to match.
  if (matcher.length > 1_000 || /[*+}][^|]*\)[*+{]/.test(matcher))
    return `the matcher ${JSON.stringify(matcher.slice(0, 80))} may never end`;
  let regex: RegExp;
  try {
    regex = new RegExp(`^(?:${matcher})$`);
  } catch {
    return `the matcher ${JSON.stringify(matcher.slice(0, 80))} is no regular expression`;
  }
  const mapped = Object.keys(CLAUDE_TOOLS).filter((name) => regex.test(name));
  const own = TOOLS.filter((name) => regex.test(name));
  const others = matcher.includes("mcp__") || /[.[\\]/.test(matcher) ? ["mcp__*", "script__*"] : [];
  return [...new Set([...mapped.flatMap(namesOf), ...own, ...others])];
}

function namesOf(name: string): readonly string[] {
  const own = Object.hasOwn(CLAUDE_TOOLS, name) ? CLAUDE_TOOLS[name] : undefined;
  return own ?? [name];
}

function shownTools(hooks: readonly AgentHook[]): string {
  return hooks
    .map(({ tools, run }) => {
      const what = run.type === "command" ? run.command : run.name;
      return `${tools === null ? "" : `${tools.join(", ")}: `}${what.slice(0, 80)}`;
    })
    .join("; ");
}
