// The durable tasks of compaction: `conversationTail` reads the newest entries, and `earlierResult` reads a
// result before a boundary. Both read a conversation that the task gets by reference, and change nothing.
// `contextLimit` pauses the session.

import { NotFoundError, PauseError } from "@holdfast/core";
import { defineTask } from "@holdfast/runtime";

import { EVENT_ROLE, type AssistantContent, type ToolContent } from "../../models/model-provider.ts";
import { entryBytes } from "./context-size.ts";
import { aboutOf, cutResult, type ShownWork } from "./earlier-work.ts";
import { RESULT_CHARS_MIN } from "./keep-result.ts";

export interface StoredEntry {
  readonly role: string;
  readonly content: unknown;
}

export interface FullContext {
  readonly agent: string;
  /** `provider/model`, or `null` for a model that has not answered yet. */
  readonly model: string | null;
}

export interface Tail extends ShownWork {
  readonly entries: readonly StoredEntry[];
}

/**
 * Longer results of the tail are cut, and shorter ones too where the newest reply has many. The whole result
 * can be read again.
 */
const RESULT_CHARS = 4_000;
/** Shorter results are not worth to be read again. */
const CALL_CHARS_MIN = 500;
const WRITERS: ReadonlySet<string> = new Set(["write_file", "edit_file"]);
const READ_SKILL = "read_skill";

/** A conversation that is scheduled as `ctx.conversation(…)` and handed over as its entries. */
interface WithConversation {
  readonly messages: unknown;
}

/**
 * The newest entries of at most `bytes`, from the beginning of a request or reply on: no call is parted from
 * its results.
 */
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
    const found = (messages as readonly StoredEntry[])
      .filter(({ role }) => role === "tool" || role === EVENT_ROLE)
      .map(({ content }) => content as Partial<ToolContent>)
      .find(
        ({ toolCallId, text, total }) => toolCallId === callId && text !== undefined && total === undefined,
      );
    if (found?.text === undefined)
      throw new NotFoundError("file_not_found", `no earlier call has the id ${callId.slice(0, 100)}`, {
        fix: "use an id from the list in the summary",
      });
    return { text: found.text.slice(offset, offset + chars), total: found.text.length };
  },
});

/**
 * Pauses a session whose boundaries do not help (compaction-4). The first attempt asks for the pause. The
 * next one begins when the session is resumed, and does nothing. An attempt that was lost before the pause
 * costs two more boundaries, after which the session pauses.
 */
export const contextLimit = defineTask<FullContext, null>({
  name: "context_limit",
  description: "Pauses the session, because summaries do not make its conversation shorter.",
  run: ({ agent, model }, { attempt, sessionId }) => {
    if (attempt > 1) return null;
    const window = `the context window of ${model ?? "its model"}`;
    throw new PauseError(
      "quota_exceeded",
      `agent "${agent}" was stopped because its conversation fills ${window}, and two summaries in a row did not help`,
      {
        fix:
          `give it a smaller goal (\`holdfast signal ${sessionId} steer '"TEXT"'\`), ` +
          `or let an agent whose model reads more take over (\`holdfast fork ${sessionId} --agent FILE\`)`,
        pause: { reason: "quota", pool: window },
      },
    );
  },
});

function tailOf(all: readonly StoredEntry[], bytes: number): Tail {
  const entries = all.filter(({ role }) => role !== EVENT_ROLE);
  // Each boundary writes its own first message.
  const first = entries.findLastIndex(({ content }) => isBoundary(content)) + 1;
  const starts = groupStarts(entries, first).toReversed();
  const newest = entries.slice(starts[0] ?? entries.length).filter(({ role }) => role === "tool").length;
  const charsMax = Math.max(
    RESULT_CHARS_MIN,
    Math.min(RESULT_CHARS, Math.floor(bytes / Math.max(1, newest))),
  );
  let from = entries.length;
  let size = 0;
  for (const start of starts) {
    const group = entries.slice(start, from).map((entry) => cut(entry, charsMax));
    size += group.reduce((sum, { content }) => sum + entryBytes(content), 0);
    // The newest group is kept whatever its size is: the model is in the middle of it.
    if (size > bytes && from < entries.length) break;
    from = start;
  }
  const tail = entries.slice(from).map((entry) => cut(entry, charsMax));
  const skills = skillReads(entries, from, bytes);
  const kept = new Set(skills.map(({ content }) => (content as Partial<ToolContent>).toolCallId));
  return { entries: [...skills, ...tail], ...shownWork(entries, from, charsMax, kept) };
}

/**
 * The calls before the tail that read a skill, each with its result: a session works by what a skill says until
 * it ends. Each skill counts once, and the newest ones go first where not all of them fit.
 */
function skillReads(entries: readonly StoredEntry[], from: number, bytes: number): readonly StoredEntry[] {
  const results = new Map(
    entries.flatMap(({ role, content }) =>
      role === "tool" ? [[(content as ToolContent).toolCallId, content]] : [],
    ),
  );
  const seen = new Set<string>();
  const kept: StoredEntry[][] = [];
  let size = 0;
  for (const [at, { role, content }] of [...entries.entries()].toReversed()) {
    if (role !== "assistant") continue;
    const { toolCalls } = content as AssistantContent;
    const calls = toolCalls.filter(({ id, name, input }) => {
      const result = results.get(id) as ToolContent | undefined;
      if (name !== READ_SKILL || input["file"] !== undefined || result === undefined || result.isError)
        return false;
      const skill = String(input["name"]);
      if (seen.has(skill)) return false;
      if (at < from && size + entryBytes(result) > bytes) return false;
      seen.add(skill);
      size += at < from ? entryBytes(result) : 0;
      return true;
    });
    if (at >= from || calls.length === 0) continue;
    kept.unshift([
      { role, content: { ...(content as AssistantContent), toolCalls: calls } },
      ...calls.map(({ id }) => ({ role: "tool", content: results.get(id) })),
    ]);
  }
  return kept.flat();
}

function isBoundary(content: unknown): boolean {
  return typeof content === "object" && content !== null && "boundary" in content;
}

/** The places from `first` on at which a request or a reply begins. The results of a reply belong to it. */
function groupStarts(entries: readonly StoredEntry[], first: number): readonly number[] {
  return entries.flatMap(({ role }, at) => (role === "tool" || at < first ? [] : [at]));
}

function cut(entry: StoredEntry, charsMax: number): StoredEntry {
  if (entry.role !== "tool") return entry;
  return { role: "tool", content: cutResult(entry.content as ToolContent, charsMax) };
}

/**
 * @param from the first entry of the tail. Its results of at most `charsMax` are shown whole, and need not be
 *   read again.
 * @param kept the ids of calls before the tail whose results are shown, too.
 */
function shownWork(
  entries: readonly StoredEntry[],
  from: number,
  charsMax: number,
  kept: ReadonlySet<string | undefined>,
): ShownWork {
  const asked = entries
    .filter(({ role }) => role === "assistant")
    .flatMap(({ content }) => (content as AssistantContent).toolCalls);
  const inputs = new Map(asked.map(({ id, input }) => [id, input]));
  const files = asked.flatMap(({ name, input }) =>
    WRITERS.has(name) && typeof input["path"] === "string" ? [input["path"]] : [],
  );
  const calls = entries
    .map(({ role, content }, at) => ({ role, content: content as ToolContent, isInTail: at >= from }))
    .filter(({ role, content, isInTail }) => {
      if (role !== "tool") return false;
      const isPart = content.total !== undefined;
      if (!isPart && kept.has(content.toolCallId)) return false;
      // The model may not know any more that it has read a skill.
      if (!isPart && !isInTail && content.name === READ_SKILL) return true;
      return isPart || content.text.length >= (isInTail ? charsMax + 1 : CALL_CHARS_MIN);
    })
    .map(({ content: { toolCallId, name, text, total } }) => ({
      id: toolCallId,
      name,
      about: aboutOf(inputs.get(toolCallId) ?? {}),
      chars: total ?? text.length,
      isPart: total !== undefined,
    }));
  return { files: [...new Set(files)], calls };
}
