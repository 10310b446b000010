// `keepResult`: the result of a call as an entry of the conversation.
//
//   - The model reads as much of a result as leaves room for a summary (compaction-6), and 24,000 characters
//     at most.
//   - A result that is cut is kept whole as well, in an entry beside the conversation, which no model call
//     loads.

import { positionId } from "@holdfast/core";

import type { AgentRecord } from "../../record/agent-record.ts";
import { EVENT_ROLE, type ModelToolCall, type ToolContent } from "../../models/model-provider.ts";
import { RESULT_CHARS_MAX } from "../tools/tool.ts";
import type { TurnDraft } from "../turn/turn-draft.ts";
import { contextTokens, roomBytes } from "./context-size.ts";
import { aboutOf, addCall, cutResult } from "./earlier-work.ts";

/** Shown of every result, however little room there is: a reply has at most 64 of them. */
export const RESULT_CHARS_MIN = 400;

export function keepResult(
  draft: TurnDraft,
  agent: AgentRecord,
  call: ModelToolCall,
  content: ToolContent,
): void {
  const shown = cutResult(content, charsMax(draft, agent, content.text));
  if (shown === content) {
    draft.append("tool", content);
    return;
  }
  const { leaf } = draft.ctx.conversation();
  const before = leaf === undefined ? null : positionId(draft.ctx.sessionId, leaf);
  const whole = { type: "whole_result", toolCallId: call.id, text: content.text };
  const entry = draft.ctx.appendEntry({ role: EVENT_ROLE, content: whole, parentId: null });
  draft.append("tool", shown, before);
  const { earlier } = draft.state;
  const kept = {
    id: call.id,
    name: call.name,
    about: aboutOf(call.input),
    chars: content.text.length,
    entry,
  };
  draft.change({ earlier: { ...earlier, calls: addCall(earlier.calls, kept) } });
}

function charsMax(draft: TurnDraft, agent: AgentRecord, text: string): number {
  const room = roomBytes(contextTokens(draft.state.context, 0), draft.windowTokens(agent));
  const bytesPerChar = Math.max(1, Buffer.byteLength(text) / Math.max(1, text.length));
  return Math.max(RESULT_CHARS_MIN, Math.min(RESULT_CHARS_MAX, Math.floor(room / bytesPerChar)));
}
