// Upper bounds for the tokens of a request, before any model has counted them.
//
// Tokenizers of today work on bytes, so a text has no more tokens than bytes. The bounds add an allowance for
// the text that a server puts around each part: roles, names, separators.

import type { ConversationEntry } from "@holdfast/core";
import type { ModelTool } from "./model-provider.ts";

/** The default limit of a reply. */
export const MODEL_OUTPUT_TOKENS = 16_000;
/** The worst case of a conversation whose size is unknown. No model of today reads more. */
export const MODEL_INPUT_TOKENS = 1_000_000;

const PART_TOKENS = 64;
/** Servers scale an image down to about 1,600 tokens. Newer models of Google take more. */
export const IMAGE_TOKENS = 3_000;
const REQUEST_TOKENS = 1_024;

/** The tokens of frozen contents, since a handler sees the same objects in every turn. */
const counted = new WeakMap<object, number>();

export function entryTokens({ role, content }: Pick<ConversationEntry, "role" | "content">): number {
  return bytes(role) + contentTokens(content) + PART_TOKENS;
}

function contentTokens(content: unknown): number {
  const key =
    typeof content === "object" && content !== null && Object.isFrozen(content) ? content : undefined;
  const known = key && counted.get(key);
  if (known !== undefined) return known;
  const { rest, images } = withoutImages(content);
  const tokens = bytes(JSON.stringify(rest) ?? "") + images * IMAGE_TOKENS;
  if (key !== undefined) counted.set(key, tokens);
  return tokens;
}

/** The content of an entry without its images, which a model does not read as text, and their number. */
export function withoutImages(content: unknown): { readonly rest: unknown; readonly images: number } {
  const { images, ...rest } = (content ?? {}) as { readonly images?: unknown };
  return Array.isArray(images) ? { rest, images: images.length } : { rest: content, images: 0 };
}

/** The tokens of a request apart from its conversation. */
export function frameTokens(system: string, tools: readonly ModelTool[]): number {
  return tools.reduce(
    (sum, tool) => sum + bytes(JSON.stringify(tool)) + PART_TOKENS,
    bytes(system) + REQUEST_TOKENS,
  );
}

function bytes(text: string): number {
  return Buffer.byteLength(text);
}
