// `readInbox`: everything that waits for a person, from the list of sessions and the records of their questions.
//
//   open-items-1. A question's record never changes, so it is read once.
//   open-items-2. At most `SESSIONS_MAX` sessions of each kind are looked at, the newest ones. `isCut` says that there are more.

import {
  answerLines,
  inInboxOrder,
  principalOf,
  viewQuestion,
  type AskedQuestion,
  type InboxItem,
} from "@holdfast/proto/view";
import { call } from "./client.ts";
import { listPath } from "./session-list.ts";
import type { JournalRecord, Session, SessionPage, Wait } from "./types.ts";

/** An item, with what the page needs to answer it. */
export interface OpenItem extends InboxItem {
  readonly session: Session;
  readonly wait?: Wait;
}

export interface Inbox {
  readonly items: readonly OpenItem[];
  readonly isCut: boolean;
}

const SESSIONS_MAX = 500;
const AT_ONCE = 8;
const FAILED_DAYS = 7;
const RECORDS = 200;

const questions = new Map<string, Promise<AskedQuestion | undefined>>();
const parents = new Map<string, Promise<readonly string[]>>();

export async function readInbox(why: (session: Session) => string, isLocal: boolean): Promise<Inbox> {
  const [asking, paused, failed] = await Promise.all(
    ["input_required", "paused", "failed"].map((status) =>
      call<SessionPage>("GET", listPath({ status, limit: SESSIONS_MAX })),
    ),
  );
  const sessions = [
    ...asking!.sessions,
    ...paused!.sessions,
    ...failed!.sessions.filter(
      ({ error, endedAt = 0 }) =>
        error?.name === "UncertainEffectError" && endedAt > Date.now() - FAILED_DAYS * 86_400_000,
    ),
  ].filter(({ movedTo }) => movedTo === undefined);
  const found: (readonly OpenItem[])[] = [];
  const queue = sessions.entries();
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (const [at, session] of queue) found[at] = await itemsOf(session, why, isLocal);
    }),
  );
  const isCut = asking!.nextCursor !== undefined || paused!.nextCursor !== undefined;
  return { items: inInboxOrder(found.flat()) as readonly OpenItem[], isCut };
}

async function itemsOf(
  session: Session,
  why: (session: Session) => string,
  isLocal: boolean,
): Promise<readonly OpenItem[]> {
  const { sessionId, owner, updatedAt, endedAt, pauseReason, status, error } = session;
  const path = [...(await pathTo(session)), session.agent];
  const common = { session, sessionId, path, principal: principalOf(owner, !isLocal) };
  if (status === "failed")
    return [
      {
        ...common,
        id: sessionId,
        kind: "uncertain_effect",
        what: error?.message ?? "an effect may have happened",
        since: endedAt ?? updatedAt,
        commands: [`holdfast show ${sessionId}`],
      },
    ];
  if (status === "paused")
    return [
      {
        ...common,
        id: sessionId,
        kind: "pause",
        what: why(session),
        ...(pauseReason === undefined ? {} : { pauseReason }),
        since: updatedAt,
        commands: [`holdfast ${isLocal && pauseReason !== "by_user" ? "resume" : "unpause"} ${sessionId}`],
      },
    ];
  const asked = session.waits.filter(({ type }) => type === "input").sort((a, b) => a.id - b.id);
  return Promise.all(
    asked.map(async (wait, at): Promise<OpenItem> => {
      const question = (await questionOf(session, wait.id)) ?? { prompt: wait.prompt ?? "" };
      const { kind, prompt, tool, action, folder, details } = viewQuestion(question, wait.answer);
      return {
        ...common,
        wait,
        id: `${sessionId}-${wait.id}`,
        kind,
        what: prompt,
        ...(tool === undefined ? {} : { tool }),
        ...(action === undefined ? {} : { action }),
        ...(folder === undefined ? {} : { folder }),
        ...(details === undefined ? {} : { details }),
        since: updatedAt,
        ...(wait.until === undefined ? {} : { until: wait.until }),
        commands: answerLines(sessionId, wait, at === 0).map((line) => `holdfast ${line}`),
      };
    }),
  );
}

/** The names of the agents above a session, from the root of its tree down. */
function pathTo({ parentSessionId }: Session): Promise<readonly string[]> {
  if (parentSessionId === undefined) return Promise.resolve([]);
  return once(parents, parentSessionId, async () => {
    const parent = await call<Session>("GET", `/v1/sessions/${encodeURIComponent(parentSessionId)}`);
    return [...(await pathTo(parent)), parent.agent];
  });
}

/**
 * open-items-1. A command is at or behind the position of its number. It is looked for from the end of the journal, because open questions
 * are among its last records.
 */
function questionOf({ sessionId, nextSeq }: Session, id: number): Promise<AskedQuestion | undefined> {
  return once(questions, `${sessionId}-${id}`, async () => {
    for (let to = nextSeq; to > id; to -= RECORDS) {
      const from = Math.max(id, to - RECORDS);
      const path = `/v1/sessions/${encodeURIComponent(sessionId)}/events?fromSeq=${from}&limit=${RECORDS}`;
      const { records } = await call<{ readonly records: readonly JournalRecord[] }>("GET", path);
      const found = records.find((record) => record.type === "request_input" && record.id === id);
      if (found?.payload !== undefined) return JSON.parse(found.payload) as AskedQuestion;
    }
    return undefined;
  });
}

const KEPT = 5_000;

function once<T>(cache: Map<string, Promise<T>>, key: string, read: () => Promise<T>): Promise<T> {
  const known = cache.get(key);
  if (known !== undefined) return known;
  const reading = read();
  cache.set(key, reading);
  reading.catch(() => cache.delete(key));
  if (cache.size > KEPT) cache.delete(cache.keys().next().value!);
  return reading;
}
