// A conversation as task handlers see it: its own entries, after those of the session that shared its own.

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
 * As `readConversation`, as soon as storage can be asked: that it cannot is no failure of the attempt that wants to know.
 *
 * @param isOver whether nobody wants to know any more.
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

/** The conversation of a session up to an entry; up to its beginning, which may be another's end, for `null`. */
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
