// Finds the session that a command continues, and the agent that is recorded with it.

import { existsSync } from "node:fs";
import { defined, HoldfastError, NotFoundError, type Session } from "@holdfast/core";
import type { Agent } from "@holdfast/runtime";
import { refuse } from "@holdfast/terminal/frame/arguments";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { walkUp } from "@holdfast/terminal/view/session-tree";
import { findUnfinished, withReader, withReaderOf } from "@holdfast/place/find-session";
import { agentSourceText, programOf } from "@holdfast/machine/agent-source";
import type { AgentRecord } from "@holdfast/agents";
import { agentOfFile, loadAgent, type LoadedAgent } from "./load-agent.ts";
import { recordedRecord } from "./loading/recorded-record.ts";
import { requireOwnDatabase } from "@holdfast/place/own-database";
import type { Database } from "@holdfast/place/project";

/** The session of the id that is given, or with `--last` the newest that has not ended. */
export async function sessionOf(args: Arguments, database: Database): Promise<Session> {
  if (!args.has("last")) {
    return withReaderOf(database, args.positionals[0] ?? "", (session) => Promise.resolve(session));
  }
  if (args.positionals.length > 0)
    throw refuse("an id and --last exclude each other", args.usage, { fix: "give one of them" });
  const session = await withReader(database, async (reader) => reader && findUnfinished(reader));
  if (session !== undefined) return session;
  throw new NotFoundError("session_not_found", "there is no unfinished session", {
    at: database.path,
    fix: "run `holdfast list` to see all sessions, or `holdfast run FILE` to start one",
  });
}

/**
 * The agent of a recorded session: from the file of `--agent`, the session's own file, or the file of the
 * session that asked for it.
 */
export async function agentOf(session: Session, database: Database, args: Arguments, io: Io): Promise<Agent> {
  return (await loadedAgentOf(session, database, args, io)).agent;
}

/** The same agent with the record of its agent file. */
export async function loadedAgentOf(
  session: Session,
  database: Database,
  args: Arguments,
  io: Io,
): Promise<LoadedAgent> {
  await requireOwnDatabase(database); // The session names the code that is loaded here.
  const { name, version } = session.agent;
  const given = args.text("agent");
  const file = given ?? session.agent.file ?? (await fileAbove(session, database));
  const recorded = () => withReader(database, (reader) => recordedRecord(session, reader));
  let loaded: LoadedAgent;
  try {
    loaded = await loadAgent(file ?? refuseWithoutFile(session), {
      cwd: io.cwd,
      env: io.env,
      name,
      recorded,
      onSlow: () => io.note("the agent is still loading"),
    });
  } catch (error) {
    if (!HoldfastError.is(error) || error.code !== "file_not_found" || given !== undefined || !isGone(file))
      throw error;
    const record = await recorded();
    if (record?.name !== name) throw fileGone(error, session, io);
    loaded = await loadedFrom(record, io);
    io.note(
      `${io.notes.symbols.warn} ${agentSourceText(loaded.source)} is gone: the session continues with the agent as it was at its start`,
    );
  }
  reportVersion(loaded.agent.version, version, io);
  return loaded;
}

function isGone(file: string | undefined): boolean {
  return file !== undefined && programOf(file) === undefined && !existsSync(file);
}

/** The agent of an agent file that is gone, as its session has recorded it. */
async function loadedFrom(record: AgentRecord, io: Io): Promise<LoadedAgent> {
  const { cwd, env } = io;
  const choices = { isContinued: true, recorded: async () => record };
  const found = await agentOfFile(record, { cwd, env }, choices);
  return { ...found, source: { kind: "file", path: record.source.path } };
}

function fileGone(
  { code, message, at, expected }: HoldfastError,
  { sessionId, agent }: Session,
  io: Io,
): HoldfastError {
  return new HoldfastError(code, `session ${sessionId} needs the file of its agent: ${message}`, {
    ...defined({ at, expected }),
    fix: `put the file back, or name another one that has the agent "${agent.name}": \`${io.call(`resume ${sessionId} --agent FILE`)}\``,
  });
}

/** A child's agent comes with its parent's. */
async function fileAbove(session: Session, database: Database): Promise<string | undefined> {
  if (session.parent === undefined) return undefined;
  return withReader(database, async (reader) => {
    if (reader === undefined) return undefined;
    for await (const { agent } of walkUp(reader, session)) if (agent.file !== undefined) return agent.file;
    return undefined;
  });
}

function refuseWithoutFile({ sessionId, agent }: Session): never {
  throw new HoldfastError("agent_invalid", `session ${sessionId} was not started from a file`, {
    got: `agent "${agent.name}"`,
    expected: "the file that exports this agent",
    fix: "name it with --agent FILE",
  });
}

function reportVersion(now: string, then: string, io: Io): void {
  if (now === then) return;
  io.note(
    io.notes.paint.yellow(
      `${io.notes.symbols.warn} the session was started with version ${then} of its agent; the file has version ${now}`,
    ),
  );
}
