// The size of a session's context, and when it is too large (`isFull`). Pure.
//
//   - The model itself counts the tokens of each request. Only what was added since is estimated.
//   - The next request and its reply must fit. A part of the model's window is therefore kept free.

import { IMAGE_TOKENS, withoutImages } from "../../models/request-size.ts";
import { contextWindow } from "../../models/prices.ts";

/** The size of the conversation that the model reads, as far as it is known. */
export interface ContextSize {
  /** The tokens that the model counted in its last request and reply; 0 before the first reply of this conversation. */
  readonly counted: number;
  /** The bytes of the entries that were added since. */
  readonly addedBytes: number;
}

export const NO_CONTEXT: ContextSize = { counted: 0, addedBytes: 0 };

/**
 * Every model reads more. The price table, which knows the windows, takes long to load and is not needed for
 * such a request.
 */
export const FITS_ALWAYS_TOKENS = 4_000;
/** For a model that the table of prices does not know. Most models of today read more. */
const UNKNOWN_TOKENS = 128_000;
/** Code and JSON have about three bytes a token, and prose has more. */
const BYTES_PER_TOKEN = 3;
/** For the reply, and for the error of the estimate. */
const RESERVE_TOKENS = 20_000;
const RESERVE_PART = 0.3;
/** For the request of a summary and the summary. */
const SUMMARY_TOKENS = 10_000;
const SUMMARY_PART = 0.15;
/** The part of the window that is kept word for word by a boundary. */
const TAIL_TOKENS = 8_000;
const TAIL_PART = 0.15;

/** @param model `provider/model`, or `null` for one that is not known yet. */
export function windowOf(model: string | null): number {
  return (model === null ? undefined : contextWindow(model)) ?? UNKNOWN_TOKENS;
}

/** @param frameBytes the size of the system prompt and the tools. They are in what the model counted. */
export function contextTokens({ counted, addedBytes }: ContextSize, frameBytes: number): number {
  return counted + Math.ceil((addedBytes + (counted === 0 ? frameBytes : 0)) / BYTES_PER_TOKEN);
}

export function isFull(tokens: number, window: number): boolean {
  return tokens > window - Math.min(RESERVE_TOKENS, Math.floor(window * RESERVE_PART));
}

/** The bytes that tool results may add to a conversation of this size, so that it can still be read for a summary. */
export function roomBytes(tokens: number, window: number): number {
  const kept = Math.min(SUMMARY_TOKENS, Math.floor(window * SUMMARY_PART));
  return Math.max(0, window - kept - tokens) * BYTES_PER_TOKEN;
}

/** The bytes of the newest entries that a boundary keeps word for word. */
export function tailBytes(window: number): number {
  return Math.min(TAIL_TOKENS, Math.floor(window * TAIL_PART)) * BYTES_PER_TOKEN;
}

/** An image counts as its tokens. */
export function entryBytes(content: unknown): number {
  const { rest, images } = withoutImages(content);
  return Buffer.byteLength(JSON.stringify(rest) ?? "") + images * IMAGE_TOKENS * BYTES_PER_TOKEN;
}
