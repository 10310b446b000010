// The tools by which an external agent reaches the session that it works for (`wayBackTools`). Pure: a
// session carries out the calls (`way-back-calls.ts`).

import { SESSION_TOOLS } from "@holdfast/proto/session-tools";
import { z } from "zod";

import type { Fields } from "../fields.ts";

/** The name of the MCP server, as agents see it. */
export const WAY_BACK = "holdfast_session";

const TEXT_CHARS = 8_000;
const text = z.string().trim().min(1).max(TEXT_CHARS);

/** The tools of every session. The others are those of the orchestrator, for an agent that may start others. */
const OWN_TOOLS = {
  signal_parent: {
    description: "Tell the session that started this one something. It does not answer.",
    input: z.strictObject({
      text: text.describe("What the parent is to know"),
      name: z
        .string()
        .regex(/^[A-Za-z][\w.-]{0,63}$/)
        .optional()
        .describe("The name of the signal; `message` when absent"),
    }),
  },
  ask_parent: {
    description:
      "Ask the session that started this one, and wait for the answer. A person answers where that session cannot. The answer may take days.",
    input: z.strictObject({ question: text }),
  },
  request_input: {
    description:
      "Ask the person you work for, and wait for the answer. Ask only what you cannot find out yourself. The answer may take days.",
    input: z.strictObject({
      question: text,
      options: z.array(text).max(10).optional().describe("Answers to choose from"),
      approval: z.boolean().optional().describe("Whether the answer is yes or no"),
    }),
  },
  report_progress: {
    description: "Tell those who watch this session how far the work is.",
    input: z.strictObject({ text }),
  },
  remaining_budget: {
    description: "The tokens, money and time that this session has left.",
    input: z.strictObject({}),
    readsOnly: true,
  },
} as const;

const TOOLS = { ...OWN_TOOLS, ...SESSION_TOOLS };
type ToolName = keyof typeof TOOLS;

export interface WayBackTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: Fields;
}

/** A checked call. */
export type SessionCall = {
  readonly [Tool in ToolName]: {
    readonly tool: Tool;
    readonly input: z.output<(typeof TOOLS)[Tool]["input"]>;
  };
}[ToolName];

/** Whether the agent may start others, and delete the ended sessions of these. */
export interface Offered {
  readonly startsAgents: boolean;
  readonly deletesSessions: boolean;
}

export function wayBackTools({ startsAgents, deletesSessions }: Offered): readonly WayBackTool[] {
  return Object.entries(TOOLS)
    .filter(([name]) => startsAgents || name in OWN_TOOLS)
    .filter(([name]) => deletesSessions || name !== "delete_all_agent_sessions")
    .map(([name, { description, input }]) => ({
      name,
      description,
      inputSchema: z.toJSONSchema(input) as Fields,
    }));
}

function isTool(name: string): name is ToolName {
  return Object.hasOwn(TOOLS, name);
}

/** Its result is of the moment, so that it tells a later turn nothing. */
export function isLook({ tool }: SessionCall): boolean {
  return "readsOnly" in TOOLS[tool];
}

/** A call that may wait for days. */
export function isQuestion({ tool }: SessionCall): boolean {
  return tool === "ask_parent" || tool === "request_input";
}

/** @returns the call, or what is wrong with it, for the agent to read. */
export function readCall(name: string, input: unknown): SessionCall | string {
  if (!isTool(name)) return `there is no tool "${name}"`;
  const read = TOOLS[name].input.safeParse(input ?? {});
  if (!read.success) return `the arguments do not fit: ${z.prettifyError(read.error)}`;
  return { tool: name, input: read.data } as SessionCall;
}
