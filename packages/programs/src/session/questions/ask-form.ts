// `askForm`: asks a person for the fields of a form that a program needs. The question is a durable question
// of the session.
//
//   - The words of the program are shown as its words.
//   - An answer that does not fit the form is asked for again, a few times.

import { isApproval } from "@holdfast/core";
import type { AgentContext } from "@holdfast/runtime";

import { contentOf, fieldsOf, fieldsText, MCP_LIMITS } from "@holdfast/mcp";
import type { AskedForm, PermissionAnswer, PermissionRequest } from "../external-agent-protocol.ts";
import { cutText, isFields } from "../fields.ts";

export async function askForm(
  ctx: Pick<AgentContext, "requestInput">,
  agent: string,
  { input, form }: Pick<PermissionRequest, "input"> & { readonly form: AskedForm },
): Promise<PermissionAnswer> {
  const says = `${agent} asks: ${cutText(form.message, MCP_LIMITS.questionChars)}`;
  const details = { agent, asked: input };
  if (fieldsOf(form.schema).length === 0) {
    const { approved, reason } = await ctx.requestInput({ prompt: says, details });
    return approved ? { allowed: true, filled: {} } : refused(reason);
  }
  const how = `Fields: ${fieldsText(form.schema)}. Answer with an object of the fields, or {"approved": false}.`;
  let problem = "";
  for (let asked = 0; asked < MCP_LIMITS.answersPerForm; asked++) {
    const given: unknown = await ctx.requestInput(
      { prompt: `${problem}${says} ${how}`, details: { ...details, takesInput: true } },
      { answer: "any" },
    );
    const answer = readAnswer(form, given);
    if (typeof answer !== "string") return answer;
    problem = `The last answer does not fit: ${answer}. `;
  }
  return { allowed: false, message: "No answer of the person fits the form." };
}

/** @returns a text that says what is wrong with the answer. */
function readAnswer({ schema }: AskedForm, given: unknown): PermissionAnswer | string {
  const fields = fieldsOf(schema);
  let value = given;
  if (isApproval(given) && !fields.some(({ name }) => name === "approved")) {
    if (!given.approved) return refused(given.reason);
    value = given.input ?? {};
  }
  const [only, ...others] = fields;
  // A form of one field takes the value alone.
  if (only !== undefined && others.length === 0 && !isFields(value)) value = { [only.name]: value };
  const content = contentOf(schema, value);
  return typeof content === "string" ? content : { allowed: true, filled: content };
}

function refused(reason: string | undefined): PermissionAnswer {
  return {
    allowed: false,
    message: `The person did not answer.${reason === undefined ? "" : ` The reason: ${reason}`}`,
  };
}
