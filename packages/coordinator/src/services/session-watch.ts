// A session as it goes on: its journal by number, and how it stands.
//
//   V1. What a stream tells is what storage has, from the position after the one that was seen: so before and after a reconnect
//       together are the journal, without a gap and without a duplicate.
//   V3. Storage has only what is committed.
//   E1. A stream ends when the session has ended and everything of it was told, or when the caller has gone or is no longer anybody.

import { isEnded, type JournalRecord, type Session } from "@holdfast/core";
import type { Call } from "./call.ts";
import type { ServiceHost } from "./service-host.ts";
import { ownSession } from "./session-scope.ts";

const PAGE = 500;

/** What is told: a record of the journal, or how the session stands when that is news. */
export type Seen =
  | { readonly type: "record"; readonly seq: number; readonly record: JournalRecord }
  | { readonly type: "session"; readonly seq: number | undefined; readonly session: Session };

/** @param afterSeq the last position that was seen; -1 for none. */
export async function* watchSession(
  host: ServiceHost,
  sessionId: string,
  afterSeq: number,
  call: Call,
): AsyncGenerator<Seen> {
  const { storage, notices } = host;
  let next = afterSeq + 1;
  let told: string | undefined;
  for (;;) {
    // Listening begins before looking: what is committed in between wakes.
    const news = notices.next(sessionId, call.signal, "news");
    const session = await ownSession(host, call.caller, sessionId);
    const stands = standOf(session);
    if (stands !== told && told === undefined)
      yield { type: "session", seq: next === 0 ? undefined : next - 1, session };
    while (next < session.nextSeq && !call.signal.aborted) {
      const page = await storage.reader.journal(sessionId, next, Math.min(PAGE, session.nextSeq - next));
      if (page.length === 0) break;
      for (const record of page) yield { type: "record", seq: record.seq, record };
      next = (page.at(-1)?.seq ?? next) + 1;
    }
    if (stands !== told && told !== undefined)
      yield { type: "session", seq: next === 0 ? undefined : next - 1, session };
    told = stands;
    if (isEnded(session.status) || call.signal.aborted) return;
    await news;
  }
}

/** What of a row is news when it changes. */
function standOf({ status, pauseReason, waits, progress, cancel, account }: Session): string {
  return JSON.stringify([status, pauseReason, waits, progress, cancel, account]);
}

/** Until a session has ended, at most so long. @returns how it stands then. */
export async function untilEnded(
  host: ServiceHost,
  sessionId: string,
  waitMs: number,
  call: Call,
): Promise<Session> {
  const until = host.clock.monotonic() + waitMs;
  for (;;) {
    const left = until - host.clock.monotonic();
    const wait = new AbortController();
    const news =
      left > 0
        ? host.notices.next(sessionId, AbortSignal.any([call.signal, wait.signal]), "end", left)
        : undefined;
    const session = await ownSession(host, call.caller, sessionId);
    if (isEnded(session.status) || news === undefined || call.signal.aborted) {
      wait.abort("over"); // A reason of our own: making the usual one costs more than the wait.
      return session;
    }
    await news;
  }
}
