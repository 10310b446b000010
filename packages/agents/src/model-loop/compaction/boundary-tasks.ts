// The durable tasks of compaction: `conversationTail` reads the newest entries, and `earlierResult` reads a result before a boundary.
//
// Both read a conversation that the task gets by reference. They change nothing.

import { NotFoundError } from "@holdfast/core";
import { defineTask } from "@holdfast/runtime";

import type { AssistantContent, ToolContent } from "../../models/model-provider.ts";
import { entryBytes } from "./context-size.ts";

export interface StoredEntry {
  readonly role: string;
  readonly content: unknown;
}

export interface Tail {
  readonly entries: readonly StoredEntry[];
  /** The files that the conversation has written, in the order of their first change. */
  readonly files: readonly string[];
  /** Calls before the tail whose results are worth to be read again. */
  readonly calls: readonly { readonly id: string; readonly name: string; readonly chars: number }[];
}

/** Longer results of the tail are cut. The whole result can be read again. */
const RESULT_CHARS = 4_000;
const FILES_MAX = 50;
const CALLS_MAX = 30;
const CALL_CHARS_MIN = 500;
const WRITERS: ReadonlySet<string> = new Set(["write_file", "edit_file"]);

/** A conversation that is scheduled as `ctx.conversation(…)` and handed over as its entries. */
interface WithConversation {
  readonly messages: unknown;
}

/** The newest entries of at most `bytes`, from the beginning of a request or reply on: no call is parted from its results. */
export const conversationTail = defineTask<WithConversation & { readonly bytes: number }, Tail>({
  name: "conversation_tail",
  description: "Read the newest entries of the conversation.",
  run: ({ messages, bytes }) => tailOf(messages as readonly StoredEntry[], bytes),
});

export const earlierResult = defineTask<
  WithConversation & { readonly callId: string; readonly offset: number; readonly chars: number },
  { readonly text: string; readonly total: number }
>({
  name: "earlier_result",
  description: "Read the result of an earlier call.",
  retry: { nonRetryable: ["file_not_found"] },
  run: ({ messages, callId, offset, chars }) => {
    const found = (messages as readonly StoredEntry[]).find(
      ({ role, content }) => role === "tool" && (content as ToolContent).toolCallId === callId,
    );
    if (found === undefined)
      throw new NotFoundError("file_not_found", `no earlier call has the id ${callId.slice(0, 100)}`, {
        fix: "use an id from the list in the summary",
      });
    const { text } = found.content as ToolContent;
    return { text: text.slice(offset, offset + chars), total: text.length };
  },
});

function tailOf(all: readonly StoredEntry[], bytes: number): Tail {
  const entries = all.filter(({ role }) => role !== "event"); // Records of scripts, which no model reads.
  let from = entries.length;
  let size = 0;
  for (const start of groupStarts(entries).toReversed()) {
    const group = entries.slice(start, from).map(cutResult);
    size += group.reduce((sum, { content }) => sum + entryBytes(content), 0);
    // The newest group is kept whatever its size is: the model is in the middle of it.
    if (size > bytes && from < entries.length) break;
    from = start;
  }
  return { entries: entries.slice(from).map(cutResult), ...facts(entries, from) };
}

/** The places at which a request or a reply begins. The results of a reply belong to it. */
function groupStarts(entries: readonly StoredEntry[]): readonly number[] {
  return entries.flatMap(({ role }, at) => (role === "tool" ? [] : [at]));
}

function cutResult(entry: StoredEntry): StoredEntry {
  if (entry.role !== "tool") return entry;
  const content = entry.content as ToolContent;
  if (content.text.length <= RESULT_CHARS) return entry;
  const half = RESULT_CHARS / 2;
  const left = content.text.length - RESULT_CHARS;
  const mark = `\n[${left} characters left out; read_result with call_id ${content.toolCallId} reads them]\n`;
  const text = `${content.text.slice(0, half)}${mark}${content.text.slice(-half)}`;
  return { role: "tool", content: { ...content, text } };
}

function facts(entries: readonly StoredEntry[], from: number): Pick<Tail, "files" | "calls"> {
  const files = new Set<string>();
  for (const { role, content } of entries) {
    if (role !== "assistant") continue;
    for (const { name, input } of (content as AssistantContent).toolCalls)
      if (WRITERS.has(name) && typeof input["path"] === "string") files.add(input["path"]);
  }
  const calls = entries
    .slice(0, from)
    .filter(({ role }) => role === "tool")
    .map(({ content }) => content as ToolContent)
    .filter(({ text }) => text.length >= CALL_CHARS_MIN)
    .map(({ toolCallId, name, text }) => ({ id: toolCallId, name, chars: text.length }));
  return { files: [...files].slice(0, FILES_MAX), calls: calls.slice(-CALLS_MAX) };
}
