// The tool `delegate`: a model starts other agents as durable children, and gets their results.
//
//   - Calls of one reply run beside each other. Each child has its own workspace, as its file says.
//   - A child has the budget and the time of its file, within those of this session.
//   - The agents as the model knows them, and the terms of a child, are in the facts of this session. A later
//     change of a file does not concern the session then.
//   - A message between children goes through this session, which passes it on where its own file permits
//     messages.
//   - The model learns what became of the workspace of a child, also of one that failed.

import { HoldfastError, type Budget, type Json, type JsonSchema } from "@holdfast/core";
import { defineTask, local, type Agent, type TaskDefinition } from "@holdfast/runtime";
import { z } from "zod";

import type { AgentRecord } from "../../record/agent-record.ts";
import type { CapabilityFacts } from "../model-state.ts";
import { SiblingMessages } from "./sibling-messages.ts";
import { cutText, defineTool, type Tool, type ToolContext } from "./tool.ts";

/** An agent that may be started. */
export interface Delegate {
  readonly name: string;
  readonly description?: string | undefined;
  /** Absent for an agent that others make, in the version that counts when a child begins. */
  readonly agent?: Agent | undefined;
  /** That of an agent without code. */
  readonly record?: AgentRecord | undefined;
}

interface EndedChild {
  readonly agent: string;
  readonly session: string;
  /** The folder that the input of an external agent has asked for; `worktree` where it is absent. */
  readonly workspace?: "empty";
}

export type FinishChild = TaskDefinition<EndedChild, string | null>;

/** The characters of a schema in the description of the tool. */
const SCHEMA_CHARS_MAX = 2_000;

/** The task looks at the workspace of a child. */
export function finishChildTask(finish: (child: EndedChild) => Promise<string | null>): FinishChild {
  return defineTask<EndedChild, string | null>({
    name: "finish_child",
    description: "Look at the workspace of a child that has ended.",
    input: z.strictObject({
      agent: z.string(),
      session: z.string(),
      workspace: z.literal("empty").exactOptional(),
    }),
    run: finish,
  });
}

/** @param finish `undefined` where all agents share one workspace. */
export function delegate(agents: readonly Delegate[], finish: FinishChild | undefined): Tool {
  const names = agents.map(({ name }) => name);
  const messages = new SiblingMessages();
  return defineTool({
    name: DELEGATE,
    description: descriptionOf(agents),
    input: z.strictObject({
      agent: z.enum(names).describe("Which agent"),
      input: z.unknown().describe("What it is to do: a text, or what its input schema asks for"),
    }),
    isReading: true,
    startsWork: true,
    subject: ({ agent }) => agent,
    run: async (ctx, { agent: name, input }, facts) => {
      const found = agents.find((one) => one.name === name);
      const { talks, terms } = termsIn(facts);
      const { budget = null, ttlMs = null, hasOwnWorkspace = false } = terms[name] ?? {};
      const child = ctx.spawnAgent(local(found?.agent ?? name), input, {
        ...(budget === null ? {} : { budget }),
        ...(ttlMs === null ? {} : { timeoutMs: ttlMs }),
        ...(talks ? { shared: { custom: { siblings: names } } } : {}),
      });
      if (talks) await messages.relay(ctx, name, child);
      const { text, isFailed } = await endOf(ctx.waitForChild(child));
      // An external agent has no file, and its input says where it works.
      const asked = found?.record === undefined ? askedWorkspace(input) : "shared";
      const hasOwn = finish !== undefined && (hasOwnWorkspace || asked !== "shared");
      const ended = {
        agent: name,
        session: child.sessionId,
        ...(asked === "empty" ? { workspace: asked } : {}),
      };
      const work = hasOwn ? await workOf(ctx, finish, ended) : null;
      const result = work === null ? text : `${text}\n\n${work}`;
      if (isFailed) throw new HoldfastError("task_failed", result);
      return result;
    },
  });
}

/** The tool as a session began with it. */
export function asAtStart(tool: Tool, facts: CapabilityFacts): Tool {
  const { description } = termsIn(facts);
  const isChanged = tool.offered.name === DELEGATE && description !== undefined;
  // mutant: agents-below-as-now
  return isChanged ? { ...tool, offered: { ...tool.offered, description } } : tool;
}

/** The terms of the children of one session. */
// oxlint-disable-next-line typescript/consistent-type-definitions -- an interface is no JSON value.
type DelegateFacts = {
  /** That of the tool, with the agents as they were at the start. */
  readonly description?: string;
  /** Children may send messages to each other. */
  readonly talks: boolean;
  readonly terms: Readonly<Record<string, Terms>>;
};

// oxlint-disable-next-line typescript/consistent-type-definitions -- an interface is no JSON value.
type Terms = {
  readonly budget: Budget | null;
  readonly ttlMs: number | null;
  readonly hasOwnWorkspace: boolean;
};

const DELEGATE = "delegate";

/** The facts that a session keeps when it starts. */
export function delegateFacts({ relaysMessages }: AgentRecord, agents: readonly Delegate[]): CapabilityFacts {
  if (agents.length === 0) return {};
  const terms = agents.flatMap(({ record }) =>
    record === undefined
      ? []
      : [
          [
            record.name,
            {
              budget: record.budget,
              ttlMs: record.ttlMs,
              hasOwnWorkspace: record.workspace !== "shared",
            },
          ] as const,
        ],
  );
  const facts: DelegateFacts = {
    description: descriptionOf(agents),
    talks: relaysMessages,
    terms: Object.fromEntries(terms),
  };
  return { [DELEGATE]: facts as unknown as Json };
}

/** Without agents there are no facts (`delegateFacts`). */
function termsIn(facts: CapabilityFacts): DelegateFacts {
  return (facts[DELEGATE] as unknown as DelegateFacts | undefined) ?? { talks: false, terms: {} };
}

/** As the session of an external agent reads its input. */
function askedWorkspace(input: unknown): AgentRecord["workspace"] {
  const { workspace, worktree } = (input ?? {}) as {
    readonly workspace?: unknown;
    readonly worktree?: unknown;
  };
  if (workspace === "empty" || workspace === "worktree" || workspace === "shared") return workspace;
  return worktree === true ? "worktree" : "shared";
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

function descriptionOf(agents: readonly Delegate[]): string {
  return (
    "Let another agent do a part of the work. It knows nothing of this conversation. Several calls of one reply run beside each other. " +
    `The agents:\n${agents.map(describeAgent).join("\n")}`
  );
}

function describeAgent({ name, description = "", record }: Delegate): string {
  if (record === undefined) return `- ${name}: ${description}`;
  const { inputSchema, outputSchema, workspace } = record;
  const schemas = [schemaText("input", inputSchema), schemaText("result", outputSchema)].join("");
  return `- ${name}: ${description}${PLACES[workspace]}${schemas}`;
}

function schemaText(what: string, schema: JsonSchema | null): string {
  if (schema === null) return "";
  return ` Its ${what} matches this JSON Schema: ${cutText(JSON.stringify(schema), SCHEMA_CHARS_MAX)}`;
}
