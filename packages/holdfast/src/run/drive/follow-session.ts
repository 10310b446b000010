// Following a session of a coordinator, where runners may have it as well as this process.
//
//   - The follower receives every commit, of any process, until the session has ended, is paused or has moved
//     away, or the caller stops. While the coordinator is away, the follower tries again without end.
//   - If this process runs the session itself, its runtime reports the session's end with more detail.
//     `GRACE_MS` is the time that the runtime gets for that.

import { setTimeout as delay } from "node:timers/promises";
import { HoldfastError, type Session } from "@holdfast/core";
import { createClient } from "@holdfast/client";
import { leftAs } from "@holdfast/runtime";
import type { CoordinatorAccess } from "@holdfast/place/coordinator-access";
import { sayUntaken } from "@holdfast/place/coordinator-call";
import type { Io } from "@holdfast/terminal/frame/command";
import { plainLine } from "@holdfast/terminal/frame/plain-text";
import type { Outcome } from "./report-outcome.ts";

const GRACE_MS = 250;
const NAME_CHARS = 100;

export interface Following {
  readonly coordinator: CoordinatorAccess;
  readonly sessionId: string;
  /** The last position of the journal that was read. */
  readonly afterSeq: number;
  readonly session: () => Promise<Session | undefined>;
  readonly signal: AbortSignal;
  /** Something was committed. Must not throw. */
  readonly onNews: () => void;
  /** Receives the texts that models are writing, where they are wanted. Must not throw. */
  readonly onDraft: ((taskId: string, text: string) => void) | undefined;
}

/** @returns how it ended, when one of these is so or the signal was given. @throws HoldfastError what the coordinator refuses. */
export async function followSession({
  coordinator,
  sessionId,
  afterSeq,
  session,
  signal,
  onNews,
  onDraft,
}: Following): Promise<Outcome> {
  const { url, token } = coordinator;
  const client = createClient({ url, token, retryMs: Infinity });
  try {
    const drafts = onDraft !== undefined;
    for await (const event of client.sessions.get(sessionId).events({ afterSeq, drafts, signal })) {
      if (event.type === "draft") {
        onDraft?.(event.taskId, event.text);
        continue;
      }
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
  const settled = leftAs(sessionId, await session());
  return { type: "settled", settled: settled ?? { status: "released", error: undefined } };
}

/** @returns which runner has a session, or why none does; nothing where that cannot be told. Never rejects. */
export async function placeOf(
  coordinator: CoordinatorAccess,
  sessionId: string,
  io: Io,
): Promise<string | undefined> {
  const run = await sayUntaken(coordinator, sessionId, io);
  if (run === undefined) return undefined;
  const who = run.runnerName ?? run.holder;
  if (who !== undefined) return `${plainLine(who, NAME_CHARS)} runs it`;
  const isSaid = run.blockedUntil !== undefined;
  const reason = run.blocked === undefined || isSaid ? "" : `: ${plainLine(run.blocked, Infinity)}`;
  return `it waits for a runner${reason}`;
}
