// `piRecordedCalls`: the usage in Pi's own file of a session. Pure. Observed with 1.6.
//
//   - A message of the model is stored when it is complete, with the id of the response. Pi writes the file
//     with the first one.
//   - A request follows a prompt, and the last result of the tools of a message. It is open until its message
//     is stored, and for good where the message was aborted. No request follows a tool that was aborted.

import type { RecordedCalls } from "../../session/external-agent-protocol.ts";
import { countOf, fieldsOf, listOf, textOr, type Fields } from "../../session/fields.ts";

export function piRecordedCalls(
  lines: readonly Fields[],
  from: number,
  unpriced: readonly string[],
): RecordedCalls {
  const calls: RecordedCalls["calls"][number][] = [];
  const tools = new Set<unknown>();
  let isAsked = false;
  for (const { type, message: stored } of lines.slice(from)) {
    if (type !== "message") continue;
    const message = fieldsOf(stored);
    const { role, content, toolCallId, stopReason } = message;
    if (role === "toolResult") tools.delete(toolCallId);
    if (role === "user" || role === "toolResult") isAsked = tools.size === 0 && !isAbortOf(message);
    if (role !== "assistant") continue;
    if (stopReason !== "aborted") isAsked = false;
    for (const part of listOf(content)) if (part["type"] === "toolCall") tools.add(part["id"]);
    const call = piCallOf(message, unpriced);
    if (call !== undefined) calls.push(call);
  }
  return { calls, isComplete: !isAsked };
}

/** Whether a message is the result of a tool that was aborted. */
function isAbortOf({ role, isError, content }: Fields): boolean {
  const text = listOf(content).map((part) => textOr(part["text"], ""));
  return role === "toolResult" && isError === true && /aborted\W*$/.test(text.join(""));
}

/** @returns `undefined` for a message that has used nothing. @param unpriced as in `DialogueTurn`. */
export function piCallOf(
  message: Fields,
  unpriced: readonly string[],
): RecordedCalls["calls"][number] | undefined {
  const { usage, responseId, timestamp, provider } = message;
  const { input, output, cacheRead, cacheWrite } = fieldsOf(usage);
  const cacheReadTokens = countOf(cacheRead);
  const cacheWriteTokens = countOf(cacheWrite);
  const inputTokens = countOf(input) + cacheReadTokens + cacheWriteTokens;
  const outputTokens = countOf(output);
  if (inputTokens + outputTokens === 0) return undefined;
  const isUnpriced = unpriced.includes(textOr(provider, ""));
  const model = piModel(isUnpriced ? { ...message, provider: "other" } : message);
  return {
    recordId: textOr(responseId, String(timestamp)),
    usage: { model, inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens },
  };
}

/** A model by the name that our table of prices knows: that of its provider, and its own. */
export function piModel({ provider, id, model }: Fields): string {
  return `${textOr(provider, "pi")}/${textOr(id, textOr(model, "unknown"))}`;
}
