// `awaitConversation`: a conversation for task handlers, with the session's own entries after the shared
// ones.

import {
  decodeJson,
  positionId,
  toHoldfastError,
  UsageError,
  type AgentStorage,
  type Clock,
  type ConversationEntry,
  type Entry,
  type Session,
} from "@holdfast/core";

const AGAIN_MS = 500;

/** The sources of entries. */
export interface ConversationSources {
  readonly storage: AgentStorage;
  readonly clock: Clock;
  /** The entries of a session that stores only its row (K11), while it is driven in this process. */
  unstored(sessionId: string, leaf: number): readonly Entry[] | undefined;
}

type Speaker = Pick<Session, "sessionId" | "shared">;

/**
 * As `readConversation`, but wait while storage is unavailable, as that is no failure of the attempt.
 *
 * @param isOver whether the attempt is over, and the conversation no longer needed.
 */
export async function awaitConversation(
  sources: ConversationSources,
  session: Speaker,
  leaf: number | null,
  isOver: () => boolean,
): Promise<readonly ConversationEntry[]> {
  for (;;) {
    try {
      return await readConversation(sources, session, leaf);
    } catch (error) {
      if (toHoldfastError(error).code !== "storage_unavailable" || isOver()) throw error;
      await new Promise<void>((resolve) => sources.clock.setTimer(resolve, AGAIN_MS));
    }
  }
}

/** The conversation of a session up to an entry. For `null` it has only the shared entries, if any. */
async function readConversation(
  sources: ConversationSources,
  { sessionId, shared }: Speaker,
  leaf: number | null,
): Promise<readonly ConversationEntry[]> {
  const { storage, unstored } = sources;
  const own =
    leaf === null ? [] : (unstored(sessionId, leaf) ?? (await storage.conversation(sessionId, leaf)));
  const entries = own.map((entry) => toConversation(sessionId, entry));
  if (shared === undefined || shared.kind === "custom") return entries;
  // The session's first entry follows what is shared. A later root begins a conversation of its own.
  if ((own[0]?.index ?? 0) > 0) return entries;
  const origin = await storage.reader.session(shared.sessionId);
  if (origin === undefined) return entries;
  const { leaf: last = null } = shared;
  const isKept = origin.persistence === undefined || last === null || unstored(origin.sessionId, last);
  if (!isKept) throw conversationNotKept(origin);
  const before = await readConversation(sources, origin, last);
  const [first, ...rest] = entries;
  const lastBefore = before.at(-1);
  if (first === undefined || lastBefore === undefined || shared.kind !== "conversation")
    return [...before, ...entries];
  return [...before, { ...first, parentId: lastBefore.id }, ...rest]; // A branch of that one.
}

function conversationNotKept({ sessionId, persistence }: Session): UsageError {
  return new UsageError(`the conversation that session ${sessionId} shared is not to be had here`, {
    got: `a session that is ${persistence ?? "full"}: its conversation is only where it runs, while it does`,
    fix: "call ctx.enablePersistence() in it before it shares its conversation, or share a value: { custom }",
  });
}

function toConversation(sessionId: string, { id, parent, role, turn, content }: Entry): ConversationEntry {
  return {
    id: positionId(sessionId, id),
    parentId: parent === undefined ? null : positionId(sessionId, parent),
    role,
    turnId: String(turn),
    content: decodeJson(content),
  };
}
