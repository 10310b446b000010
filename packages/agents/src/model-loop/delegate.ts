// The tool `delegate`: a model starts other agents as durable children, and gets their results.
//
//   delegate-1. Calls of one reply run beside each other. Each child has its own workspace, as its file says.
//   delegate-2. A child has the budget and the time of its file, within those of this session.
//   delegate-3. The model learns what became of the workspace of a child, also of one that failed.

import { HoldfastError } from "@holdfast/core";
import { defineTask, local, type Agent, type TaskDefinition } from "@holdfast/runtime";
import { z } from "zod";

import type { AgentRecord, JsonSchema } from "../agent-files/agent-record.ts";
import { cutText, defineTool, type Tool, type ToolContext } from "./tool.ts";

/** An agent that may be started, with its record where it is an agent without code. */
export interface Delegate {
  readonly agent: Agent;
  readonly record: AgentRecord | undefined;
}

interface EndedChild {
  readonly agent: string;
  readonly session: string;
}

export type FinishChild = TaskDefinition<EndedChild, string | null>;

/** The characters of a schema in the description of the tool. */
const SCHEMA_CHARS_MAX = 2_000;

/** delegate-3. The task looks at the workspace of a child. */
export function finishChildTask(
  finish: (agent: string, session: string) => Promise<string | null>,
): FinishChild {
  return defineTask<EndedChild, string | null>({
    name: "finish_child",
    description: "Look at the workspace of a child that has ended.",
    input: z.strictObject({ agent: z.string(), session: z.string() }),
    run: ({ agent, session }) => finish(agent, session),
  });
}

/** @param finish `undefined` where all agents share one workspace. */
export function delegate(agents: readonly Delegate[], finish: FinishChild | undefined): Tool {
  const names = agents.map(({ agent }) => agent.name);
  return defineTool({
    name: "delegate",
    description:
      "Let another agent do a part of the work. It knows nothing of this conversation. Several calls of one reply run beside each other. " +
      `The agents:\n${agents.map(describeAgent).join("\n")}`,
    input: z.strictObject({
      agent: z.enum(names).describe("Which agent"),
      input: z.unknown().describe("What it is to do: a text, or what its input schema asks for"),
    }),
    isReading: true,
    subject: ({ agent }) => agent,
    run: async (ctx, { agent: name, input }) => {
      const { agent, record } = agents.find((one) => one.agent.name === name) ?? {};
      const { budget = null, ttlMs = null } = record ?? {};
      const child = ctx.spawnAgent(local(agent ?? name), input, {
        ...(budget === null ? {} : { budget }), // delegate-2.
        ...(ttlMs === null ? {} : { timeoutMs: ttlMs }),
      });
      const { text, isFailed } = await endOf(ctx.waitForChild(child));
      const hasOwn = finish !== undefined && record !== undefined && record.workspace !== "shared";
      const work = hasOwn ? await workOf(ctx, finish, { agent: name, session: child.sessionId }) : null;
      const result = work === null ? text : `${text}\n\n${work}`;
      if (isFailed) throw new HoldfastError("task_failed", result);
      return result;
    },
  });
}

async function endOf(
  ended: PromiseLike<unknown>,
): Promise<{ readonly text: string; readonly isFailed: boolean }> {
  try {
    const output = await ended;
    return { text: typeof output === "string" ? output : JSON.stringify(output), isFailed: false };
  } catch (error) {
    if (!HoldfastError.is(error) || error.code !== "child_failed") throw error;
    const cause = error.cause as Error | undefined;
    return { text: cause?.message ?? error.message, isFailed: true };
  }
}

/** A workspace that cannot be looked at takes nothing from the result of its child. */
async function workOf(ctx: ToolContext, finish: FinishChild, child: EndedChild): Promise<string | null> {
  try {
    return await ctx.scheduleTask(finish, child);
  } catch (error) {
    if (!HoldfastError.is(error) || error.code !== "task_failed") throw error;
    return `(Its workspace could not be looked at: ${(error.cause as Error | undefined)?.message ?? error.message})`;
  }
}

const PLACES: Readonly<Record<AgentRecord["workspace"], string>> = {
  shared: "",
  worktree: " It works in a git worktree of its own, and its result names the branch.",
  empty: " It works in an empty folder of its own.",
};

function describeAgent({ agent: { name, description = "" }, record }: Delegate): string {
  if (record === undefined) return `- ${name}: ${description}`;
  const { inputSchema, outputSchema, workspace } = record;
  const schemas = [schemaText("input", inputSchema), schemaText("result", outputSchema)].join("");
  return `- ${name}: ${description}${PLACES[workspace]}${schemas}`;
}

function schemaText(what: string, schema: JsonSchema | null): string {
  if (schema === null) return "";
  return ` Its ${what} matches this JSON Schema: ${cutText(JSON.stringify(schema), SCHEMA_CHARS_MAX)}`;
}
