import {
  defined,
  didYouMean,
  isEnded,
  isLost,
  resumesAt,
  type Session,
  SESSION_STATUSES,
  TITLE_CHARS,
  type StorageReader,
} from "@holdfast/core";
import { type Cost, costText } from "@holdfast/proto/view";
import { limitOf, refuse } from "@holdfast/terminal/frame/arguments";
import type { Arguments, Command, Io } from "@holdfast/terminal/frame/command";
import { type Database, findDatabase, placesOf } from "@holdfast/place/project";
import { newestFirst, placeLine, ofAwayStack, withReader } from "@holdfast/place/find-session";
import { sessionJson } from "@holdfast/terminal/view/session-json";
import { programOf } from "@holdfast/machine/agent-source";
import { isIncluded } from "@holdfast/programs/included-programs";
import { CostReader } from "@holdfast/terminal/view/session-cost";
import {
  describeWaits,
  questionLine,
  shortStatus,
  statusText,
} from "@holdfast/terminal/view/describe-session";
import { age, fittedTable, plainLine } from "@holdfast/terminal/frame/plain-text";
import { asTrees, cancelText, shownIds, walk } from "@holdfast/terminal/view/session-tree";
import { pauseAdvice } from "@holdfast/terminal/view/pause-advice";
import { findDriver } from "@holdfast/place/project-storage";

const LIMIT = 50;
const PROMPT_CHARS = 200;
/** A session is `interrupted` while it is `working` and no process runs it. */
const STATUSES = [...SESSION_STATUSES, "interrupted"] as const;
/** The title stays readable before the last column does, where there is room for both. */
const TITLE_MIN = 24;
const NARROW_TITLE_MIN = 14;
/** A narrower terminal has short words for statuses, times and waits. */
const WIDE = 110;

export const list: Command = {
  name: "list",
  options: {
    status: { help: `only sessions that are ${STATUSES.join(", ")}`, value: "STATUS" },
    unfinished: { help: "only sessions that have not ended", excludes: ["status"] },
    limit: { help: `how many sessions (default: ${LIMIT})`, value: "N" },
  },
  examples: [
    ["list", "what there is"],
    ["list --unfinished", "sessions that may have to be resumed or answered"],
    ["list --status input_required", "sessions that wait for a person"],
    ["list --status interrupted", "sessions whose process was killed: `holdfast resume ID` continues one"],
    ["list --json --limit 1000", "one JSON list, for programs"],
  ],

  async run(args, io) {
    const status = readStatus(args);
    const limit = limitOf(args, { usual: LIMIT });
    const database = findDatabase(args, io);
    const { stack } = database;
    const places = placesOf(database);
    const found = await Promise.all(
      places.map(async (place) => {
        // One more than is shown, to know whether there are more.
        return withReader(place, async (reader) => {
          if (reader === undefined)
            return { place, sessions: [], costs: new Map<string, Cost | undefined>() };
          const sessions = args.has("unfinished")
            ? await firstUnfinished(reader, limit + 1)
            : status === "interrupted"
              ? await firstInterrupted(reader, place, limit + 1)
              : await reader.sessions({ limit: limit + 1, ...defined({ status }) });
          return { place, sessions, costs: await costsAtWork(sessions.slice(0, limit), reader) };
        });
      }),
    );
    if (io.isJson) {
      const json = found.flatMap(({ place, sessions }) =>
        sessions.slice(0, limit).map((session) => ({
          ...sessionJson(session),
          ...(stack === undefined ? {} : { place: place.path }),
        })),
      );
      io.result(json, "");
      return 0;
    }
    for (const { place, sessions, costs } of found) {
      const shown = sessions.slice(0, limit);
      if (shown.length > 0 && stack !== undefined) io.note(placeLine(place));
      io.show([], await linesOf(shown, costs, place, io));
      if (sessions.length > limit) io.note(io.notes.paint.dim(`there are more: --limit ${limit * 10}`));
    }
    if (found.every(({ sessions }) => sessions.length === 0))
      io.note(
        `no ${args.has("unfinished") ? "unfinished " : ""}sessions${status === undefined ? "" : ` that are ${status}`} in ${places.map(({ path }) => path).join(" and ")}${database.coordinator === undefined ? "; those of a coordinator: --url URL" : ""}`,
      );
    const ofStack = ofAwayStack(database);
    if (ofStack !== "") io.note(io.notes.paint.dim(ofStack));
    return 0;
  },
};

async function firstUnfinished(reader: StorageReader, limit: number): Promise<Session[]> {
  const found: Session[] = [];
  for await (const session of newestFirst(reader)) {
    if (!isEnded(session.status)) found.push(session);
    if (found.length === limit) break;
  }
  return found;
}

async function firstInterrupted(reader: StorageReader, place: Database, limit: number): Promise<Session[]> {
  const working: Session[] = [];
  for await (const session of newestFirst(reader, { status: "working" })) working.push(session);
  const isDriven = await drivenOf(working, place);
  return working.filter((session) => !isDriven(session)).slice(0, limit);
}

/**
 * The costs of coding agents at work, by the ids of their sessions. Their rows count a turn when it ends, and
 * their journals each report. The rows of all other sessions say it, so that no long journal is read.
 */
async function costsAtWork(
  sessions: readonly Session[],
  reader: StorageReader,
): Promise<ReadonlyMap<string, Cost | undefined>> {
  const working = sessions.filter(
    // A coordinator knows no source of an agent.
    ({ status, agent: { name, file } }) =>
      !isEnded(status) && (file === undefined ? isIncluded(name) : programOf(file) !== undefined),
  );
  if (working.length === 0) return new Map();
  const costs = await new CostReader().costs(working.map((session) => ({ session, reader })));
  return new Map(working.map(({ sessionId }, at) => [sessionId, costs[at]]));
}

async function linesOf(
  sessions: readonly Session[],
  costs: ReadonlyMap<string, Cost | undefined>,
  database: Database,
  io: Io,
): Promise<string> {
  if (sessions.length === 0) return "";
  const now = Date.now();
  const isDriven = await drivenOf(sessions, database);
  const isElsewhere = database.coordinator !== undefined;
  const { symbols, columns } = io.results;
  const isNarrow = columns < WIDE;
  const statusOf = (session: Session): string => {
    const status = statusText(session, isDriven(session));
    return isNarrow ? shortStatus(status) : status;
  };
  const costOf = (session: Session): string => {
    const cost = costs.get(session.sessionId) ?? session.cost;
    return cost === undefined ? "" : costText(cost);
  };
  const waitOf = (session: Session): string => {
    const { handedOffTo, progress, cancel } = session;
    const paused = pauseAdvice(session, io, isElsewhere);
    const waitsFor = describeWaits(session, { io, now })
      .map(({ id, what, until }) => (isNarrow ? promptOf(session, id) : undefined) ?? what + until)
      .join("; ");
    return [
      !isDriven(session) && isLost(session)
        ? "nothing: it was ephemeral, and was lost with its process"
        : !isDriven(session) && isOnRun(session)
          ? "somebody to resume it"
          : paused === undefined
            ? waitsFor
            : resumesAt(session) === undefined
              ? `${paused.commands[0]}  (${paused.why})`
              : paused.why,
      handedOffTo === undefined ? "" : `(handed over to ${handedOffTo})`,
      cancelText(cancel) === undefined ? "" : `(cancelled: ${cancelText(cancel)})`,
      progress === undefined || isEnded(session.status) ? "" : `(progress ${plainLine(progress, 60)})`,
    ]
      .filter((text) => text !== "")
      .join("  ");
  };
  const ids = shownIds(sessions, io.results);
  const rows = [...walk(asTrees(sessions))].map(({ session, depth }) => [
    "  ".repeat(depth) + ids(session.sessionId),
    statusOf(session),
    plainLine(session.agent.name, 40),
    plainLine(session.title ?? "", TITLE_CHARS),
    `${age(now - session.updatedAt)}${isNarrow ? "" : " ago"}`,
    costOf(session),
    waitOf(session),
  ]);
  const head = ["SESSION", "STATUS", "AGENT", "TITLE", "UPDATED", "COST", "WAITS FOR"];
  const [title, updated, cost] = [3, 4, 5];
  const least = { [title]: isNarrow ? NARROW_TITLE_MIN : TITLE_MIN };
  const dropped = [cost, updated];
  return fittedTable([head, ...rows], { columns, id: 0, cutMark: symbols.cut, least, dropped }).join("\n");
}

/** The question of a wait, if it is one. */
function promptOf({ waits }: Session, id: number): string | undefined {
  const wait = waits.find((one) => one.id === id);
  return wait?.type === "input" ? questionLine(wait.prompt, PROMPT_CHARS) : undefined;
}

/** Whether a process must be running it for its status to be true. */
function isOnRun({ status }: Session): boolean {
  return status === "submitted" || status === "working" || status === "cancelling";
}

/** The sessions that a process may be running. */
async function drivenOf(
  sessions: readonly Session[],
  database: Database,
): Promise<(session: Session) => boolean> {
  const isAsked = sessions.some((session) => isOnRun(session) || isLost(session));
  if (database.coordinator !== undefined || !isAsked) return () => true;
  const driver = await findDriver(database, sessions);
  return (session) => driver?.isDriven(session) === true;
}

function readStatus(args: Arguments): (typeof STATUSES)[number] | undefined {
  const text = args.text("status");
  const status = STATUSES.find((candidate) => candidate === text);
  if (text === undefined || status !== undefined) return status;
  throw refuse(`"${text}" is no status${didYouMean(text, STATUSES)}`, args.usage, {
    expected: STATUSES.join(", "),
  });
}
