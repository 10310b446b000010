// `cleanUp`: carries out the end of a cancelled session that no process runs, where its agent is an external
// one.
//
// A remote task would go on, because the time that a graceful cancel gives passes without a process. Agents
// of code are not run: their files are the user's, and a cancel is not expected to load them.

import { HoldfastError, type Session } from "@holdfast/core";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { withStorage } from "@holdfast/place/find-session";
import { leaseOf, type Database } from "@holdfast/place/project";
import { programOf } from "@holdfast/machine/agent-source";
import { agentOf } from "./recorded-agent.ts";
import { createRuntime } from "@holdfast/runtime";

/** @returns whether the session has come to its end here. */
export async function cleanUp(
  session: Session,
  database: Database,
  args: Arguments,
  io: Io,
): Promise<boolean> {
  if (programOf(session.agent.file) === undefined) return false;
  try {
    const agent = await agentOf(session, database, args, io);
    return await withStorage(database, async ({ role, storage }) => {
      if (role !== "owner") return false;
      const runtime = createRuntime({ storage, agents: [agent], adopt: false, ...leaseOf(database) });
      try {
        await (await runtime.resume(session.sessionId)).settled();
        return true;
      } finally {
        await runtime.close();
      }
    });
  } catch (error) {
    if (!HoldfastError.is(error)) throw error;
    return false; // The program or its profile is gone. The command says how to end the session.
  }
}
