// `lookOn`: following a session that another process of this machine runs, over the database of both.

import { setTimeout as delay } from "node:timers/promises";
import type { Session } from "@holdfast/core";
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
}

/** @returns when it has ended, or is paused, or no process runs it any more; nothing when the signal was given. */
export async function lookOn(looked: LookedOn): Promise<Outcome | undefined> {
  const { database, sessionId, signal, onNews } = looked;
  for (let looks = 1; !signal.aborted; looks++) {
    await delay(LOOK_MS, undefined, { ref: false });
    onNews();
    const session = await looked.session();
    const settled = leftAs(sessionId, session);
    if (settled !== undefined) return { type: "settled", settled };
    const isAsked = looks % LOOKS_PER_DRIVER === 0 && session !== undefined;
    if (isAsked && !(await isRunElsewhere(database, session))) return { type: "abandoned" };
  }
  return undefined;
}
