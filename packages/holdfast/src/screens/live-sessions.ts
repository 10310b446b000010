// `readLive`, `topLines`: the live sessions of all places, and their table for `holdfast top`.
//
// Indexes by status find the sessions. However many have ended, about as many rows are read as are shown.

import { decodeJson, defined, resumesAt, type Session, TITLE_CHARS } from "@holdfast/core";
import {
  costText,
  inLiveOrder,
  LIVE_STATUSES,
  whyText,
  type Cost,
  type PlainSession,
} from "@holdfast/proto/view";
import type { Look } from "@holdfast/terminal/frame/command";
import { age, count, fittedTable, plainLine } from "@holdfast/terminal/frame/plain-text";
import type { Readers } from "../place/find-session.ts";
import { findDriver } from "../place/project-storage.ts";
import type { Database } from "../place/project.ts";
import { moment, paintStatus } from "@holdfast/terminal/view/describe-session";
import { shownIds } from "@holdfast/terminal/view/session-tree";
import type { CostReader } from "@holdfast/terminal/view/session-cost";

const NAME_CHARS = 30;
const WHY_CHARS = 300;

export interface LiveSession {
  readonly session: Session;
  readonly place: Database;
  /** Whether a process can be running it. */
  readonly isDriven: boolean;
  /** Why the session stands where it is. */
  readonly why: string;
  /** The cost of its own calls. `undefined` when the session records none. */
  readonly cost: Cost | undefined;
}

export interface LivePage {
  readonly sessions: readonly LiveSession[];
  /** Whether there are more than were asked for. */
  readonly isCut: boolean;
}

export async function readLive(
  readers: Readers,
  limit: number,
  costs: CostReader,
  now: number,
): Promise<LivePage> {
  const pages = await Promise.all(
    readers.flatMap(({ place, reader }) =>
      LIVE_STATUSES.map(async (status) => {
        const found = await reader.sessions({ status, limit: limit + 1 });
        return found.map((session) => ({ session, place, reader }));
      }),
    ),
  );
  const found = pages.flat().filter(({ session }) => session.move?.isDone !== true);
  const bySession = new Map(found.map((one) => [one.session, one]));
  const ordered = inLiveOrder(found.map(({ session }) => session)).map((session) => bySession.get(session)!);
  const shown = ordered.slice(0, limit);
  const driven = await drivenSessions(readers, shown);
  const blocked = await blockedIn(shown);
  const spent = await costs.costs(shown);
  return {
    isCut: ordered.length > limit,
    sessions: shown.map(({ session, place }, at) => ({
      session,
      place,
      isDriven: driven.has(session),
      cost: spent[at],
      why: whyText(plainSession(session, blocked.get(session.sessionId)), {
        isElsewhere: place.coordinator !== undefined,
        isDriven: driven.has(session),
        when: (time) => moment(time, now),
      }),
    })),
  };
}

/** Why sessions of coordinators are not taken. Only sessions that should be running make it worth a question. */
async function blockedIn(
  shown: readonly { readonly session: Session; readonly place: Database }[],
): Promise<ReadonlyMap<string, string>> {
  const asked = new Set(
    shown.flatMap(({ session, place }) => (isOnRun(session) ? (place.coordinator ?? []) : [])),
  );
  if (asked.size === 0) return new Map();
  const { blockedSessions } = await import("./blocked-sessions.ts");
  const found = await Promise.all([...asked].map(blockedSessions));
  return new Map(found.flatMap((each) => [...each]));
}

function isOnRun({ status }: Session): boolean {
  return status === "submitted" || status === "working" || status === "cancelling";
}

/** The sessions that a process may be running. Only sessions that should be running make it worth a question. */
async function drivenSessions(
  readers: Readers,
  shown: readonly { readonly session: Session; readonly place: Database }[],
): Promise<ReadonlySet<Session>> {
  const driven = await Promise.all(
    readers.map(async ({ place }) => {
      const here = shown.filter((one) => one.place === place).map(({ session }) => session);
      if (place.coordinator !== undefined || !here.some(isOnRun)) return here;
      const driver = await findDriver(place, here);
      return here.filter((session) => driver?.isDriven(session) === true);
    }),
  );
  return new Set(driven.flat());
}

/** A row of storage as the view reads it. */
function plainSession(session: Session, blocked: string | undefined): PlainSession {
  const { sessionId, status, pauseReason, waits, error, progress, output, move, exhausted, quota } = session;
  return {
    sessionId,
    status,
    waits,
    ...defined({ pauseReason, error, exhausted, quota, resumesAt: resumesAt(session), blocked }),
    ...(progress === undefined ? {} : { progress: decodeJson(progress) }),
    ...(output === undefined ? {} : { output: decodeJson(output) }),
    ...(move === undefined ? {} : { movedTo: move.to }),
  };
}

export function liveJson({ sessions, isCut }: LivePage): object {
  return {
    sessions: sessions.map(({ session, place, why, cost }) => {
      const { sessionId, title, agent, status, pauseReason, parent, updatedAt } = session;
      return {
        sessionId,
        ...defined({ title }),
        agent: agent.name,
        status,
        ...defined({ pauseReason }),
        ...(parent === undefined ? {} : { parentSessionId: parent.sessionId }),
        why,
        cost: cost ?? null,
        updatedAt,
        place: place.path,
      };
    }),
    isCut,
  };
}

/** "3 live sessions: 1 input_required, 2 waiting". */
export function liveSummary({ sessions, isCut }: LivePage): string {
  const parts = LIVE_STATUSES.flatMap((status) => {
    const found = sessions.filter(({ session }) => session.status === status);
    const texts = Map.groupBy(found, ({ isDriven }) =>
      status === "working" && !isDriven ? "interrupted" : status,
    );
    return [...texts].map(([text, ofText]) => `${ofText.length} ${text}`);
  });
  if (parts.length === 0) return "no live session";
  return `${count(sessions.length, "live session")}${isCut ? " and more" : ""}: ${parts.join(", ")}`;
}

/** The table, its head first, as wide as the terminal at most. */
export function topLines(
  { sessions }: LivePage,
  look: Look,
  now: number,
  columns = look.columns,
): readonly string[] {
  const ids = shownIds(
    sessions.map(({ session }) => session),
    { columns },
  );
  const rows = sessions.map(({ session, isDriven, why, cost }) => [
    paintStatus(session, look, isDriven),
    plainLine(session.agent.name, NAME_CHARS, look.symbols.cut),
    plainLine(session.title ?? "", TITLE_CHARS, look.symbols.cut),
    ids(session.sessionId),
    age(Math.max(0, now - session.updatedAt)),
    costText(cost),
    plainLine(why, WHY_CHARS, look.symbols.cut),
  ]);
  const [head = "", ...lines] = fittedTable(
    [["STATUS", "AGENT", "TITLE", "SESSION", "FOR", "COST", "WHY"], ...rows],
    {
      columns,
      id: 3,
      cutMark: look.symbols.cut,
    },
  );
  return rows.length === 0 ? [] : [look.paint.bold(head), ...lines];
}
