// Which session somebody means, and access to where it is.

import { existsSync } from "node:fs";
import {
  defined,
  HoldfastError,
  isEnded,
  isMeantBy,
  NotFoundError,
  shortIds,
  UsageError,
  type AgentStorage,
  type Session,
  type SessionStatus,
  type StorageReader,
} from "@holdfast/core";
import type { SqliteFileReader, StorageAccess } from "@holdfast/storage/sqlite";
import { refuse } from "@holdfast/terminal/frame/arguments";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { CommandError } from "@holdfast/terminal/frame/command-error";
import { asAsked, type CoordinatorAccess } from "./coordinator-access.ts";
import { duration, plainLine } from "@holdfast/terminal/frame/plain-text";
import { makeProjectFolder, type AwayStack, type Database } from "./project.ts";

const sqlite = () => import("@holdfast/storage/sqlite");
const PAGE_SESSIONS = 500;
const MATCHES_SHOWN = 5;
const TITLE_SHOWN = 60;
/** Sessions of a coordinator are found by name only: where a session lives must not depend on which processes run. */
const ELSEWHERE = "use --db PATH for another database, --url URL for a coordinator";
/** The advice for sessions of a local stack that does not run. */
const AWAY_STACK: Readonly<Record<AwayStack, string>> = {
  stopped: "run `holdfast local start` for those of the local stack, which is stopped",
  starting: "the local stack is starting: run the same command again in some seconds for those of the stack",
  stopping:
    "the local stack is stopping: run `holdfast local start` for those of the stack once it has ended",
};
const WHOLE_ID = /^ses_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Storage that somebody works on: a database as its owner or over its owner's socket, or a coordinator's. */
export type Access = StorageAccess | { readonly role: "remote"; readonly storage: AgentStorage };

/**
 * Write to a database, whichever process owns it.
 *
 * @param create whether it is made when it is missing.
 */
export async function withStorage<T>(
  database: Database,
  work: (access: Access) => Promise<T>,
  create = true,
): Promise<T> {
  if (database.coordinator !== undefined) return withRemoteStorage(database.coordinator, work);
  const { withSqliteStorage } = await sqlite();
  if (create) makeProjectFolder(database);
  const mark = database.own?.mark;
  return withSqliteStorage({ path: database.path, create, ...defined({ mark }) }, work);
}

export async function withRemoteStorage<T>(
  access: CoordinatorAccess,
  work: (access: Extract<Access, { role: "remote" }>) => Promise<T>,
): Promise<T> {
  const { openRemoteStorage } = await import("@holdfast/storage/remote");
  let storage: AgentStorage | undefined;
  try {
    const { url, token, patience } = access;
    storage = openRemoteStorage({ url, token, ...defined({ patience }) });
    return await work({ role: "remote", storage });
  } catch (thrown) {
    throw HoldfastError.is(thrown) ? asAsked(thrown, access) : thrown;
  } finally {
    await storage?.close();
  }
}

/** Write to a session that must exist, whichever process owns its database. */
export async function withSession<T>(
  given: Database,
  id: string,
  work: (session: Session, access: Access) => Promise<T>,
): Promise<T> {
  const database = await placeOf(given, id);
  if (database.coordinator !== undefined)
    return withRemoteStorage(database.coordinator, async (access) =>
      work(await findSession(access.storage.reader, id, database), access),
    );
  const { withSqliteStorage } = await sqlite();
  try {
    return await withSqliteStorage({ path: database.path, create: false }, async (access) =>
      work(await findSession(access.storage.reader, id, database), access),
    );
  } catch (error) {
    throw isMissing(error, database) ? databaseNotFound(id, database) : error;
  }
}

/**
 * Read a database beside the process that owns it; `undefined` when it was never made. A database that was
 * removed while it is in use is read through its owner.
 */
export async function withReader<T>(
  database: Database,
  work: (reader: StorageReader | undefined) => Promise<T>,
): Promise<T> {
  if (database.coordinator !== undefined)
    return withRemoteStorage(database.coordinator, ({ storage }) => work(storage.reader));
  const { connectSqliteStorage, openSqliteReader } = await sqlite();
  let reader: SqliteFileReader | undefined;
  try {
    reader = openSqliteReader({ path: database.path });
  } catch (error) {
    const owner = isMissing(error, database)
      ? await connectSqliteStorage({ path: database.path })
      : undefined;
    if (owner !== undefined) {
      try {
        return await work(owner.reader);
      } finally {
        await owner.close();
      }
    }
    // A file that the caller names must exist; the default file is made by the first session.
    if (!isMissing(error, database) || database.origin !== "default") throw error;
  }
  try {
    return await work(reader);
  } finally {
    reader?.close();
  }
}

/** A reader for each of the places that a command looks into. */
export type Readers = readonly { readonly place: Database; readonly reader: StorageReader }[];

/** Read several places. A place without a database is left out. */
export async function withReaders<T>(
  [first, ...rest]: readonly Database[],
  work: (readers: Readers) => Promise<T>,
  open: Readers = [],
): Promise<T> {
  if (first === undefined) return work(open);
  return withReader(first, (reader) =>
    withReaders(rest, work, reader === undefined ? open : [...open, { place: first, reader }]),
  );
}

/** Read one session that must be there. */
export async function withReaderOf<T>(
  database: Database,
  id: string,
  work: (session: Session, reader: StorageReader) => Promise<T>,
): Promise<T> {
  const place = await placeOf(database, id);
  return withReader(place, async (reader) => {
    if (reader === undefined) throw databaseNotFound(id, place);
    return work(await findSession(reader, id, place), reader);
  });
}

/** Read the session that a command line means: by its id or its short id, or `--last`. */
export async function withReaderOfMeant<T>(
  database: Database,
  args: Arguments,
  work: (session: Session, reader: StorageReader) => Promise<T>,
): Promise<T> {
  if (!args.has("last")) return withReaderOf(database, args.positionals[0] ?? "", work);
  if (args.positionals.length > 0)
    throw refuse("an id and --last exclude each other", args.usage, { fix: "give one of them" });
  return withReader(await placeOfNewest(database), async (reader) => {
    const [newest] = (await reader?.sessions({ limit: 1 })) ?? [];
    if (reader !== undefined && newest !== undefined) return work(newest, reader);
    throw new NotFoundError("session_not_found", "there is no session yet", {
      at: database.path,
      fix: `start a session with \`holdfast run FILE\`; ${ofAwayStack(database, "; ")}${ELSEWHERE}`,
    });
  });
}

/**
 * The session of this id, or the only one that this beginning of an id means (`isMeantBy`).
 *
 * @throws NotFoundError when there is none, CommandError `ambiguous` when there are several.
 */
export async function findSession(
  reader: StorageReader,
  id: string,
  searched?: Pick<Database, "awayStack">,
): Promise<Session> {
  // Every id begins with nothing, so the only session there is would be meant by a variable that is not set.
  if (id.trim() === "")
    throw new UsageError("the id of the session is empty", {
      expected: WANTED_ID,
      fix: "run `holdfast list` to see all ids",
    });
  const matches = await meantBy(reader, id);
  const [only, second] = matches;
  if (only === undefined) throw sessionNotFound(id, searched);
  if (second === undefined) return only;
  throw severalMeant(id, matches);
}

/** The session of this id, or those that this beginning of an id means: one more than is shown at most. */
async function meantBy(reader: StorageReader, id: string): Promise<readonly Session[]> {
  const exact = await reader.session(id);
  if (exact !== undefined) return [exact];
  const matches: Session[] = [];
  if (WHOLE_ID.test(id)) return matches; // No other id begins with it: no need to look at all of them.
  for await (const session of newestFirst(reader)) {
    if (isMeantBy(session.sessionId, id)) matches.push(session);
    if (matches.length > MATCHES_SHOWN) break;
  }
  return matches;
}

const WANTED_ID = "an id, a short id, or the beginning of exactly one of these";

/** Names each session so that a person can choose one: its id as it can be typed, its title, agent and age. */
function severalMeant(
  id: string,
  found: readonly Session[],
  fix = "give more characters of the id",
): CommandError {
  const now = Date.now();
  const shorts = shortIds(found.map(({ sessionId }) => sessionId));
  const shown = found.slice(0, MATCHES_SHOWN).map(({ sessionId, title, agent, status, createdAt }) => {
    const about = title === undefined ? "" : `${plainLine(title, TITLE_SHOWN)} `;
    const age = `started ${duration(Math.max(0, now - createdAt))} ago`;
    return `${shorts.get(sessionId)}: ${about}(${plainLine(agent.name, TITLE_SHOWN)}, ${status}, ${age})`;
  });
  if (found.length > MATCHES_SHOWN) shown.push("and more");
  return new CommandError("ambiguous", `several sessions are meant by ${plainLine(id, 120)}`, {
    got: shown.join("\n"),
    expected: WANTED_ID,
    fix,
  });
}

/**
 * Where a session is: in the database, or in the local stack that runs beside it.
 *
 * @throws CommandError `ambiguous` when the beginning of an id fits sessions of both.
 */
export async function placeOf(database: Database, id: string): Promise<Database> {
  const { stack } = database;
  if (stack === undefined) return database;
  const here = await meantIn(database, id);
  if (here.length > 0 && WHOLE_ID.test(id)) return database;
  const there = await meantIn(stack, id);
  if (there.length === 0) return database;
  if (here.length === 0) return stack;
  const isInBoth = here.some(({ sessionId }) => there.some((other) => other.sessionId === sessionId));
  throw severalMeant(id, [...here, ...there], isInBoth ? ELSEWHERE : undefined);
}

/** Where the session of a whole id is; the database when it is nowhere. */
export async function placeOfExact(database: Database, id: string): Promise<Database> {
  const { stack } = database;
  if (stack === undefined) return database;
  const [here, there] = await Promise.all(
    [database, stack].map((place) => withReader(place, async (reader) => reader?.session(id))),
  );
  return here === undefined && there !== undefined ? stack : database;
}

/** The sessions of a place that a text means. */
async function meantIn(place: Database, id: string): Promise<readonly Session[]> {
  return withReader(place, async (reader) => (reader === undefined ? [] : meantBy(reader, id)));
}

/** Where the newest session that matches is: in the database, or in the local stack that runs beside it. */
export async function placeOfNewest(
  database: Database,
  matches: (session: Session) => boolean = () => true,
): Promise<Database> {
  const { stack } = database;
  if (stack === undefined) return database;
  const [here, there] = await Promise.all(
    [database, stack].map((place) =>
      withReader(place, async (reader) => reader && newestOf(reader, matches)),
    ),
  );
  return there !== undefined && (here === undefined || there.createdAt > here.createdAt) ? stack : database;
}

/** Where the session is that a command line names by its id, or by `--last`. A note says so for the local stack. */
export async function findPlace(
  database: Database,
  args: Arguments,
  io: Io,
  matches?: (session: Session) => boolean,
): Promise<Database> {
  const [id] = args.positionals;
  const isLast = args.has("last");
  if (id === undefined && !isLast) return database; // The command says what is missing.
  const place = isLast ? await placeOfNewest(database, matches) : await placeOf(database, id!);
  if (place !== database) noteStack(place, io);
  return place;
}

/** The line above what a list shows of one of several places. */
export function placeLine({ coordinator, path }: Database): string {
  return coordinator === undefined ? `in the project, ${path}:` : `in the local stack, on ${path}:`;
}

export function noteStack({ path }: Database, io: Io): void {
  io.note(io.notes.paint.dim(`in the local stack, on ${path}`));
}

async function newestOf(
  reader: StorageReader,
  matches: (session: Session) => boolean,
): Promise<Session | undefined> {
  for await (const session of newestFirst(reader)) if (matches(session)) return session;
  return undefined;
}

/** The newest session that has not ended and that matches. */
export async function findUnfinished(
  reader: StorageReader,
  matches: (session: Session) => boolean = () => true,
): Promise<Session | undefined> {
  return newestOf(reader, (session) => !isEnded(session.status) && matches(session));
}

/** Whether a session is one of this agent: its name, and its file unless that is gone. */
export function isOfAgent({ agent }: Session, name: string, file: string): boolean {
  return agent.name === name && (agent.file === undefined || agent.file === file || !existsSync(agent.file));
}

export async function* newestFirst(
  reader: StorageReader,
  matching: { readonly status?: SessionStatus } = {},
): AsyncGenerator<Session> {
  let before: string | undefined;
  for (;;) {
    const page = await reader.sessions({ ...matching, limit: PAGE_SESSIONS, ...defined({ before }) });
    yield* page;
    before = page.at(-1)?.sessionId;
    if (page.length < PAGE_SESSIONS || before === undefined) return;
  }
}

function databaseNotFound(id: string, database: Database): NotFoundError {
  return sessionNotFound(id, database, `: there is no database at ${database.path}`);
}

function sessionNotFound(id: string, searched: Pick<Database, "awayStack"> = {}, where = ""): NotFoundError {
  return new NotFoundError("session_not_found", `there is no session ${plainLine(id, 120)}${where}`, {
    fix: `run \`holdfast list\` to see all ids, which are case-sensitive; ${ofAwayStack(searched, "; ")}${ELSEWHERE}`,
  });
}

/** How the sessions of a local stack that does not answer now are found; nothing where there is no such stack. */
export function ofAwayStack({ awayStack }: Pick<Database, "awayStack">, end = ""): string {
  return awayStack === undefined ? "" : `${AWAY_STACK[awayStack]}${end}`;
}

/** Tell what a person should know about how the file was found. */
export function showWarnings(access: Access, io: Io): void {
  if (access.role !== "owner") return;
  for (const warning of access.storage.warnings)
    io.note(io.notes.paint.yellow(`${io.notes.symbols.warn} ${warning}`));
}

function isMissing(error: unknown, database: Database): boolean {
  return HoldfastError.is(error) && error.code === "file_not_found" && !existsSync(database.path);
}
