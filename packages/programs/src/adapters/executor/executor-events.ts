// `eventsOf`: the reports of an executor as events of a turn. Pure.

import type { ExternalEvent } from "../../session/external-agent-protocol.ts";
import { fieldsOf, textOr, textOrJson, type Fields } from "../../session/fields.ts";

/**
 * The events of one report. Its result is no event, a prompt is in the session already, and reports of other
 * types are facts about the program.
 */
export function eventsOf(report: Fields): readonly ExternalEvent[] {
  switch (report["event_type"]) {
    case "message":
      return report["role"] === "user" ? [] : [{ type: "text", text: messageText(report["content"]) }];
    case "pre_tool":
      return [{ type: "tool_call", id: callId(report), name: toolName(report), input: inputOf(report) }];
    case "post_tool":
      return [
        {
          type: "tool_result",
          id: callId(report),
          text: textOrJson(report["error"] ?? report["tool_output"] ?? ""),
          isError: report["error"] !== undefined && report["error"] !== null,
        },
      ];
    default:
      return [];
  }
}

/** A message: a text, or a list of parts `{ type: "text", text }`. Any other content is shown as JSON. */
function messageText(content: unknown): string {
  if (typeof content === "string") return content;
  const texts = Array.isArray(content) ? content.map((part) => fieldsOf(part)["text"]) : undefined;
  const isText = texts?.every((text) => typeof text === "string") === true;
  return isText ? texts.join("") : JSON.stringify(content ?? "");
}

/** A call has the id that the executor gives it, or that of its tool and input, which its result names again. */
function callId(report: Fields): string {
  const id = report["tool_use_id"] ?? report["tool_call_id"];
  if (typeof id === "string" && id !== "") return id;
  return `${toolName(report)} ${JSON.stringify(inputOf(report))}`.slice(0, ID_CHARS);
}

const ID_CHARS = 200;

function toolName(report: Fields): string {
  return textOr(report["tool_name"], "tool");
}

function inputOf(report: Fields): Fields {
  return fieldsOf(report["tool_input"]);
}
