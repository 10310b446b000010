// Following a session of a coordinator, where runners may have it as well as this process.
//
//   follow-session-1. It is told of everything that is committed, by whomever, until the session has ended, is paused
//       or has moved away, or nobody wants to hear more. While the coordinator is away it tries again for ever.
//   follow-session-2. Where this process runs the session itself, what ends it here is heard of in another way, and
//       says more: `GRACE_MS` is what that is given.

import { setTimeout as delay } from "node:timers/promises";
import { HoldfastError } from "@holdfast/core";
import { createClient } from "../sdk/client.ts";
import type { CoordinatorAccess } from "../place/coordinator-access.ts";

const GRACE_MS = 250;

export interface Following {
  readonly coordinator: CoordinatorAccess;
  readonly sessionId: string;
  /** What was seen of its journal. */
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
      if (event.type === "status" && event.status.status === "paused") break;
    }
  } catch (error) {
    if (!HoldfastError.is(error) || error.code !== "session_moved") throw error;
  } finally {
    client.close();
  }
  if (!signal.aborted) await delay(GRACE_MS); // follow-session-2.
}
