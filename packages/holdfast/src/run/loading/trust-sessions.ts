// `holdfast agents trust --sessions`: shows the rights of the sessions that a database of the project brings,
// and trusts them (own-database-1).

import { createInterface } from "node:readline";
import { HoldfastError, isEnded, NotFoundError, type Session, type StorageReader } from "@holdfast/core";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { count, plainLine } from "@holdfast/terminal/frame/plain-text";
import { isOwnDatabase } from "@holdfast/place/own-database";
import { newestFirst, withReader } from "@holdfast/place/find-session";
import { findLocalDatabase } from "@holdfast/place/project";
import { canAsk } from "@holdfast/terminal/secrets/supplied-secrets";
import { recordedRecord } from "./recorded-record.ts";

const LINE_CHARS = 500;

/** A session that has not ended, or a schedule, and what it may do. */
interface Brought {
  readonly what: string;
  readonly rights: readonly string[];
}

/** @returns the exit code. */
export async function trustSessions(args: Arguments, io: Io): Promise<number> {
  const database = findLocalDatabase(args, io);
  const brought = await withReader(database, async (reader) => reader && broughtBy(reader));
  if (brought === undefined)
    throw new NotFoundError("file_not_found", "there is no database", {
      at: database.path,
      fix: "sessions that you start here make one, and need no trust",
    });
  const wasOwn = await isOwnDatabase(database);
  for (const { what, rights } of wasOwn ? [] : brought)
    for (const line of [what, ...rights.map((right) => `  ${right}`)]) io.note(plainLine(line, LINE_CHARS));
  if (!wasOwn) {
    if (!args.has("yes")) await requireAgreement(database.path, brought.length, io);
    const { markDatabase } = await import("@holdfast/storage/sqlite");
    const { own } = database;
    if (own !== undefined) await markDatabase(database.path, own.mark);
  }
  if (!(await isOwnDatabase(database)))
    throw new HoldfastError(
      "config_invalid",
      "your data folder can hold no key, so no database can be trusted",
      {
        at: "XDG_DATA_HOME",
        expected: "a folder that you may write to",
        fix: "name one in XDG_DATA_HOME, or keep the database outside of the project with --db",
      },
    );
  io.show(
    { database: database.path, trusted: true, sessions: brought.length },
    `${database.path} is trusted, with ${count(brought.length, "session or schedule", "sessions and schedules")} that can go on`,
  );
  return 0;
}

/** @throws HoldfastError `policy_denied` without agreement. */
async function requireAgreement(path: string, brought: number, io: Io): Promise<void> {
  if (canAsk(io) && (await isAgreed(brought, io))) return;
  throw new HoldfastError("policy_denied", "the sessions of this database are not trusted", {
    at: path,
    expected: "a person who has read these rights and agrees",
    fix: "read the rights above, and then run `holdfast agents trust --sessions --yes`",
  });
}

async function isAgreed(brought: number, io: Io): Promise<boolean> {
  const asking = createInterface({ input: io.stdin, terminal: false });
  try {
    io.write(
      `Let ${count(brought, "session or schedule", "sessions and schedules")} go on with these rights? [y/N] `,
    );
    for await (const line of asking) return /^y(es)?$/i.test(line.trim());
    return false;
  } finally {
    asking.close();
  }
}

async function broughtBy(reader: StorageReader): Promise<readonly Brought[]> {
  const found: Brought[] = [];
  for await (const session of newestFirst(reader))
    if (!isEnded(session.status)) found.push(await ofSession(session, reader));
  for (const { scheduleId, cron, action } of await reader.schedules())
    found.push({
      what: `schedule ${scheduleId} (${cron})`,
      rights: [action.type === "start" ? `starts ${codeOf(action.agent)}` : `signals ${action.sessionId}`],
    });
  return found;
}

async function ofSession(session: Session, reader: StorageReader): Promise<Brought> {
  const { sessionId, agent, status } = session;
  const what = `session ${sessionId}: ${agent.name} (${status})`;
  const record = await recordedRecord(session, reader);
  if (record === undefined) return { what, rights: [`runs ${codeOf(agent)}`] };
  const { sandbox, permissions, hooks, mcpServers, tasks, secrets, variables } = record;
  const allowed = permissions
    .filter(({ decision }) => decision === "allow")
    .map(({ tool, pattern }) => (pattern === null ? tool : `${tool} ${pattern}`));
  const programs = hooks.map(({ run }) => (run.type === "command" ? run.command : `${run.type} ${run.name}`));
  const servers = Object.entries(mcpServers).map(([name, server]) => `${name} ${JSON.stringify(server)}`);
  const lines = [
    ["sandbox", sandbox === null ? [] : [sandbox]],
    ["calls without a question", allowed],
    ["hooks", programs],
    ["servers", servers],
    ["tasks", tasks],
    ["secrets and variables", [...secrets, ...variables]],
  ] as const;
  return {
    what,
    rights: lines.flatMap(([name, all]) => (all.length === 0 ? [] : [`${name}: ${all.join(", ")}`])),
  };
}

function codeOf({ name, file }: Session["agent"]): string {
  return file === undefined ? `the agent ${name}` : `the agent ${name} of ${file}`;
}
