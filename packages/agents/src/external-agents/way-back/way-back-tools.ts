// The tools by which an external agent reaches the session that it works for (`wayBackTools`). Pure: a session carries out the calls
// (`way-back-calls.ts`).

import { z } from "zod";

import type { Fields } from "../lines/fields.ts";

/** The name of the MCP server, as agents see it. */
export const WAY_BACK = "holdfast_session";

const TEXT_CHARS = 8_000;
const text = z.string().trim().min(1).max(TEXT_CHARS);

const SCHEMAS = {
  signal_parent: z.strictObject({
    text: text.describe("What the parent is to know"),
    name: z
      .string()
      .regex(/^[A-Za-z][\w.-]{0,63}$/)
      .optional()
      .describe("The name of the signal; `message` when absent"),
  }),
  ask_parent: z.strictObject({ question: text }),
  request_input: z.strictObject({
    question: text,
    options: z.array(text).max(10).optional().describe("Answers to choose from"),
    approval: z.boolean().optional().describe("Whether the answer is yes or no"),
  }),
  report_progress: z.strictObject({ text }),
  remaining_budget: z.strictObject({}),
  list_agent_blueprints: z.strictObject({}),
  start_agent_session: z.strictObject({
    agent_name: z.string().min(1).max(200),
    parameters: z.record(z.string(), z.unknown()).describe('Most agents take `{"prompt": "…"}`'),
  }),
};

/** The tools of the orchestrator, for an agent that may start others. */
const STARTING: readonly string[] = ["list_agent_blueprints", "start_agent_session"];

const DESCRIPTIONS: Readonly<Record<keyof typeof SCHEMAS, string>> = {
  signal_parent: "Tell the session that started this one something. It does not answer.",
  ask_parent:
    "Ask the session that started this one, and wait for the answer. A person answers where that session cannot. The answer may take days.",
  request_input:
    "Ask the person you work for, and wait for the answer. Ask only what you cannot find out yourself. The answer may take days.",
  report_progress: "Tell those who watch this session how far the work is.",
  remaining_budget: "The tokens, money and time that this session has left.",
  list_agent_blueprints: "List the agents that you may start.",
  start_agent_session:
    "Let another agent do a part of the work, and wait for the result. It knows nothing of this conversation, and has its share of your budget.",
};

export interface WayBackTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: Fields;
}

/** A checked call. */
export type SessionCall = {
  readonly [Tool in keyof typeof SCHEMAS]: {
    readonly tool: Tool;
    readonly input: z.output<(typeof SCHEMAS)[Tool]>;
  };
}[keyof typeof SCHEMAS];

/** @param startsAgents whether the agent may start others. */
export function wayBackTools(startsAgents: boolean): readonly WayBackTool[] {
  return Object.entries(SCHEMAS)
    .filter(([name]) => startsAgents || !STARTING.includes(name))
    .map(([name, schema]) => ({
      name,
      description: DESCRIPTIONS[name as keyof typeof SCHEMAS],
      inputSchema: z.toJSONSchema(schema) as Fields,
    }));
}

function isTool(name: string): name is keyof typeof SCHEMAS {
  return Object.hasOwn(SCHEMAS, name);
}

/** A call that may wait for days. */
export function isQuestion({ tool }: SessionCall): boolean {
  return tool === "ask_parent" || tool === "request_input";
}

/** @returns the call, or what is wrong with it, for the agent to read. */
export function readCall(name: string, input: unknown): SessionCall | string {
  if (!isTool(name)) return `there is no tool "${name}"`;
  const read = SCHEMAS[name].safeParse(input ?? {});
  if (!read.success) return `the arguments do not fit: ${z.prettifyError(read.error)}`;
  return { tool: name, input: read.data } as SessionCall;
}
