// How many tokens a request has at most, before any model has counted them.
//
// A byte is at least one character of a token: tokenizers of today work on bytes, so a text has no more tokens than bytes.
// What a server puts around each part (roles, names, separators) is allowed for on top.

import type { ConversationEntry } from "@holdfast/core";
import type { ModelTool } from "./model-provider.ts";

/** What a reply may have at most when nobody says. */
export const MODEL_OUTPUT_TOKENS = 16_000;
/** No model of today reads more: the worst case of a conversation whose size is not told. */
export const MODEL_INPUT_TOKENS = 1_000_000;

const PART_TOKENS = 64;
const REQUEST_TOKENS = 1_024;

export function entryTokens({ role, content }: Pick<ConversationEntry, "role" | "content">): number {
  return bytes(role) + bytes(JSON.stringify(content) ?? "") + PART_TOKENS;
}

/** Of a request, apart from its conversation. */
export function frameTokens(system: string, tools: readonly ModelTool[]): number {
  return tools.reduce(
    (sum, tool) => sum + bytes(JSON.stringify(tool)) + PART_TOKENS,
    bytes(system) + REQUEST_TOKENS,
  );
}

function bytes(text: string): number {
  return Buffer.byteLength(text);
}
