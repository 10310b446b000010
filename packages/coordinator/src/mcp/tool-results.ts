// The results of the orchestrator's tools (`turnResult`): JSON as text and as structured content.
//
// A result is bounded, and one that is cut says so.

import type { CallToolResult } from "@modelcontextprotocol/server";

import type { SessionTurn } from "../endpoint/session-turn.ts";

const RESULT_CHARS = 50_000;

export function statusOf(turn: SessionTurn): string {
  return turn.type === "finished" ? "finished" : "running";
}

export function turnResult(id: string, turn: SessionTurn, withResult = true): CallToolResult {
  const common = { session_id: id, status: statusOf(turn) };
  switch (turn.type) {
    case "running":
      return result({
        ...common,
        next: "call get_agent_session_status later, and then get_agent_session_result",
      });
    case "blocked":
      return result({
        ...common,
        blocked: turn.reason,
        next: `a person has to act: \`holdfast show ${id}\` says how, and \`holdfast approve ${id}\` or \`holdfast answer ${id}\` answers`,
      });
    case "finished":
      return withResult
        ? { ...result({ ...common, result: cut(turn.result) }), isError: turn.isError }
        : result({ ...common, failed: turn.isError });
  }
}

function cut(text: string): string {
  return text.length <= RESULT_CHARS
    ? text
    : `${text.slice(0, RESULT_CHARS)}\n[cut: the result has ${text.length} characters, and ${RESULT_CHARS} is the limit]`;
}

export function result(value: Readonly<Record<string, unknown>>): CallToolResult {
  return { content: [{ type: "text", text: JSON.stringify(value) }], structuredContent: { ...value } };
}

export function failure(text: string): CallToolResult {
  return { content: [{ type: "text", text }], isError: true };
}
