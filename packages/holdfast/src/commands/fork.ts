import { isSessionId } from "@holdfast/core";
import type { ForkOptions } from "@holdfast/runtime";
import { refuse, takeOnly } from "../frame/arguments.ts";
import type { Arguments, Command } from "../frame/command.ts";

export const fork: Command = {
  name: "fork",
  summary: "Make a session that begins as another one did, up to a point, and then continues independently",
  usage:
    "fork ID [--at N] [--input JSON|@file|-] [--tasks rerun|cancel] [--session NEW] [--run | --agent AGENT [--worktree] [--profile NAME]]",
  description:
    "Use a fork to continue after a failure, or to try something else from a point of a session. State, journal and conversation up " +
    "to the point are copied; signals, children and spend are not. The other session does not change, whether or not it has ended. " +
    "A session of an agent file with a workspace of its own forks with the files of its checkpoint; with a shared one the fork works in the same folder. " +
    "Without --at the point is the last checkpoint. Without a checkpoint, it is the last point before the session's end. " +
    "With --agent another agent goes on at once: its session begins with the recorded conversation as a text, and --input is its request.",
  options: {
    at: { help: "a position of the journal (`holdfast logs` shows them), or a checkpoint's", value: "N" },
    input: { help: "another input, at a checkpoint or at position 0", value: "JSON|@file|-" },
    tasks: {
      help: "do tasks that had no outcome there again (the default), or cancel them",
      value: "rerun|cancel",
    },
    session: { help: "an id of your own for the new session", value: "NEW" },
    run: { help: "run it at once, until it ends" },
    agent: {
      help: "let another agent go on with the conversation: an external agent, an agent file, or a file of code",
      value: "AGENT",
      excludes: ["at", "tasks"],
    },
    worktree: { help: "with --agent: the other agent works in a git worktree of its own" },
    profile: {
      help: "with --agent, for external agents: a profile of ~/.holdfast/profiles, or of .holdfast/profiles of the project",
      value: "NAME",
    },
  },
  examples: [
    ["fork ses_019a --run", "after a failure: continue from the last checkpoint"],
    ["fork ses_019a --at 12 --tasks cancel", "from position 12, without what was running then"],
    ["fork ses_019a --agent codex", "let Codex go on where another agent stopped"],
    [`fork ses_019a --at 0 --input '{"name": "Ada"}' --run`, "from the start, with another input"],
  ],

  async run(args, io) {
    const id = takeOnly(args.positionals, "the session's id", fork.usage);
    const wanted = wantedOf(args);
    const { readInput } = await import("../frame/input.ts");
    const given = args.text("input");
    const input = given === undefined ? {} : { input: await readInput(given, io) };
    const { findDatabase } = await import("../place/project.ts");
    const { findPlace, withReaderOf, withSession } = await import("../place/find-session.ts");
    const to = args.text("agent");
    if (to !== undefined) {
      const { handOver } = await import("../sessions/hand-over.ts");
      const wish = { id, to, request: input.input, sessionId: wanted.sessionId };
      return handOver(wish, await findPlace(findDatabase(args, io), args, io), args, io);
    }
    const ofHandOver = ["worktree", "profile"]
      .filter((option) => args.has(option))
      .map((name) => `--${name}`);
    if (ofHandOver.length > 0)
      throw refuse(`${ofHandOver.join(" and ")}: for a hand-over to another agent`, fork.usage, {
        fix: "name the agent with --agent; a fork keeps the agent and the workspace of its session",
      });
    const { agentOf } = await import("../run/recorded-agent.ts");
    const { createRuntime } = await import("@holdfast/runtime");
    const database = await findPlace(findDatabase(args, io), args, io);
    const origin = await withReaderOf(database, id, (session) => Promise.resolve(session));
    // Before anything is written: the agent says what its input may be.
    const isNeeded = args.has("run") || (given !== undefined && origin.agent.file !== undefined);
    const agent = isNeeded ? await agentOf(origin, database, args, io) : undefined;

    const { secretsFor } = await import("../secrets/agent-secrets.ts");
    const secrets = await secretsFor({ agents: agent === undefined ? [] : [agent] }, args, io);
    const made = await withSession(database, origin.sessionId, async (_session, { storage }) => {
      const agents = agent === undefined ? [] : [agent];
      const runtime = createRuntime({ storage, agents, adopt: false, development: false });
      try {
        const handle = await runtime.fork(origin.sessionId, { ...wanted, ...input, run: false });
        const session = await handle.session();
        const { forkFilesText } = await import("../agents/workspaces/fork-files.ts");
        const files = await forkFilesText(storage.reader, session);
        return { session, isNew: handle.created, files };
      } finally {
        await runtime.close();
      }
    });

    const { sessionId, fork: from } = made.session;
    const what = made.isNew ? "forked" : "was forked before";
    io.note(`${sessionId} ${what} from ${origin.sessionId} at ${from?.at ?? 0}`);
    if (made.files !== undefined) io.note(made.files);
    if (agent !== undefined && args.has("run")) {
      const { drive } = await import("../run/drive/drive.ts");
      return drive(
        {
          agent,
          sessionId,
          database,
          begin: (runtime) => runtime.resume(sessionId),
          runtime: { secrets },
          tracer: undefined,
          parks: false,
          readsStdin: given !== "-",
        },
        io,
      );
    }
    const resume = io.call(`resume ${sessionId}`);
    io.result(
      { sessionId, origin: origin.sessionId, at: from?.at ?? 0, created: made.isNew, resume },
      sessionId,
    );
    io.note(`continue with: ${resume}`);
    return 0;
  },
};

/** The options of the fork, checked as far as possible without the session. */
function wantedOf(args: Arguments): ForkOptions {
  const at = args.text("at");
  if (at !== undefined && !/^\d{1,15}$/.test(at))
    throw refuse("--at is not a position", fork.usage, { got: at, expected: "--at 0, 1, 2, ..." });
  const tasks = args.text("tasks");
  if (tasks !== undefined && tasks !== "rerun" && tasks !== "cancel")
    throw refuse("--tasks is neither rerun nor cancel", fork.usage, { got: tasks });
  const sessionId = args.text("session");
  if (sessionId !== undefined && !isSessionId(sessionId)) {
    throw refuse(`"${sessionId}" cannot be the id of a session`, fork.usage, {
      expected: "1 to 100 letters, digits, dots, dashes and underscores, starting with a letter or a digit",
    });
  }
  return {
    ...(at === undefined ? {} : { at: Number(at) }),
    ...(tasks === undefined ? {} : { tasks }),
    ...(sessionId === undefined ? {} : { sessionId }),
  };
}
