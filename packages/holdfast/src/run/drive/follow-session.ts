// Following a session of a coordinator, where runners may have it as well as this process.
//
//   - The follower receives every commit, of any process, until the session has ended, is paused or has moved
//     away, or the caller stops. While the coordinator is away, the follower tries again without end.
//   - If this process runs the session itself, its runtime reports the session's end with more detail.
//     `GRACE_MS` is the time that the runtime gets for that.

import { setTimeout as delay } from "node:timers/promises";
import { HoldfastError } from "@holdfast/core";
import { createClient } from "@holdfast/client";
import type { CoordinatorAccess } from "@holdfast/place/coordinator-access";

const GRACE_MS = 250;

export interface Following {
  readonly coordinator: CoordinatorAccess;
  readonly sessionId: string;
  /** The last position of the journal that was read. */
  readonly afterSeq: number;
  readonly signal: AbortSignal;
  /** Something was committed. Must not throw. */
  readonly onNews: () => void;
}

/** @returns when one of these is so, or the signal was given. @throws HoldfastError what the coordinator refuses. */
export async function followSession({
  coordinator,
  sessionId,
  afterSeq,
  signal,
  onNews,
}: Following): Promise<void> {
  const { url, token } = coordinator;
  const client = createClient({ url, token, retryMs: Infinity });
  try {
    for await (const event of client.sessions.get(sessionId).events({ afterSeq, signal })) {
      onNews();
      if (event.type !== "status" || event.status.status !== "paused") continue;
      if (event.status.resumesAt === undefined) break;
    }
  } catch (error) {
    if (!HoldfastError.is(error) || error.code !== "session_moved") throw error;
  } finally {
    client.close();
  }
  if (!signal.aborted) await delay(GRACE_MS); // A runtime of this process reports the end with more detail.
}
