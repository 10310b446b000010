// `askForServer`: asks a person what an MCP server asks in the middle of a call. Each question is a durable
// question of the session.
//
//   - The words of a server are shown as its words. The answer goes to that server alone.
//   - An answer that does not fit its form is asked for again, a few times.

import type { Approval } from "@holdfast/core";

import {
  MCP_LIMITS,
  contentOf,
  fieldsOf,
  fieldsText,
  type ServerAnswer,
  type ServerQuestion,
} from "@holdfast/mcp";
import type { ToolContext } from "../model-loop/tools/tool.ts";

type Asker = Pick<ToolContext, "requestInput">;

interface AskingCall {
  readonly server: string;
  readonly tool: string;
}

/** For a person, because the answer is taken also when the call is gone. */
const ENDS_WITH_PROCESS =
  " (It waits an hour at most, and only while the process that runs this session lives. A later answer does not reach it: the call then counts as uncertain.)";

/**
 * Answers by the keys of the questions. Without a question there is none.
 *
 * @param endsWithProcess the call is open in this process, and cannot begin again in another one
 */
export async function askForServer(
  ctx: Asker,
  call: AskingCall,
  questions: readonly ServerQuestion[],
  endsWithProcess = false,
): Promise<Readonly<Record<string, ServerAnswer>>> {
  const answers: [string, ServerAnswer][] = [];
  const note = endsWithProcess ? ENDS_WITH_PROCESS : "";
  for (const question of questions) answers.push([question.key, await askOne(ctx, call, question, note)]);
  return Object.fromEntries(answers);
}

async function askOne(
  ctx: Asker,
  call: AskingCall,
  question: ServerQuestion,
  note: string,
): Promise<ServerAnswer> {
  const { mode, message } = question;
  const says = `The MCP server ${call.server} asks during ${call.tool}: ${message}`;
  const details = { ...call, ...question };
  if (mode === "url") {
    const prompt = `${says} Open ${question.url} if you trust it. Have you done that?${note}`;
    const { approved } = await ctx.requestInput({ prompt, details });
    return { action: approved ? "accept" : "decline" };
  }
  if (fieldsOf(question.schema).length === 0) {
    const { approved } = await ctx.requestInput({ prompt: `${says}${note}`, details });
    return approved ? { action: "accept", content: {} } : { action: "decline" };
  }
  const fields = `${says} Fields: ${fieldsText(question.schema)}. Answer with an object of the fields, or {"approved": false}.${note}`;
  return askForm(ctx, fields, details, question.schema);
}

async function askForm(
  ctx: Asker,
  says: string,
  details: object,
  schema: Extract<ServerQuestion, { mode: "form" }>["schema"],
): Promise<ServerAnswer> {
  let problem = "";
  for (let asked = 0; asked < MCP_LIMITS.answersPerForm; asked++) {
    const prompt = `${problem}${says}`;
    const given: unknown = await ctx.requestInput({ prompt, details }, { answer: "any" });
    if (isNo(given)) return { action: "decline" };
    const content = contentOf(schema, given);
    if (typeof content !== "string") return { action: "accept", content };
    problem = `The last answer does not fit: ${content}. `;
  }
  return { action: "cancel" };
}

function isNo(given: unknown): boolean {
  return typeof given === "object" && given !== null && (given as Partial<Approval>).approved === false;
}
