// `claudeRecordedCalls`: the usage in Claude Code's own file of a session. Pure. Observed with 2.1.332.
//
//   - A message has a line for each of its blocks. The last one has its whole usage.
//   - A request is open whose line (`api-request`) no whole message answers. Older versions have no such
//     lines: a request follows a prompt, and the last result of the tools of a message. Where the connection
//     was refused nothing was asked: the gateway had ended with our process.
//   - A sub-agent has a file of its own, which is not read: its calls are not known.

import type { RecordedCalls } from "../../session/external-agent-protocol.ts";
import { fieldsOf, listOf, textOr, type Fields } from "../../session/fields.ts";
import { claudeUsage, countsOf } from "./claude-messages.ts";

/** The tools that start a sub-agent. */
const SUB_AGENTS: readonly unknown[] = ["Task", "Agent"];

export function claudeRecordedCalls(lines: readonly Fields[], isPriced: boolean): RecordedCalls {
  const messages = new Map<string, Fields>();
  const requests = new Set<unknown>();
  let request: unknown;
  const tools = new Set<unknown>();
  let isAsked = false;
  let hasSubAgents = false;
  for (const line of lines) {
    const { content, ...message } = fieldsOf(line["message"]);
    switch (line["type"]) {
      case "api-request":
        request = line["id"];
        requests.add(request);
        break;
      case "system":
        if (isRefused(line)) requests.delete(request);
        break;
      case "user": {
        for (const { type, tool_use_id: id } of listOf(content)) if (type === "tool_result") tools.delete(id);
        isAsked = tools.size === 0;
        break;
      }
      case "assistant": {
        isAsked = message["stop_reason"] === null;
        if (!isAsked) requests.delete(line["requestRef"]);
        // The last line of a message has its whole usage.
        if (typeof message["id"] === "string") messages.set(message["id"], message);
        for (const { type, id, name } of listOf(content)) {
          if (type !== "tool_use") continue;
          tools.add(id);
          hasSubAgents ||= SUB_AGENTS.includes(name);
        }
      }
    }
  }
  const calls = [...messages].flatMap(([recordId, { model, usage: counts }]) => {
    const usage = claudeUsage(textOr(model, "unknown"), countsOf(fieldsOf(counts)), isPriced);
    return usage === undefined ? [] : [{ recordId, usage }];
  });
  const isOpen = request === undefined ? isAsked : requests.size > 0;
  return { calls, isComplete: !isOpen && !hasSubAgents };
}

function isRefused({ subtype, error }: Fields): boolean {
  return subtype === "api_error" && fieldsOf(fieldsOf(error)["connection"])["code"] === "ECONNREFUSED";
}
