// The requests of Claude Code to its host, and the answers in its form (`claudeRequest`, `claudeAnswer`).
// Pure.
//
//   - `AskUserQuestion` is permitted with the answers by the texts of its questions, several answers with
//     commas between them.
//   - An elicitation of an MCP server is answered where it asks for the fields of a form. Any other request
//     is refused, with a message that names it.

import { defined } from "@holdfast/core";
import type { PermissionAnswer, PermissionRequest } from "../../session/external-agent-protocol.ts";
import { fieldsOf, isFields, textOr, type Fields } from "../../session/fields.ts";
import { answeredChoices, choicesForm } from "../../session/questions/choices.ts";

const CHOICES = "AskUserQuestion";
const ELICITATION = "elicitation";

/** @returns a text that says which request is refused. */
export function claudeRequest(requestId: string, request: Fields): PermissionRequest | string {
  const { subtype, tool_name: name, tool_use_id: toolCallId, input } = request;
  if (subtype === "can_use_tool") {
    const tool = textOr(name, "");
    const form = tool === CHOICES ? choicesForm(fieldsOf(input)["questions"]) : undefined;
    return {
      requestId,
      toolCallId: textOr(toolCallId, ""),
      tool,
      input: fieldsOf(input),
      ...defined({ form }),
    };
  }
  const { mode = "form", message, mcp_server_name: server, requested_schema: schema } = request;
  if (subtype !== ELICITATION || mode !== "form" || !isFields(schema))
    return subtype === ELICITATION
      ? `${ELICITATION} with the mode ${JSON.stringify(mode)}`
      : textOr(subtype, "");
  const asked = { ...(typeof server === "string" ? { server } : {}), message, schema };
  const form = { message: textOr(message, ""), schema };
  return { requestId, toolCallId: "", tool: ELICITATION, input: asked, form };
}

/** The response to a request of `claudeRequest`. */
export function claudeAnswer({ tool, input, form }: PermissionRequest, answer: PermissionAnswer): Fields {
  if (tool === ELICITATION && form !== undefined)
    return answer.allowed ? { action: "accept", content: answer.filled ?? {} } : { action: "decline" };
  if (!answer.allowed) return { behavior: "deny", message: answer.message };
  if (form === undefined) return { behavior: "allow", updatedInput: answer.input ?? input };
  const answers = answeredChoices(input["questions"], answer.filled ?? {}).map(
    ({ question, answers: texts }) => [question["question"], texts.join(", ")],
  );
  return { behavior: "allow", updatedInput: { ...input, answers: Object.fromEntries(answers) } };
}
