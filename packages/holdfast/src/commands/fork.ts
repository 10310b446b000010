import { defined, UsageError, type Session } from "@holdfast/core";
import { programOf } from "@holdfast/machine/agent-source";
import { externalAgentName } from "@holdfast/machine/external-agent-names";
import { createRuntime, type ForkOptions, type Runtime } from "@holdfast/runtime";
import { refuse } from "@holdfast/terminal/frame/arguments";
import { SESSION_ARGUMENT, type Arguments, type Command, type Io } from "@holdfast/terminal/frame/command";
import { readCall } from "../run/starting/prepare-start.ts";
import { findDatabase } from "@holdfast/place/project";
import { findPlace, withReaderOf, withSession } from "@holdfast/place/find-session";
import { agentOf } from "../run/recorded-agent.ts";
import { secretsFor } from "@holdfast/terminal/secrets/agent-secrets";
import { forkFilesText } from "../agents/workspaces/fork-files.ts";

export const fork: Command = {
  name: "fork",
  takes: [SESSION_ARGUMENT],
  description:
    "Use a fork to continue after a failure, or to try something else from a point of a session. State, journal and conversation up " +
    "to the point are copied; signals, children and spend are not. The other session does not change, whether or not it has ended. " +
    "A session of an agent file with a workspace of its own forks with the files of its checkpoint; with a shared one the fork works in the same folder. " +
    "A session of an external agent forks at position 0 alone, because its program keeps the conversation. " +
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
    budget: {
      help: "with --agent: what the new session may spend, in units of usd, tokens, steps, turns (default: as its agent file says)",
      value: "LIMITS",
    },
    ttl: {
      help: "with --agent: cancel the new session this long after its start, such as 10m",
      value: "TIME",
    },
  },
  examples: [
    ["fork ses_019a --run", "after a failure: continue from the last checkpoint"],
    ["fork ses_019a --at 12 --tasks cancel", "from position 12, without what was running then"],
    ["fork ses_019a --agent codex", "let Codex go on where another agent stopped"],
    [`fork ses_019a --at 0 --input '{"name": "Ada"}' --run`, "from the start, with another input"],
  ],

  async run(args, io) {
    const [id = ""] = args.positionals;
    const point = pointOf(args);
    const call = await readCall(args, { command: "fork" }, io);
    const wanted = {
      ...point,
      ...(args.has("input") ? { input: call.input } : {}),
      ...defined({ sessionId: call.wanted }),
    };
    const database = await findPlace(findDatabase(args, io), args, io);
    if (args.has("agent")) {
      const { handOver } = await import("../sessions/hand-over.ts");
      return handOver(id, call, database, args, io);
    }
    const origin = await withReaderOf(database, id, (session) => Promise.resolve(session));
    refuseProgram(origin, point, io);
    // Before anything is written: the agent says what its input may be.
    const isNeeded = args.has("run") || (args.has("input") && origin.agent.file !== undefined);
    const agent = isNeeded ? await agentOf(origin, database, args, io) : undefined;

    const secrets = await secretsFor({ agents: agent === undefined ? [] : [agent] }, args, io);
    const made = await withSession(database, origin.sessionId, async (_session, { storage }) => {
      const agents = agent === undefined ? [] : [agent];
      const runtime = createRuntime({ storage, agents, adopt: false, development: false });
      try {
        const handle = await runtime.fork(origin.sessionId, { ...wanted, run: false });
        const session = await handle.session();
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
      const { driveCall } = await import("../run/drive/drive-call.ts");
      const begin = (runtime: Runtime) => runtime.resume(sessionId);
      return driveCall({ agent, sessionId, database, begin, secrets }, args, io);
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

/**
 * A program keeps the conversation of its session itself, and only the first session can continue it.
 *
 * @throws UsageError for a session of an external agent that has begun at the point of the fork.
 */
function refuseProgram({ sessionId, agent }: Session, { at }: Pick<ForkOptions, "at">, io: Io): void {
  const program =
    programOf(agent.file) ?? (agent.file === undefined ? externalAgentName(agent.name, io) : undefined);
  if (program === undefined || at === 0) return;
  const again = [`fork ${sessionId} --agent ${agent.name}`, `fork ${sessionId} --at 0`].map((line) =>
    io.call(line),
  );
  throw new UsageError(`a fork cannot continue the conversation that ${agent.name} keeps itself`, {
    at: sessionId,
    got: at === undefined ? "its last checkpoint" : `position ${at}`,
    expected: "position 0, or --agent",
    fix: `let an agent go on with the recorded conversation: ${again[0]}. Or begin again from its input: ${again[1]}`,
  });
}

/** The point of the fork, checked as far as possible without the session. */
function pointOf(args: Arguments): Pick<ForkOptions, "at" | "tasks"> {
  const at = args.text("at");
  if (at !== undefined && !/^\d{1,15}$/.test(at))
    throw refuse("--at is not a position", args.usage, { got: at, expected: "--at 0, 1, 2, ..." });
  const tasks = args.text("tasks");
  if (tasks !== undefined && tasks !== "rerun" && tasks !== "cancel")
    throw refuse("--tasks is neither rerun nor cancel", args.usage, { got: tasks });
  return {
    ...(at === undefined ? {} : { at: Number(at) }),
    ...(tasks === undefined ? {} : { tasks }),
  };
}
