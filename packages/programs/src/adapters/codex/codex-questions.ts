// The requests of Codex to its host, and the answers in its form (`codexRequest`, `codexAnswer`). Pure.
//
//   - A question whose answer is a secret is refused, because every answer is recorded.
//   - The requests other than approvals are read by the types of the protocol (0.169.0), and were not
//     observed with the real program.

import type { PermissionAnswer, PermissionRequest } from "../../session/external-agent-protocol.ts";
import { isFields, listOf, textOr, type Fields } from "../../session/fields.ts";
import { answeredChoices, choicesForm } from "../../session/questions/choices.ts";
import { innerCommand } from "./codex-items.ts";

const CHOICES = "item/tool/requestUserInput";
const ELICITATION = "mcpServer/elicitation/request";
const APPROVALS = ["item/commandExecution/requestApproval", "item/fileChange/requestApproval"];

/** An open request: its id as Codex writes it, and its method. */
export interface CodexAsked {
  readonly id: unknown;
  readonly method: string;
  readonly request: PermissionRequest;
}

/**
 * @param known the call that the request is for.
 * @returns a text that says why the request is refused.
 */
export function codexRequest(
  requestId: string,
  method: string,
  params: Fields,
  known: Pick<PermissionRequest, "tool" | "input"> | undefined,
): PermissionRequest | string {
  const toolCallId = textOr(params["itemId"], "");
  if (APPROVALS.includes(method)) {
    const { command, reason } = params;
    return typeof command === "string"
      ? { requestId, toolCallId, tool: "shell", input: { command: innerCommand(command) } }
      : { requestId, toolCallId, tool: known?.tool ?? "edit_file", input: known?.input ?? { reason } };
  }
  if (method === CHOICES) {
    const { questions } = params;
    if (listOf(questions).some(({ isSecret }) => isSecret === true))
      return "Holdfast records every answer, and takes none that is secret";
    const form = choicesForm(questions);
    if (form !== undefined)
      return { requestId, toolCallId, tool: "request_user_input", input: { questions }, form };
  }
  const { mode, message, serverName: server, requestedSchema: schema } = params;
  if (method === ELICITATION && mode === "form" && isFields(schema)) {
    const form = { message: textOr(message, ""), schema };
    return { requestId, toolCallId, tool: "elicitation", input: { server, message, schema }, form };
  }
  return `Holdfast does not support the request ${method}${method === ELICITATION ? ` with the mode ${JSON.stringify(mode)}` : ""}`;
}

/** @param answer `undefined` for a turn that is interrupted. */
export function codexAnswer({ method, request }: CodexAsked, answer: PermissionAnswer | undefined): Fields {
  const filled = answer?.allowed === true ? answer.filled : undefined;
  if (method === ELICITATION) {
    const action = filled === undefined ? (answer === undefined ? "cancel" : "decline") : "accept";
    return { action, content: filled ?? null, _meta: null };
  }
  if (method !== CHOICES)
    return { decision: answer === undefined ? "cancel" : answer.allowed ? "accept" : "decline" };
  const answers = filled === undefined ? [] : answeredChoices(request.input["questions"], filled);
  return {
    answers: Object.fromEntries(
      answers.map(({ question, answers: texts }) => [question["id"], { answers: texts }]),
    ),
  };
}
