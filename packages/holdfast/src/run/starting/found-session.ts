// `findStarted`: the session that a call of `run` continues, and the database with it.

import { existsSync } from "node:fs";
import { ConflictError, isEnded, type Session } from "@holdfast/core";
import { agentSourceText } from "@holdfast/machine/agent-source";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import {
  findUnfinished,
  isOfAgent,
  noteStack,
  placeOfExact,
  placeOfNewest,
  withReader,
} from "@holdfast/place/find-session";
import type { Database } from "@holdfast/place/project";
import type { LoadedAgent } from "../load-agent.ts";

/** The session and its place; the given database where no session is continued. */
export async function findStarted(
  given: Database,
  wanted: string | undefined,
  { agent, source }: LoadedAgent,
  args: Arguments,
  io: Io,
): Promise<{ readonly database: Database; readonly found: Session | null }> {
  if (wanted === undefined && !args.has("continue")) return { database: given, found: null };
  const file = agentSourceText(source);
  const isOwn = (session: Session): boolean => isOfAgent(session, agent.name, file);
  const database = await (wanted === undefined
    ? placeOfNewest(given, (one) => !isEnded(one.status) && isOwn(one))
    : placeOfExact(given, wanted));
  if (database !== given) noteStack(database, io);
  if (database.coordinator === undefined && !existsSync(database.path)) return { database, found: null };
  const session = await withReader(database, async (reader) =>
    wanted === undefined ? reader && findUnfinished(reader, isOwn) : reader?.session(wanted),
  );
  if (session === undefined && wanted === undefined)
    io.note(io.notes.paint.dim("no unfinished session of this agent: starting one"));
  if (session !== undefined && session.agent.name !== agent.name)
    throw new ConflictError("session_exists", `session ${wanted} belongs to another agent`, {
      got: `agent "${agent.name}" of ${file}`,
      expected: `agent "${session.agent.name}"${session.agent.file === undefined ? "" : ` of ${session.agent.file}`}`,
      fix: "choose another id",
    });
  return { database, found: session ?? null };
}
