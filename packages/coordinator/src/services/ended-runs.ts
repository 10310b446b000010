// `endedRuns` reads runs that have ended, as storage keeps them (`core/transaction/ended-runs.ts`), and
// `untilAnswered` waits for the end of one.
//
// A run is identified by its token. Another run of its session is never returned in its place.

import { defined, ENDED_RUNS, type EndedRun, endedRunsOf, isEnded, type Session } from "@holdfast/core";
import { News } from "../store/notices.ts";
import type { Call } from "../call/call.ts";
import type { ServiceHost } from "./service-host.ts";

/** The interval of looks for the end of a run, because a release has no notice. */
const LOOK_MS = 250;
const PAGE = 100;

/** The ended runs of a session, oldest first. */
export async function endedRuns({ storage }: ServiceHost, sessionId: string): Promise<readonly EndedRun[]> {
  const document = await storage.reader.document(ENDED_RUNS, sessionId);
  return document === undefined ? [] : endedRunsOf(document);
}

/** Sessions with ended runs, in the order of their ids, after `after`; each with its runs, oldest first. */
export async function* sessionsWithEndedRuns(
  { storage }: ServiceHost,
  after: string | undefined,
): AsyncGenerator<readonly [Session, readonly EndedRun[]]> {
  for (let last = after; ;) {
    const page = await storage.reader.documents({
      collection: ENDED_RUNS,
      limit: PAGE,
      ...defined({ after: last }),
    });
    for (const document of page) {
      const session = await storage.reader.session(document.id);
      if (session !== undefined) yield [session, endedRunsOf(document)];
    }
    last = page.at(-1)?.id;
    if (page.length < PAGE) return;
  }
}

/** How the run with this token ended; `undefined` while it is claimed, and if there was no such run. */
export async function endOfRun(
  host: ServiceHost,
  sessionId: string,
  token: number,
): Promise<EndedRun | "lost" | undefined> {
  const runs = await endedRuns(host, sessionId);
  const found = runs.findLast((run) => run.token === token);
  if (found !== undefined) return found;
  const [claim] = await host.storage.heldClaims({ now: host.clock.now(), limit: 1, sessionId });
  const newest = Math.max(claim?.token ?? -Infinity, ...runs.map((run) => run.token));
  return token < newest ? "lost" : undefined;
}

/** Asks repeatedly until there is an answer or the time is over. */
export async function untilAnswered<Answer>(
  { storage, clock }: ServiceHost,
  sessionId: string,
  waitMs: number,
  call: Pick<Call, "signal">,
  ask: () => Promise<Answer | undefined>,
): Promise<Answer | undefined> {
  const until = clock.monotonic() + waitMs;
  const news = new News(storage, sessionId, call.signal, "news");
  try {
    for (;;) {
      const answer = await ask();
      const leftMs = until - clock.monotonic();
      if (answer !== undefined || call.signal.aborted || leftMs <= 0) return answer;
      const cancel = clock.setTimer(news.come, Math.min(leftMs, LOOK_MS));
      await news.next();
      cancel();
    }
  } finally {
    news.end();
  }
}

/** Whether this run ended its session. If it did, the session's output and error are this run's. */
export function hasEndedSession(session: Session, run: EndedRun): boolean {
  return isEnded(session.status) && session.status === run.outcome;
}
