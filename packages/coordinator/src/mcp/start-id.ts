// `startId`: the ids of sessions that tool calls start.
//
//   start-id-1. A client that has lost an answer sends its request again, with another request id. A start is
//       therefore recognised by what it asks for: by its `idempotency_key`, or without a key by all of its
//       arguments.
//   start-id-2. The same work may be wanted again, so equal arguments do not stand for one session always.
//       Once the answer about a finished session was given, the next equal request starts the next round.
//   - The id begins with a part that only this caller has, so that the sessions of a caller can be found
//     again.

import { createHash } from "node:crypto";

const CALLER_CHARS = 10;
const REQUEST_CHARS = 20;

/** The beginning of the id of every session that this caller starts. */
export function idPrefix(caller: string): string {
  return `mcp-${shortHash(caller, CALLER_CHARS)}-`;
}

export interface StartIdentity {
  /** Identifies the caller's token without revealing it. */
  readonly caller: string;
  readonly key: string | undefined;
  /** The arguments. */
  readonly request: unknown;
  /** The number of earlier rounds (start-id-2). A key has one round. */
  readonly round: number;
}

export function startId({ caller, key, request, round }: StartIdentity): string {
  const identity = key === undefined ? ["request", request] : ["key", key];
  return `${idPrefix(caller)}${shortHash(JSON.stringify(identity), REQUEST_CHARS)}-${round}`;
}

function shortHash(text: string, chars: number): string {
  return createHash("sha256").update(text).digest("hex").slice(0, chars);
}
