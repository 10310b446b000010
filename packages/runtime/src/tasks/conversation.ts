// `awaitConversation`: a conversation for task handlers, with the session's own entries after the shared
// ones. `KeptConversations` keeps those that live sessions read last, because most of a conversation is the
// same as in the turn before.
//
//   - Entries of a session never change, so a kept conversation is the beginning of a longer one. A
//     conversation that does not continue the kept one is read as a whole. It is forgotten when its session
//     leaves the process. The number and the length of conversations are limited.
//   conversation-2. Each entry is decoded once, and every attempt sees the same object. Entries are therefore frozen,
//       also where nothing is kept: whether a handler may change one must not depend on that.

import {
  decodeJson,
  deepFreeze,
  PauseError,
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
  /** The conversations of live sessions. */
  readonly kept?: KeptConversations | undefined;
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
  const own = leaf === null ? [] : await readOwn(sources, sessionId, leaf);
  const entries = own.map(({ seen }) => seen);
  if (shared === undefined || shared.kind === "custom") return entries;
  // The session's first entry follows what is shared. A later root begins a conversation of its own.
  if ((own[0]?.index ?? 0) > 0) return entries;
  const origin = await storage.reader.session(shared.sessionId);
  // Without a leaf, the other session had said nothing by then.
  if (origin === undefined && shared.leaf === undefined) return entries;
  if (origin === undefined) throw conversationGone(sessionId, shared.sessionId);
  const { leaf: last = null } = shared;
  const isKept = origin.persistence === undefined || last === null || unstored(origin.sessionId, last);
  if (!isKept) throw conversationNotKept(origin);
  // The other session need not live here, and nothing would forget what is kept of it.
  const before = await readConversation({ ...sources, kept: undefined }, origin, last);
  const [first, ...rest] = entries;
  const lastBefore = before.at(-1);
  if (first === undefined || lastBefore === undefined || shared.kind !== "conversation")
    return [...before, ...entries];
  return [...before, { ...first, parentId: lastBefore.id }, ...rest]; // A branch of that one.
}

function conversationNotKept({ sessionId, persistence }: Session): UsageError {
  return new UsageError(`the conversation that session ${sessionId} shared cannot be read here`, {
    got: `a session that is ${persistence ?? "full"}: its conversation is only where it runs, while it does`,
    fix: "call ctx.enablePersistence() in it before it shares its conversation, or share a value: { custom }",
  });
}

/**
 * Nothing goes on without a part of what it was told: a fork or a detached session outlives the other one. Its
 * session pauses, because an import brings the other one back.
 */
function conversationGone(sessionId: string, sharedBy: string): PauseError {
  const what = `session ${sessionId} cannot continue the conversation of session ${sharedBy}`;
  return new PauseError("session_not_found", what, {
    got: `no session ${sharedBy}: it was deleted, or is in another database`,
    expected: `session ${sharedBy} in the same database for as long as this one reads its conversation`,
    fix: `import ${sharedBy} from an export, or start the work again with its context as a value: { custom }`,
    pause: { reason: "agent_fault" },
  });
}

/** The own entries of a session, without those that it shares. */
async function readOwn(
  { storage, kept, unstored }: ConversationSources,
  sessionId: string,
  leaf: number,
): Promise<readonly OwnEntry[]> {
  const entries = unstored(sessionId, leaf);
  if (entries === undefined && kept !== undefined) return kept.conversation(sessionId, leaf);
  return ownEntries(sessionId, entries ?? (await storage.conversation(sessionId, leaf)));
}

/** An entry with its place in its session, and as handlers see it. */
interface OwnEntry extends Pick<Entry, "id" | "index"> {
  readonly seen: ConversationEntry;
}

function ownEntries(sessionId: string, entries: readonly Entry[]): readonly OwnEntry[] {
  return entries.map(({ id, index, parent, role, turn, content }) => ({
    id,
    index,
    // conversation-2.
    seen: deepFreeze({
      id: positionId(sessionId, id),
      parentId: parent === undefined ? null : positionId(sessionId, parent),
      role,
      turnId: String(turn),
      content: decodeJson(content),
    }),
  }));
}

const CONVERSATIONS_MAX = 100;
const CHARS_MAX = 2_000_000;
/** The most new entries that are looked at. */
const ADDED_MAX = 200;

interface Kept {
  readonly entries: readonly OwnEntry[];
  readonly chars: number;
}

/** Conversations that live sessions read in every turn: storage is asked for the entries that were added. */
export class KeptConversations {
  readonly #storage: AgentStorage;
  /** By session, those that were read last at the end. */
  readonly #kept = new Map<string, Kept>();

  constructor(storage: AgentStorage) {
    this.#storage = storage;
  }

  /** From the root to `leaf`, as `AgentStorage.conversation`. */
  async conversation(sessionId: string, leaf: number): Promise<readonly OwnEntry[]> {
    const known = this.#kept.get(sessionId);
    const added = known === undefined ? undefined : await this.#added(sessionId, known.entries, leaf);
    const read = added ?? (await this.#storage.conversation(sessionId, leaf));
    const before = added === undefined ? NOTHING : (known ?? NOTHING);
    const conversation: Kept = {
      entries: [...before.entries, ...ownEntries(sessionId, read)],
      chars: before.chars + charsOf(read),
    };
    this.#kept.delete(sessionId);
    if (conversation.chars <= CHARS_MAX) this.#kept.set(sessionId, conversation);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > CONVERSATIONS_MAX && oldest !== undefined) this.#kept.delete(oldest);
    return conversation.entries;
  }

  forget(sessionId: string): void {
    this.#kept.delete(sessionId);
  }

  /** The entries between the end of a kept conversation and `leaf`. `undefined` when the leaf does not follow it. */
  async #added(
    sessionId: string,
    known: readonly OwnEntry[],
    leaf: number,
  ): Promise<readonly Entry[] | undefined> {
    const last = known.at(-1);
    if (last === undefined) return undefined;
    if (last.id === leaf) return [];
    const after = await this.#storage.reader.entries(sessionId, last.index + 1, ADDED_MAX);
    const byId = new Map(after.map((entry) => [entry.id, entry]));
    const added: Entry[] = [];
    for (let wanted: number | undefined = leaf; wanted !== last.id;) {
      const entry: Entry | undefined = wanted === undefined ? undefined : byId.get(wanted);
      if (entry === undefined) return undefined;
      added.push(entry);
      wanted = entry.parent;
    }
    return added.reverse();
  }
}

const NOTHING: Kept = { entries: [], chars: 0 };

function charsOf(entries: readonly Entry[]): number {
  return entries.reduce((sum, { content }) => sum + content.length, 0);
}
