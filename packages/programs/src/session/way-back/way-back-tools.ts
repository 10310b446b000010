// The tools by which an external agent reaches the session that it works for (`wayBackTools`). Pure: a session carries out the calls
// (`way-back-calls.ts`).

import { z } from "zod";

import type { Fields } from "../fields.ts";

/** The name of the MCP server, as agents see it. */
export const WAY_BACK = "holdfast_session";

const TEXT_CHARS = 8_000;
const sessionId = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/);
const mode = z
  .enum(["sync", "async_poll"])
  .default("sync")
  .describe("sync waits for the result. async_poll answers at once; ask for the status later.");
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
    parameters: z
      .record(z.string(), z.unknown())
      .describe('Most agents take `{"prompt": "…"}`; with `"conversation": true` they take further prompts'),
    mode,
  }),
  list_agent_sessions: z.strictObject({}),
  resume_agent_session: z.strictObject({
    session_id: sessionId,
    parameters: z.record(z.string(), z.unknown()).describe('such as `{"prompt": "…"}`'),
    mode,
  }),
  get_agent_session_status: z.strictObject({ session_id: sessionId }),
  get_agent_session_result: z.strictObject({ session_id: sessionId }),
  delete_all_agent_sessions: z.strictObject({}),
};

/** The tools of every session. The others are those of the orchestrator, for an agent that may start others. */
const OWN: readonly string[] = [
  "signal_parent",
  "ask_parent",
  "request_input",
  "report_progress",
  "remaining_budget",
];

const DESCRIPTIONS: Readonly<Record<keyof typeof SCHEMAS, string>> = {
  signal_parent: "Tell the session that started this one something. It does not answer.",
  ask_parent:
    "Ask the session that started this one, and wait for the answer. A person answers where that session cannot. The answer may take days.",
  request_input:
    "Ask the person you work for, and wait for the answer. Ask only what you cannot find out yourself. The answer may take days.",
  report_progress: "Tell those who watch this session how far the work is.",
  remaining_budget: "The tokens, money and time that this session has left.",
  list_agent_blueprints: "List the agents that you may start.",
  list_agent_sessions: "List the sessions that you have started, with their status.",
  resume_agent_session:
    "Send the next prompt to a conversation that you have started and whose turn is finished.",
  get_agent_session_status:
    "The status of a session that you have started: running, finished or not_existent.",
  get_agent_session_result: "The result of the last finished turn of a session that you have started.",
  delete_all_agent_sessions: "Delete the ended sessions that you have started.",
  start_agent_session:
    "Let another agent do a part of the work, and wait for the result. It knows nothing of this conversation, and has its share of your budget. It ends with your session.",
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

/** Whether the agent may start others, and delete the ended sessions of these. */
export interface Offered {
  readonly startsAgents: boolean;
  readonly deletesSessions: boolean;
}

export function wayBackTools({ startsAgents, deletesSessions }: Offered): readonly WayBackTool[] {
  return Object.entries(SCHEMAS)
    .filter(([name]) => startsAgents || OWN.includes(name))
    .filter(([name]) => deletesSessions || name !== "delete_all_agent_sessions")
    .map(([name, schema]) => ({
      name,
      description: DESCRIPTIONS[name as keyof typeof SCHEMAS],
      inputSchema: z.toJSONSchema(schema) as Fields,
    }));
}

function isTool(name: string): name is keyof typeof SCHEMAS {
  return Object.hasOwn(SCHEMAS, name);
}

/** Its result is of the moment, so that it tells a later turn nothing. */
export function isLook({ tool }: SessionCall): boolean {
  return LOOKS.has(tool);
}

const LOOKS: ReadonlySet<string> = new Set([
  "remaining_budget",
  "list_agent_blueprints",
  "list_agent_sessions",
  "get_agent_session_status",
  "get_agent_session_result",
]);

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
