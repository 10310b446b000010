// `readLive`, `topLines`: the live sessions of all places, and their table for `holdfast top`.
//
// Indexes by status find the sessions. However many have ended, about as many rows are read as are shown.

import {
  decodeJson,
  defined,
  resumesAt,
  type Session,
  type StorageReader,
  TITLE_CHARS,
} from "@holdfast/core";
import {
  costText,
  inLiveOrder,
  LIVE_STATUSES,
  whyText,
  type WhyContext,
  type Cost,
  type PlainSession,
} from "@holdfast/proto/view";
import type { Look } from "@holdfast/terminal/frame/command";
import { age, count, fittedTable, plainLine } from "@holdfast/terminal/frame/plain-text";
import type { Readers } from "@holdfast/place/find-session";
import { findDriver } from "@holdfast/place/project-storage";
import type { Database } from "@holdfast/place/project";
import {
  isIdleConversation,
  isOfAdapter,
  isOfProgram,
  moment,
  paintStatus,
  shortStatus,
  statusText,
} from "@holdfast/terminal/view/describe-session";
import { shownIds } from "@holdfast/terminal/view/session-tree";
import type { CostReader } from "@holdfast/terminal/view/session-cost";

/** The column that is cut first: ids, and without them the ages, which are short enough. */
const ID_AT = 3;
const NAME_CHARS = 30;
const WHY_CHARS = 300;

export interface LiveSession {
  readonly session: Session;
  readonly place: Database;
  readonly reader: StorageReader;
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
    sessions: shown.map(({ session, place, reader }, at) => ({
      session,
      place,
      reader,
      isDriven: driven.has(session),
      cost: spent[at],
      why: whyOf(session, {
        blocked: blocked.get(session.sessionId),
        isElsewhere: place.coordinator !== undefined,
        isDriven: driven.has(session),
        when: (time) => moment(time, now),
      }),
    })),
  };
}

/** The sessions without a parent that ended last, since a time. */
export async function readEnded(
  readers: Readers,
  { since, most }: { readonly since: number; readonly most: number },
  costs: CostReader,
): Promise<readonly LiveSession[]> {
  const pages = await Promise.all(
    readers.flatMap(({ place, reader }) =>
      ENDED_STATUSES.map(async (status) => {
        const found = await reader.sessions({ status, limit: ENDED_LOOKED_AT });
        return found
          .filter(({ parent, endedAt = 0 }) => parent === undefined && endedAt >= since)
          .map((session) => ({ session, place, reader }));
      }),
    ),
  );
  const shown = pages
    .flat()
    .toSorted((a, b) => (b.session.endedAt ?? 0) - (a.session.endedAt ?? 0))
    .slice(0, most);
  const spent = await costs.costs(shown);
  return shown.map((one, at) => {
    const why = whyOf(one.session, { isElsewhere: false, isDriven: true, when: String });
    return { ...one, isDriven: true, cost: spent[at], why };
  });
}

const ENDED_STATUSES = ["completed", "failed", "cancelled"] as const;
const ENDED_LOOKED_AT = 50;

/** The reason of its stand, for a person. The signals that adapters and other programs send are no need of a person. */
function whyOf(
  session: Session,
  { blocked, ...context }: WhyContext & { readonly blocked?: string | undefined },
): string {
  const isProgram = isOfProgram(session);
  const isIdle = isIdleConversation(session);
  const waits = session.waits.filter(
    (wait) => wait.type !== "signal" || !(isIdle || (isProgram && isOfAdapter(wait.name))),
  );
  const why = whyText(plainSession({ ...session, waits }, blocked), context);
  return why === "" && isIdle && session.status === "waiting" ? "waits for your next message" : why;
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

/** When it began its work, or came to where it stands. */
function sinceOf(session: Session): number {
  return isOnRun(session) ? session.createdAt : (session.endedAt ?? session.updatedAt);
}

function statusCell(session: Session, look: Look, isDriven: boolean, isNarrow: boolean): string {
  const status = statusText(session, isDriven);
  const painted = paintStatus(session, look, isDriven);
  return isNarrow ? painted.replace(status, shortStatus(status)) : painted;
}

/**
 * The table, its head first, as wide as the terminal at most.
 *
 * @param isNarrow without the ids, and with short words, so that there is room for what each does.
 */
export function topLines(
  { sessions }: Pick<LivePage, "sessions">,
  look: Look,
  now: number,
  columns = look.columns,
  isNarrow = false,
): readonly string[] {
  const ids = shownIds(
    sessions.map(({ session }) => session),
    { columns },
  );
  const rows = sessions.map(({ session, isDriven, why, cost }) => [
    statusCell(session, look, isDriven, isNarrow),
    plainLine(session.agent.name, NAME_CHARS, look.symbols.cut),
    plainLine(session.title ?? "", TITLE_CHARS, look.symbols.cut),
    ...(isNarrow ? [] : [ids(session.sessionId)]),
    age(Math.max(0, now - sinceOf(session))),
    costText(cost),
    plainLine(why, WHY_CHARS, look.symbols.cut),
  ]);
  const id = isNarrow ? [] : ["SESSION"];
  const [head = "", ...lines] = fittedTable(
    [["STATUS", "AGENT", "TITLE", ...id, "FOR", "COST", "WHY"], ...rows],
    { columns, id: ID_AT, cutMark: look.symbols.cut },
  );
  return rows.length === 0 ? [] : [look.paint.bold(head), ...lines];
}
