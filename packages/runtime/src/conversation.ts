// A conversation as task handlers see it: its own entries, after those of the session that shared its own (K8).

import {
  decodeJson,
  positionId,
  toHoldfastError,
  type AgentStorage,
  type Clock,
  type ConversationEntry,
  type Entry,
  type Session,
} from "@holdfast/core";

const AGAIN_MS = 500;

/** As `readConversation`, as soon as storage can be asked: that it cannot is no failure of the attempt that wants to know. */
export async function awaitConversation(
  storage: AgentStorage,
  clock: Clock,
  session: Pick<Session, "sessionId" | "shared">,
  leaf: number | null,
): Promise<readonly ConversationEntry[]> {
  for (;;) {
    try {
      return await readConversation(storage, session, leaf);
    } catch (error) {
      if (toHoldfastError(error).code !== "storage_unavailable") throw error;
      await new Promise<void>((resolve) => clock.setTimer(resolve, AGAIN_MS));
    }
  }
}

/** The conversation of a session up to an entry; up to its beginning, which may be another's end, for `null`. */
async function readConversation(
  storage: AgentStorage,
  { sessionId, shared }: Pick<Session, "sessionId" | "shared">,
  leaf: number | null,
): Promise<readonly ConversationEntry[]> {
  const own = leaf === null ? [] : await storage.conversation(sessionId, leaf);
  const entries = own.map((entry) => toConversation(sessionId, entry));
  if (shared === undefined || shared.kind === "custom") return entries;
  const origin = await storage.reader.session(shared.sessionId);
  if (origin === undefined) return entries;
  const before = await readConversation(storage, origin, shared.leaf ?? null);
  const [first, ...rest] = entries;
  const last = before.at(-1);
  if (first === undefined || last === undefined || shared.kind !== "conversation")
    return [...before, ...entries];
  return [...before, { ...first, parentId: last.id }, ...rest]; // A branch of that one.
}

export function toConversation(
  sessionId: string,
  { id, parent, role, turn, content }: Entry,
): ConversationEntry {
  return {
    id: positionId(sessionId, id),
    parentId: parent === undefined ? null : positionId(sessionId, parent),
    role,
    turnId: String(turn),
    content: decodeJson(content),
  };
}
