// The recorded conversation of a session as a text for an agent that did not write it (`recordText`). Pure.
//
//   - The text has a limit. The newest entries count, and the text says how many earlier ones are left out.
//   - A plan that a later plan of the same author replaced is no part of the text.
//   record-text-3. A record that an earlier session was told is no part of it, because its entries are.

import type { ConversationEntry } from "@holdfast/core";

import { fieldsOf } from "./fields.ts";

/** The beginning of a prompt that tells a new session what is recorded. */
export const RECORD_MARK = "You have begun this work in a session that is lost. You remember nothing of it.";

const RECORD_CHARS = 40_000;
const ENTRY_CHARS = 2_000;

/** @param earlier the number of entries before these. */
export function recordText(
  entries: readonly Pick<ConversationEntry, "role" | "content">[],
  earlier = 0,
): string {
  const lines: string[] = [];
  const planned = new Set<unknown>();
  let chars = 0;
  let replaced = 0;
  for (const { role, content } of entries.toReversed()) {
    const text = textOf(content);
    const { parentCallId } = fieldsOf(content);
    if (role === "plan") {
      if (planned.has(parentCallId)) {
        replaced++;
        continue;
      }
      planned.add(parentCallId);
    }
    const by = typeof parentCallId === "string" ? ` (a sub-agent, started by the call ${parentCallId})` : "";
    const cut = text.length > ENTRY_CHARS ? ` (${text.length - ENTRY_CHARS} more characters)` : "";
    const line = `${role}${by}: ${text.slice(0, ENTRY_CHARS)}${cut}`;
    chars += line.length;
    if (chars > RECORD_CHARS) break;
    lines.push(line);
  }
  const leftOut = earlier + entries.length - lines.length - replaced;
  if (leftOut > 0) lines.push(`(${leftOut} earlier entries are left out)`);
  return lines.toReversed().join("\n");
}

function textOf(content: unknown): string {
  if (typeof content === "string") {
    const at = content.indexOf(RECORD_MARK); // record-text-3.
    return at === -1 ? content : `${content.slice(0, at)}(A new session was told what is recorded above.)`;
  }
  const { text, toolCalls } = fieldsOf(content);
  const calls = Array.isArray(toolCalls) && toolCalls.length > 0 ? JSON.stringify(toolCalls) : "";
  return `${typeof text === "string" ? text : JSON.stringify(content)}${calls}`;
}
