// The examination of a database behind `holdfast doctor`: its rows, and the sessions in it.

import { existsSync, statSync } from "node:fs";
import {
  defined,
  exitCodeOf,
  isEnded,
  toHoldfastError,
  type Session,
  type StorageReader,
} from "@holdfast/core";
import type { SqliteFileReader, VerifyReport } from "@holdfast/storage/sqlite";
import type { Io, Look } from "@holdfast/terminal/frame/command";
import { isAuthorsFault, describeWaits, statusText } from "@holdfast/terminal/view/describe-session";
import { newestFirst } from "@holdfast/place/find-session";
import { findDriver } from "@holdfast/place/project-storage";
import { pauseAdvice } from "@holdfast/terminal/view/pause-advice";
import { count, plainLine, table } from "@holdfast/terminal/frame/plain-text";
import type { Database } from "@holdfast/place/project";

export interface Examination {
  readonly node: string;
  readonly sqlite: string;
  readonly database: {
    readonly path: string;
    readonly origin: Database["origin"];
    readonly from?: string;
    readonly exists: boolean;
    readonly bytes?: number;
    /** The size of the write-ahead log. SQLite reads its pages only up to the first damaged one. */
    readonly logBytes?: number;
    /** Octal, as `chmod` takes it. */
    readonly mode?: string;
    readonly ownerPid?: number;
  };
  /** Everything that a person should see to. */
  readonly problems: readonly string[];
  readonly rows: Readonly<Record<string, number>>;
  readonly sessions: Readonly<Record<string, number>>;
  readonly unfinished: readonly {
    readonly sessionId: string;
    readonly status: string;
    readonly agent: string;
    readonly waitsFor: string;
    /** The command that resumes the session and its tree. */
    readonly resume: string;
    /** For a paused session: the commands of which a person calls one first. */
    readonly commands: readonly string[];
    /** Whether its agent's code has to be corrected first. */
    readonly isAuthors: boolean;
  }[];
  /** The command that lists sessions, with the options of this call. */
  readonly listCommand: string;
  readonly exitCode: number;
}

const UNFINISHED_SHOWN = 50;
const PROBLEMS_SHOWN = 20;

export async function examine(database: Database, io: Io): Promise<Examination> {
  const { path, origin, from } = database;
  const place = { path, origin, ...defined({ from }) };
  const listCommand = io.call("list");
  const base = { listCommand, node: process.versions.node, sqlite: process.versions.sqlite ?? "none" };
  const nothing = { rows: {}, sessions: {}, unfinished: [] };
  if (!existsSync(path)) {
    return { ...base, database: { ...place, exists: false }, problems: [], ...nothing, exitCode: 0 };
  }
  const { size, mode } = statSync(path);
  const ownerPid = (await findDriver(database))?.pid;
  const file = {
    ...place,
    exists: true,
    bytes: size,
    ...logOf(path),
    mode: (mode & 0o777).toString(8).padStart(3, "0"),
    ...defined({ ownerPid }),
  };
  const { openSqliteReader } = await import("@holdfast/storage/sqlite");
  let reader: SqliteFileReader;
  try {
    reader = openSqliteReader({ path });
  } catch (thrown) {
    const error = toHoldfastError(thrown);
    const problem = [error.message, error.got, error.fix].filter((part) => part !== undefined).join("; ");
    return { ...base, database: file, problems: [problem], ...nothing, exitCode: exitCodeOf(error) };
  }
  try {
    const report = reader.verify();
    const census = await countSessions(reader, io);
    const isOpenToOthers = (mode & 0o077) !== 0;
    const problems = [...problemsOf(report), ...census.problems];
    return {
      ...base,
      database: file,
      problems: isOpenToOthers ? [...problems, `others may read the database: chmod 600 ${path}`] : problems,
      rows: report.rows,
      sessions: census.sessions,
      unfinished: census.unfinished,
      exitCode: problems.length > 0 ? 10 : 0,
    };
  } finally {
    reader.close();
  }
}

function logOf(path: string): { readonly logBytes?: number } {
  const logBytes = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  return logBytes === 0 ? {} : { logBytes };
}

/**
 * Examine a fleet's database. Runners continue its unfinished sessions, so no commands are shown for them.
 */
export async function examinePostgres(url: string, io: Io): Promise<Examination> {
  const { importPostgres } = await import("@holdfast/place/coordinator-storage");
  const { openPostgresReader } = await importPostgres();
  const reader = await openPostgresReader({ url });
  try {
    const report = await reader.verify();
    const { sessions, problems } = await countSessions(reader, io);
    const all = [...problemsOf(report), ...problems];
    return {
      node: process.versions.node,
      sqlite: process.versions.sqlite ?? "none",
      listCommand: io.call("list"),
      database: { path: reader.at, origin: "flag", from: "--storage", exists: true },
      problems: all,
      rows: report.rows,
      sessions,
      unfinished: [],
      exitCode: all.length > 0 ? 10 : 0,
    };
  } finally {
    await reader.close();
  }
}

function problemsOf({ problems, problemCount }: VerifyReport): string[] {
  const texts = problems.slice(0, PROBLEMS_SHOWN).map(({ table: name, message }) => `${name}: ${message}`);
  return problemCount > texts.length ? [...texts, `and ${problemCount - texts.length} more`] : texts;
}

async function countSessions(reader: StorageReader, io: Io) {
  const sessions: Record<string, number> = {};
  const unfinished: Examination["unfinished"][number][] = [];
  const problems: string[] = [];
  const now = Date.now();
  const living = new Map<string, Session>();
  try {
    for await (const session of newestFirst(reader)) {
      sessions[session.status] = (sessions[session.status] ?? 0) + 1;
      if (!isEnded(session.status)) living.set(session.sessionId, session);
    }
    for (const session of living.values()) {
      const waitsFor = describeWaits(session, { io, now })
        .map(({ what, until }) => what + until)
        .join("; ");
      const resume = io.call(`resume ${topOf(session, living).sessionId}`);
      const paused = pauseAdvice(session, io, false)?.commands ?? [];
      unfinished.push({
        sessionId: session.sessionId,
        status: statusText(session),
        agent: session.agent.name,
        waitsFor,
        resume,
        commands: paused,
        isAuthors: isAuthorsFault(session),
      });
    }
  } catch (error) {
    problems.push(`sessions cannot be listed: ${toHoldfastError(error).message}`);
  }
  return { sessions, unfinished, problems };
}

/** The topmost session above one that has not ended: the process that runs that one runs all below it. */
function topOf(session: Session, living: ReadonlyMap<string, Session>): Session {
  for (let top = session; ;) {
    const above = top.parent === undefined ? undefined : living.get(top.parent.sessionId);
    if (above === undefined) return top;
    top = above;
  }
}

export function examinationText(found: Examination, { paint, symbols }: Look): string[] {
  const { database } = found;
  const size =
    database.bytes === undefined ? "" : `, ${(database.bytes / 1024).toFixed(0)} KiB, mode ${database.mode}`;
  const facts = [
    [
      "database",
      `${database.path} (${database.from === undefined ? "the project's" : `from ${database.from}`})`,
    ],
    ["", database.exists ? `exists${size}` : "does not exist yet: `run` makes it"],
  ];
  if (database.logBytes !== undefined) {
    const kib = (database.logBytes / 1024).toFixed(0);
    facts.push([
      "log",
      `${kib} KiB, checked up to its last whole commit; data lost after that point cannot be distinguished from data never written`,
    ]);
  }
  if (database.mode !== undefined)
    facts.push(["owner", database.ownerPid === undefined ? "none" : `process ${database.ownerPid}`]);
  const rows = Object.entries(found.rows).map(([name, rowCount]) => `${name} ${rowCount}`);
  if (rows.length > 0) facts.push(["rows", rows.join(", ")]);
  const sessions = Object.entries(found.sessions).map(([status, n]) => `${n} ${status}`);
  if (sessions.length > 0) facts.push(["sessions", sessions.join(", ")]);
  const lines = table(facts.map(([name, value]) => [paint.dim(name ?? ""), value ?? ""]));

  if (found.unfinished.length > 0) {
    lines.push("", paint.bold(count(found.unfinished.length, "unfinished session")));
    for (const { status, agent, waitsFor, commands, resume, isAuthors } of found.unfinished.slice(
      0,
      UNFINISHED_SHOWN,
    )) {
      const before = commands.map((command, i) => `${i > 0 ? "or: " : ""}${paint.cyan(command)}`);
      const isLast = !commands.some((command) => command.startsWith(resume));
      const after = isLast ? [`${before.length > 0 ? "then: " : ""}${paint.cyan(resume)}`] : [];
      const [first = "", ...others] = [...before, ...after];
      lines.push(
        `  ${status}  ${plainLine(agent, 60)}${waitsFor === "" ? "" : `: waits for ${waitsFor}`}`,
        `      ${isAuthors ? "correct the code, then: " : ""}${first}`,
        ...others.map((line) => `      ${line}`),
      );
    }
    if (found.unfinished.length > UNFINISHED_SHOWN)
      lines.push(`  and more: ${found.listCommand} --unfinished`);
  }
  lines.push("");
  if (found.problems.length === 0)
    lines.push(`${paint.green(symbols.done)} no problem was found in the database`);
  const stuck = ["paused", "failed"].flatMap((status) => {
    const n = found.sessions[status];
    return n === undefined
      ? []
      : [`${count(n, `${status} session`)}: ${found.listCommand} --status ${status}`];
  });
  if (stuck.length > 0) lines.push(`${paint.yellow(symbols.warn)} ${stuck.join("\n  ")}`);
  for (const problem of found.problems)
    lines.push(`${paint.red(symbols.failed)} ${plainLine(problem, 1_000)}`);
  return lines;
}
