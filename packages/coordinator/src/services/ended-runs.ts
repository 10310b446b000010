// Runs that have ended, as storage keeps them (`core/transaction/ended-runs.ts`), and the wait for the end of one.
//
//   services-ended-runs-3. A run is answered for by its token. Another run of its session is never answered in its place.

import { isEnded, type Session } from "@holdfast/core";
import { ENDED_RUNS, endedRunsOf, type EndedRun } from "@holdfast/core/internal";
import { News } from "../store/notices.ts";
import type { Call } from "../call/call.ts";
import type { ServiceHost } from "./service-host.ts";

/** Nothing tells of a release, so a run that is waited for is looked at this often. */
const LOOK_MS = 250;
const PAGE = 100;

/** Oldest first. */
export async function endedRuns({ storage }: ServiceHost, sessionId: string): Promise<readonly EndedRun[]> {
  const document = await storage.reader.document(ENDED_RUNS, sessionId);
  return document === undefined ? [] : endedRunsOf(document);
}

/** Sessions that have ended runs, in the order of their ids, behind `after`; each with its runs, oldest first. */
export async function* sessionsWithEndedRuns(
  { storage }: ServiceHost,
  after: string | undefined,
): AsyncGenerator<readonly [Session, readonly EndedRun[]]> {
  for (let last = after; ;) {
    const page = await storage.reader.documents({
      collection: ENDED_RUNS,
      limit: PAGE,
      ...(last === undefined ? {} : { after: last }),
    });
    for (const document of page) {
      const session = await storage.reader.session(document.id);
      if (session !== undefined) yield [session, endedRunsOf(document)];
    }
    last = page.at(-1)?.id;
    if (page.length < PAGE) return;
  }
}

/** What became of the run with this token; `undefined` while it is claimed, and when there never was one. */
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

/** Ask again and again until there is an answer or the time is up. */
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

/** Whether this run is the one that ended its session: then the session's output and error are this run's. */
export function hasEndedSession(session: Session, run: EndedRun): boolean {
  return isEnded(session.status) && session.status === run.outcome;
}
