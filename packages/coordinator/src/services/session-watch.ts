// A session as it goes on: its journal by number, and how it stands.
//
//   V1. What a stream tells is what storage has, from the position after the one that was seen: so before and after a reconnect
//       together are the journal, without a gap and without a duplicate.
//   V3. Storage has only what is committed.
//   E1. A stream ends when the session has ended and everything of it was told, or when the caller has gone or is no longer anybody.

import { isEnded, UsageError, type JsonText, type Session } from "@holdfast/core";
import { News } from "../notices.ts";
import type { Call } from "./call.ts";
import type { ServiceHost } from "./service-host.ts";
import { ownSession } from "./session-scope.ts";

/**
 * A page is at most so many records, and about so many characters as the one before was: a reader that does not read keeps one in
 * memory. What is not known grows slowly.
 */
const PAGE = 100;
const PAGE_GROWTH = 4;
const PAGE_CHARS = 256 * 1024;

/** What is told: a record of the journal as JSON, or how the session stands when that is news. */
export type Seen =
  | { readonly type: "record"; readonly seq: number; readonly text: JsonText }
  | { readonly type: "session"; readonly seq: number | undefined; readonly session: Session };

/**
 * @param afterSeq the last position that was seen; -1 for none.
 * @throws NotFoundError, UsageError `bad_event_id` for a position that is still to come.
 */
export async function* watchSession(
  host: ServiceHost,
  sessionId: string,
  afterSeq: number,
  call: Call,
): AsyncGenerator<Seen> {
  const { storage } = host;
  // Following begins before looking: what is committed in between is news.
  const news = new News(storage, sessionId, call.signal, "news");
  let next = afterSeq + 1;
  let told: string | undefined;
  let pageSize = 1;
  try {
    for (;;) {
      const session = await ownSession(host, call.caller, sessionId);
      if (told === undefined && afterSeq >= session.nextSeq) throw unknownEvent(afterSeq, session);
      const stands = standOf(session);
      if (stands !== told && told === undefined)
        yield { type: "session", seq: next === 0 ? undefined : next - 1, session };
      while (next < session.nextSeq && !call.signal.aborted) {
        const limit = Math.min(pageSize, session.nextSeq - next);
        const page = await storage.reader.journal(sessionId, next, limit);
        let chars = 0;
        for (const record of page) {
          const text = JSON.stringify(record);
          chars += text.length;
          yield { type: "record", seq: record.seq, text };
          next = record.seq + 1;
        }
        if (page.length === 0) break;
        const fitting = Math.floor((PAGE_CHARS * page.length) / chars);
        pageSize = Math.max(1, Math.min(PAGE, PAGE_GROWTH * page.length, fitting));
      }
      if (stands !== told && told !== undefined)
        yield { type: "session", seq: next === 0 ? undefined : next - 1, session };
      told = stands;
      if (isEnded(session.status) || call.signal.aborted) return;
      await news.next();
    }
  } finally {
    news.end();
  }
}

function unknownEvent(afterSeq: number, { nextSeq }: Session): UsageError {
  return new UsageError("nobody was given an event of this number yet", {
    code: "bad_event_id",
    at: "afterSeq",
    got: String(afterSeq),
    expected: `below ${nextSeq}, or nothing`,
  });
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
  if (waitMs <= 0) return ownSession(host, call.caller, sessionId);
  const until = host.clock.monotonic() + waitMs;
  const news = new News(host.storage, sessionId, call.signal, "end");
  const cancel = host.clock.setTimer(news.come, waitMs);
  try {
    for (;;) {
      const session = await ownSession(host, call.caller, sessionId);
      if (isEnded(session.status) || call.signal.aborted || host.clock.monotonic() >= until) return session;
      await news.next();
    }
  } finally {
    cancel();
    news.end();
  }
}
