// `sessionIdFor` and `contextOf`: the ids of sessions that messages start, and the context that a session is in.
//
//   - The id of a task is the id of its session. It is made of the owner, the agent, the context and the message's
//     id, so a message that is sent again means the same session.
//   - The context is a part of the id, and is stored nowhere else. A session that no message has started is a
//     context of its own.

import { createHash } from "node:crypto";
import { UsageError } from "@holdfast/core";

/** With `a2a.`, a dot and the 32 digits, an id of a session has at most 100 characters. */
const CONTEXT = /^[A-Za-z0-9._-]{1,63}$/;
const STARTED = /^a2a\.(?<context>.{1,63})\.[0-9a-f]{32}$/;
const DIGITS = 32;

export interface FirstMessage {
  /** The user that the session will belong to; empty for an admin. */
  readonly owner: string;
  readonly agent: string;
  /** As the client names it; empty when it names none. */
  readonly contextId: string;
  readonly messageId: string;
}

/** @throws UsageError for a context that no id of a session can contain. */
export function sessionIdFor({ owner, agent, contextId, messageId }: FirstMessage): string {
  if (contextId !== "" && !CONTEXT.test(contextId))
    throw new UsageError("the context cannot be kept", {
      at: "message.contextId",
      got: contextId.slice(0, 100),
      expected:
        "1 to 63 letters, digits, dots, dashes or underscores; or none, and the coordinator makes one",
    });
  const message = [owner, agent, messageId];
  const context = contextId === "" ? digestOf(["context", ...message]) : contextId;
  return `a2a.${context}.${digestOf(["message", ...message, contextId])}`;
}

export function contextOf(sessionId: string): string {
  return STARTED.exec(sessionId)?.groups?.["context"] ?? sessionId;
}

/** The key under which a session takes a message once. */
export function messageKey(messageId: string): string {
  return digestOf(["message", messageId]);
}

function digestOf(parts: readonly string[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, DIGITS);
}
