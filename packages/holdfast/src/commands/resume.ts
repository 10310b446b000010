import { HoldfastError, isEnded, NotFoundError, type Session } from "@holdfast/core";
import { refuse, takeNothing, takeOnly } from "../arguments.ts";
import type { Arguments, Command, Io } from "../command.ts";
import type { Database } from "../project.ts";

export const resume: Command = {
  name: "resume",
  summary: "Go on with a session that no process is running",
  usage: "resume ID|--last [--agent FILE] [--accept-drift] [--park]",
  description:
    "Loads the session's agent from the file it was started from and goes on where the last commit left it. What was recorded " +
    "is not done again. A session that has ended only tells its result.",
  options: {
    last: { help: "the newest session that has not ended" },
    agent: { help: "load the agent from another file", value: "FILE" },
    "accept-drift": { help: "recorded results stand although the agent now asks with other inputs" },
    park: { help: "leave as soon as the session waits, with exit code 0" },
  },
  examples: [
    ["resume ses_019a", "the beginning of an id will do, if only one begins like it"],
    ["resume --last", "whatever was interrupted last"],
    ["resume ses_019a --agent fixed.ts --accept-drift", "go on with corrected code"],
  ],

  async run(args, io) {
    const { findDatabase } = await import("../project.ts");
    const { loadAgent } = await import("../load-agent.ts");
    const database = findDatabase(args, io);
    const session = await sessionOf(args, database);
    if (isEnded(session.status)) {
      const { tellEndedBefore } = await import("../session-end.ts");
      return tellEndedBefore(session, io);
    }
    const { name, version } = session.agent;
    const { agent } = await loadAgent(fileOf(session, args), {
      cwd: io.cwd,
      name,
      onSlow: () => io.note("the agent is still being loaded"),
    });
    tellVersion(agent.version, version, io);
    const { sessionId } = session;
    const acceptDrift = args.has("accept-drift");
    const { drive } = await import("../drive.ts");
    return drive(
      {
        agent,
        sessionId,
        database,
        begin: (runtime) => runtime.resume(sessionId, { acceptDrift }),
        parks: args.has("park"),
        readsStdin: true,
      },
      io,
    );
  },
};

async function sessionOf(args: Arguments, database: Database): Promise<Session> {
  const { findUnfinished, withReader, withReaderOf } = await import("../find-session.ts");
  if (!args.has("last")) {
    const id = takeOnly(args.positionals, "the session (its id, or --last)", resume.usage);
    return withReaderOf(database, id, (session) => Promise.resolve(session));
  }
  if (args.positionals.length > 0)
    throw refuse("an id and --last exclude each other", resume.usage, { fix: "give one of them" });
  takeNothing(args.positionals, resume.usage);
  const session = await withReader(database, async (reader) => reader && findUnfinished(reader));
  if (session !== undefined) return session;
  throw new NotFoundError("session_not_found", "there is no unfinished session", {
    at: database.path,
    fix: "`holdfast list` shows all sessions; `holdfast run FILE` starts one",
  });
}

function fileOf({ sessionId, agent }: Session, args: Arguments): string {
  const file = args.text("agent") ?? agent.file;
  if (file !== undefined) return file;
  throw new HoldfastError("agent_invalid", `session ${sessionId} was not started from a file`, {
    got: `agent "${agent.name}"`,
    expected: "the file that exports this agent",
    fix: "name it with --agent FILE",
  });
}

function tellVersion(now: string, then: string, io: Io): void {
  if (now === then) return;
  io.note(
    io.notes.paint.yellow(
      `${io.notes.symbols.warn} the session was started with version ${then} of its agent; the file has version ${now}`,
    ),
  );
}
