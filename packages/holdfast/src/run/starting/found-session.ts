// The session that a call of `run` continues, and the database with it (`findStarted`, `findPlaceOf`).

import { ConflictError, isEnded, type Session } from "@holdfast/core";
import type { Agent } from "@holdfast/runtime";
import type { Arguments, Io } from "../../frame/command.ts";
import type { Database } from "../../place/project.ts";

interface Sought {
  readonly args: Arguments;
  readonly io: Io;
  readonly agent: Agent;
  readonly file: string;
  readonly wanted: string | undefined;
}

/** Where the session is that this call continues; the given database when there is none. */
export async function findPlaceOf(
  database: Database,
  { args, io, agent, file, wanted }: Sought,
): Promise<Database> {
  const { stack } = database;
  if (stack === undefined || (wanted === undefined && !args.has("continue"))) return database;
  const { isOfAgent, noteStack, placeOfExact, placeOfNewest } = await import("../../place/find-session.ts");
  const place =
    wanted === undefined
      ? await placeOfNewest(database, (one) => !isEnded(one.status) && isOfAgent(one, agent.name, file))
      : await placeOfExact(database, wanted);
  if (place === stack) noteStack(stack, io);
  return place;
}

/** The session that this call continues, if there is one. */
export async function findStarted(
  database: Database,
  { args, io, agent, file, wanted }: Sought,
): Promise<Session | undefined> {
  if (wanted === undefined && !args.has("continue")) return undefined;
  const { findUnfinished, isOfAgent, withReader } = await import("../../place/find-session.ts");
  const { existsSync } = await import("node:fs");
  if (database.coordinator === undefined && !existsSync(database.path)) return undefined;
  return withReader(database, async (reader) => {
    if (wanted === undefined) {
      const session =
        reader && (await findUnfinished(reader, (candidate) => isOfAgent(candidate, agent.name, file)));
      if (session === undefined)
        io.note(io.notes.paint.dim("no unfinished session of this agent: starting one"));
      return session;
    }
    const session = await reader?.session(wanted);
    if (session !== undefined && session.agent.name !== agent.name) {
      throw new ConflictError("session_exists", `session ${wanted} belongs to another agent`, {
        got: `agent "${agent.name}" of ${file}`,
        expected: `agent "${session.agent.name}"${session.agent.file === undefined ? "" : ` of ${session.agent.file}`}`,
        fix: "choose another id",
      });
    }
    return session;
  });
}
