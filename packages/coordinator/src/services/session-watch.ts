// A session as it goes on: its journal by number, and how it stands.
//
//   V1. What a stream tells is what storage has, from the position after the one that was seen: so before and after a reconnect
//       together are the journal, without a gap and without a duplicate.
//   session-watch-1. Storage has only what is committed.
//   session-watch-2. A stream ends when the session has ended and everything of it was told, or when the caller has
//       gone or is no longer anybody. The event that says so has the position behind the journal. A reader that has
//       seen that one gets an empty stream, and over REST the status 204, by which an `EventSource` stops.
//   session-watch-3. Who waits for a session that has moved away is told where it went: it never ends here. One that is
//       on its way may stay.

import { isEnded, UsageError, type Session } from "@holdfast/core";
import { bytesOfValue } from "../call/json-field.ts";
import { News } from "../store/notices.ts";
import type { Call } from "../call/call.ts";
import { sessionMoved, type ServiceHost } from "./service-host.ts";
import type { SessionMessage } from "./session-message.ts";
import { ownSession } from "./session-scope.ts";

/** So many records are read at a time at most, and about as many as fit, going by those before. What is not known grows slowly. */
const PAGE = 100;
const PAGE_GROWTH = 4;
/** No more is kept of a page, but for one record: a reader that does not read keeps it in memory. */
const PAGE_BYTES = 256 * 1024;

/** What is told: a record of the journal as JSON, or how the session stands when that is news. */
interface Seen {
  readonly seq?: bigint;
  readonly event:
    | { readonly case: "record"; readonly value: Uint8Array<ArrayBuffer> }
    | { readonly case: "session"; readonly value: SessionMessage };
}

/**
 * @param afterSeq the last position that was seen; -1 for none.
 * @param told how a session is told.
 * @param alreadyEnded called when the reader has seen the end of the session, before the empty stream ends.
 * @throws NotFoundError, UsageError `bad_event_id` for a position that is still to come.
 */
export async function* watchSession(
  host: ServiceHost,
  sessionId: string,
  afterSeq: number,
  call: Call,
  told: (session: Session) => Promise<SessionMessage>,
  alreadyEnded: () => void,
): AsyncGenerator<Seen> {
  // Following begins before looking: what is committed in between is news.
  const news = new News(host.storage, sessionId, call.signal, "news");
  let next = afterSeq + 1;
  let stood: string | undefined;
  let pageSize = 1;
  const standing = async (session: Session): Promise<Seen> => {
    const isEnd = isEnded(session.status) && next >= session.nextSeq;
    const seq = isEnd ? session.nextSeq : next - 1;
    return {
      ...(seq < 0 ? {} : { seq: BigInt(seq) }),
      event: { case: "session", value: await told(session) },
    };
  };
  try {
    for (;;) {
      const session = await ownSession(host, call.caller, sessionId);
      if (isEnded(session.status) && afterSeq === session.nextSeq) return alreadyEnded();
      if (stood === undefined && afterSeq >= session.nextSeq) throw unknownEvent(afterSeq, session);
      const stands = standOf(session);
      if (stood === undefined) yield standing(session);
      while (next < session.nextSeq && !call.signal.aborted) {
        const page = await readPage(host, sessionId, next, Math.min(pageSize, session.nextSeq - next));
        if (page.length === 0) break;
        next += page.length;
        pageSize = nextSize(page);
        // Taken out: what was told is kept no longer.
        while (page.length > 0) yield page.shift()!;
      }
      if (stood !== undefined && stands !== stood) yield standing(session);
      stood = stands;
      if (isEnded(session.status) || call.signal.aborted) return;
      refuseMoved(session);
      await news.next();
    }
  } finally {
    news.end();
  }
}

type Page = (Seen & { readonly event: { readonly case: "record" } })[];

/** The records from a position on, as many as fit; the first one always does. */
async function readPage(
  { storage }: ServiceHost,
  sessionId: string,
  from: number,
  limit: number,
): Promise<Page> {
  const page: Page = [];
  let bytes = 0;
  for (const record of await storage.reader.journal(sessionId, from, limit)) {
    const value = bytesOfValue(record);
    bytes += value.length;
    if (page.length > 0 && bytes > PAGE_BYTES) break;
    page.push({ seq: BigInt(record.seq), event: { case: "record", value } });
  }
  return page;
}

/** How many records to read after these. */
function nextSize(page: Page): number {
  const bytes = page.reduce((sum, { event }) => sum + event.value.length, 0);
  const fitting = Math.floor((PAGE_BYTES * page.length) / bytes);
  return Math.max(1, Math.min(PAGE, PAGE_GROWTH * page.length, fitting));
}

function unknownEvent(afterSeq: number, { nextSeq }: Session): UsageError {
  return new UsageError("no event with this number has been sent yet", {
    code: "bad_event_id",
    at: "afterSeq",
    got: String(afterSeq),
    expected: `a number below ${nextSeq}, or nothing`,
  });
}

/** What of a row is news when it changes. */
function standOf({ status, pauseReason, waits, progress, cancel, account, move }: Session): string {
  return JSON.stringify([status, pauseReason, waits, progress, cancel, account, move?.to]);
}

/** session-watch-3. */
function refuseMoved({ move }: Session): void {
  if (move?.isDone === true) throw sessionMoved(move.to);
}

/** Until a session has ended, at most so long. @returns how it stands then. @throws ConflictError `session_moved` (session-watch-3). */
export async function untilEnded(
  host: ServiceHost,
  sessionId: string,
  waitMs: number,
  call: Call,
): Promise<Session> {
  const until = host.clock.monotonic() + waitMs;
  const news = new News(host.storage, sessionId, call.signal, "end");
  const cancel = host.clock.setTimer(news.come, waitMs);
  try {
    for (;;) {
      const session = await ownSession(host, call.caller, sessionId);
      refuseMoved(session);
      if (isEnded(session.status) || call.signal.aborted || host.clock.monotonic() >= until) return session;
      await news.next();
    }
  } finally {
    cancel();
    news.end();
  }
}
