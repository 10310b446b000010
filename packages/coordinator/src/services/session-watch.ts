// `watchSession` streams a session while it runs: its journal by position, and its state.
//
//   V1. A stream sends what storage has, from the position after the last one that the reader saw. Before and
//       after a reconnect, the reader therefore gets the journal without gaps and duplicates.
//   session-watch-1. Storage has only committed records.
//   - A stream ends when the session has ended and all of it was sent, or when the caller has gone or its
//     token is invalid. The last event has the position behind the journal. A reader that has seen it gets an
//     empty stream, and over REST the status 204, at which an `EventSource` stops.
//   - A reader of a session that has moved away is told its new place, because the session never ends here. A
//     session that is still moving may stay.
//   - A text that a model is writing has no position, because it is not recorded. It comes after the records
//     that were there, so a reader knows its task.

import type { MessageInitShape } from "@bufbuild/protobuf";
import { isEnded, resumesAt, UsageError, type Session } from "@holdfast/core";
import type { WatchAllResponseSchema } from "@holdfast/proto";
import { bytesOfValue } from "../call/json-field.ts";
import type { AllChanges } from "../store/all-changes.ts";
import type { Draft } from "./sessions/drafts.ts";
import { News } from "../store/notices.ts";
import type { Call } from "../call/call.ts";
import { sessionMoved, type ServiceHost } from "./service-host.ts";
import { listedMessage } from "./session-lister.ts";
import type { SessionMessage } from "./session-message.ts";
import { ownSession } from "./session-scope.ts";

/**
 * The most records that are read at a time. A page is as large as the sizes of earlier records allow, and
 * grows slowly.
 */
const PAGE = 100;
const PAGE_GROWTH = 4;
/**
 * The most bytes of a page beyond its first record: a reader that does not read keeps the page in memory.
 */
const PAGE_BYTES = 256 * 1024;

/** The most bytes of a session's input, output and progress with which a change shows it. */
const SHOWN_BYTES = 8 * 1024;

/** The request of a reader. */
interface Watched {
  readonly sessionId: string;
  /** The last position that the reader saw; -1 for none. */
  readonly afterSeq: number;
  /** Whether the reader also wants the texts that models are writing. */
  readonly withDrafts: boolean;
}

/** An item of the stream: a record of the journal as JSON, the session's new state, or a text that is being written. */
interface Seen {
  readonly seq?: bigint;
  readonly event:
    | { readonly case: "record"; readonly value: Uint8Array<ArrayBuffer> }
    | { readonly case: "session"; readonly value: SessionMessage }
    | { readonly case: "draft"; readonly value: Draft };
}

/**
 * @param messageFor converts a session to its message.
 * @param alreadyEnded called when the reader has seen the end of the session, before the empty stream ends.
 * @throws NotFoundError, UsageError `bad_event_id` for a position that is still to come.
 */
export async function* watchSession(
  host: ServiceHost,
  { sessionId, afterSeq, withDrafts }: Watched,
  call: Call,
  messageFor: (session: Session) => Promise<SessionMessage>,
  alreadyEnded: () => void,
): AsyncGenerator<Seen> {
  // Following begins before the first look, so that later commits are news.
  const news = new News(host.storage, sessionId, call.signal, "news");
  const drafts = withDrafts ? host.drafts.read(sessionId, news.come) : undefined;
  let next = afterSeq + 1;
  let shown: string | undefined;
  let pageSize = 1;
  const stateEvent = async (session: Session): Promise<Seen> => {
    const isEnd = isEnded(session.status) && next >= session.nextSeq;
    const seq = isEnd ? session.nextSeq : next - 1;
    return {
      ...(seq < 0 ? {} : { seq: BigInt(seq) }),
      event: { case: "session", value: await messageFor(session) },
    };
  };
  try {
    for (;;) {
      const session = await ownSession(host, call.caller, sessionId);
      if (isEnded(session.status) && afterSeq === session.nextSeq) return alreadyEnded();
      if (shown === undefined && afterSeq >= session.nextSeq) throw unknownEvent(afterSeq, session);
      const current = shownState(session);
      if (shown === undefined) yield stateEvent(session);
      while (next < session.nextSeq && !call.signal.aborted) {
        const page = await readPage(host, sessionId, next, Math.min(pageSize, session.nextSeq - next));
        if (page.length === 0) break;
        next += page.length;
        pageSize = nextSize(page);
        // Taken out of the page, so that sent records are not kept.
        while (page.length > 0) yield page.shift()!;
      }
      if (shown !== undefined && current !== shown) yield stateEvent(session);
      shown = current;
      if (isEnded(session.status) || call.signal.aborted) return;
      refuseMoved(session);
      for (const value of drafts?.take() ?? []) yield { event: { case: "draft", value } };
      await news.next();
    }
  } finally {
    drafts?.end();
    news.end();
  }
}

type Page = (Seen & { readonly event: { readonly case: "record" } })[];

/** The records from a position on, as many as fit. The first one always fits. */
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

/** The parts of a row whose change is news. */
function shownState(session: Session): string {
  const { title, status, pauseReason, waits, progress, cancel, account, cost, quota, move } = session;
  const pause = [pauseReason, quota, resumesAt(session)];
  return JSON.stringify([title, status, pause, waits, progress, cancel, account, cost, move?.to]);
}

function refuseMoved({ move }: Session): void {
  if (move?.isDone === true) throw sessionMoved(move.to);
}

/**
 * One item at once, and one after changes of sessions that the caller may see.
 *
 * @param changes the changes that all such streams read.
 */
export async function* watchAll(
  host: ServiceHost,
  changes: AllChanges,
  { caller, signal }: Call,
): AsyncGenerator<MessageInitShape<typeof WatchAllResponseSchema>> {
  const reader = changes.read(caller.kind === "user" ? caller.name : undefined);
  signal.addEventListener("abort", reader.wake, { once: true });
  try {
    for (;;) {
      const { sessions, hasOthers } = await reader.next();
      if (signal.aborted) return;
      const messages = sessions.map((session) => listedMessage(host, session));
      const small = messages.filter((message) => bytesIn(message) <= SHOWN_BYTES);
      yield { sessions: small, hasOthers: hasOthers || small.length < messages.length };
    }
  } finally {
    signal.removeEventListener("abort", reader.wake);
    reader.end();
  }
}

function bytesIn({ input, output, progress }: SessionMessage): number {
  return [input, output, progress].reduce((sum, value) => sum + (value?.length ?? 0), 0);
}

/**
 * Waits until a session has ended, up to a time. @returns the session then. @throws ConflictError
 * `session_moved`.
 */
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
