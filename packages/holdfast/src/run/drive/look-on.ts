// `lookOn`: following a session that another process of this machine runs, over the database of both.

import { setTimeout as delay } from "node:timers/promises";
import { positionId, type Session, type SharedDrafts } from "@holdfast/core";
import { leftAs } from "@holdfast/runtime";
import { isRunElsewhere } from "@holdfast/place/project-storage";
import type { Database } from "@holdfast/place/project";
import type { Outcome } from "./report-outcome.ts";

/** How often it is looked, where nothing tells of a change. */
export const LOOK_MS = 250;
/** Each so many looks it is asked whether a process runs the session. */
const LOOKS_PER_DRIVER = 8;

export interface LookedOn {
  readonly database: Database;
  readonly sessionId: string;
  readonly session: () => Promise<Session | undefined>;
  readonly signal: AbortSignal;
  /** Something may have been committed. Must not throw. */
  readonly onNews: () => void;
  /** The texts that models are writing in other processes, where the storage has them. */
  readonly drafts: Partial<SharedDrafts> | undefined;
  /** Receives them. Must not throw. */
  readonly onDraft: (taskId: string, text: string) => void;
}

/** @returns when it has ended, or is paused, or no process runs it any more; nothing when the signal was given. */
export async function lookOn(looked: LookedOn): Promise<Outcome | undefined> {
  const { database, sessionId, signal, onNews } = looked;
  const drafts = new NewestDrafts(looked);
  for (let looks = 1; !signal.aborted; looks++) {
    await delay(LOOK_MS, undefined, { ref: false });
    onNews();
    await drafts.read();
    const session = await looked.session();
    const settled = leftAs(sessionId, session);
    if (settled !== undefined) return { type: "settled", settled };
    const isAsked = looks % LOOKS_PER_DRIVER === 0 && session !== undefined;
    if (isAsked && !(await isRunElsewhere(database, session))) return { type: "abandoned" };
  }
  return undefined;
}

type DraftReading = Pick<LookedOn, "sessionId" | "drafts" | "onDraft">;

/** Reads the drafts that are new since the last time. */
class NewestDrafts {
  readonly #looked: DraftReading;
  #next = 0;

  constructor(looked: DraftReading) {
    this.#looked = looked;
  }

  /** Never rejects: the owner of the storage may be away, and no text is lost by it. */
  async read(): Promise<void> {
    const { sessionId, drafts, onDraft } = this.#looked;
    const found = await drafts?.watch?.([sessionId], this.#next).catch(() => undefined);
    if (found === undefined) return;
    this.#next = found.next;
    for (const { draft } of found.drafts) onDraft(positionId(sessionId, draft.task), draft.text);
  }
}
