import { defined } from "@holdfast/core";
import { refuse } from "@holdfast/terminal/frame/arguments";
import {
  DETACH_OPTION,
  GRACE_OPTION,
  SECRET_STDIN_OPTION,
  TRACE_OPTION,
  VERBOSE_OPTION,
  type Arguments,
  type Command,
  type Io,
  ENV_OPTION,
  ENV_REF_OPTION,
} from "@holdfast/terminal/frame/command";
import { findDatabase } from "@holdfast/place/project";
import { runInBackground } from "../run/background.ts";
import { findStarted } from "../run/starting/found-session.ts";
import { loadStarted, readCall } from "../run/starting/prepare-start.ts";
import { start } from "../run/starting/start.ts";
import { planStart, type StartFacts } from "../run/starting/start-plan.ts";
import { SCRIPTED_OPTIONS, withScriptedModel } from "../run/starting/scripted-model.ts";

export const run: Command = {
  name: "run",
  takes: [
    { name: "FILE|AGENT", is: "the agent's file, or --agent NAME", orOption: "agent" },
    { name: "TEXT", is: "the text", optional: true, ifMore: "put the text in quotes" },
  ],
  description:
    "Starts a session of the agent that FILE exports, or of an agent file, and stays until it ends. An agent file is named by its path, or " +
    "by the name of its agent (`holdfast agents list`), and TEXT is its input. Kill it at any moment: `holdfast resume` continues " +
    "the session from its last commit. With --url the session is stored at a coordinator. The session and its children then run " +
    "in this process and ignore label demands. A runner that offers the agent may claim the session first. With --agent NAME only " +
    "runners run the session, as its demands say. This process then follows the session: killing this process stops nothing. The " +
    "output goes to standard output, everything else to standard error. Lines of standard input are signals: " +
    '{"name": "go", "payload": {}}, or text, which is the payload of a signal named "input".',
  options: {
    agent: {
      help: "instead of FILE: an agent that a coordinator's runners offer and run",
      value: "NAME",
      excludes: ["continue", "ephemeral", "trace", "db"],
    },
    demand: {
      help: "with --agent: a label that its runner must have; may be given more than once",
      value: "NAME=VALUE",
      repeats: true,
    },
    input: { help: "the agent's input: JSON, @file, or - for standard input", value: "JSON|@file|-" },
    session: {
      help: "an id of your own; a second run with this id continues the same session",
      value: "ID",
      excludes: ["continue"],
    },
    title: {
      help: "one line about the session for people (default: the first line of its input)",
      value: "TEXT",
      excludes: ["continue"],
    },
    continue: { help: "continue the newest unfinished session of this agent, if there is one" },
    budget: {
      help: "what the session and its children may spend, in units of usd, tokens, steps, turns, in all or per window (0.50usd/day); at the limit it is paused",
      value: "LIMITS",
    },
    ttl: { help: "cancel it this long after its start: 90s, 10m, 1h30m", value: "TIME" },
    "strict-bounds": {
      help: "refuse an agent in the turn form unless --budget or --ttl bounds it (otherwise: a warning); with --agent, any agent",
    },
    trace: TRACE_OPTION,
    "secret-stdin": { ...SECRET_STDIN_OPTION, excludes: ["agent"] },
    grace: GRACE_OPTION,
    verbose: VERBOSE_OPTION,
    detach: { ...DETACH_OPTION, excludes: ["agent", "ephemeral", "continue", "secret-stdin", "park"] },
    park: {
      help: "exit as soon as the session waits and nothing below it runs here: the session's id goes to standard output, the exit code is 0 or that of a paused session",
      excludes: ["ephemeral"],
    },
    persistence: {
      help: "minimal: store only the session's status, and restart it from scratch after a crash (default: full)",
      value: "full|minimal",
      excludes: ["ephemeral"],
    },
    ephemeral: { help: "keep nothing: the session lives in memory", excludes: ["continue", "db"] },
    env: { ...ENV_OPTION, excludes: ["continue"] },
    "env-ref": { ...ENV_REF_OPTION, excludes: ["continue"] },
    "resume-at-reset": {
      help: "for agent files and external agents: when a usage limit pauses the session, it continues by itself at the reset",
      excludes: ["agent", "continue"],
    },
    profile: {
      help: "for external agents: a profile of ~/.holdfast/profiles, or of .holdfast/profiles of the project",
      value: "NAME",
      excludes: ["agent", "continue"],
    },
    worktree: {
      help: "for agent files and external agents: work in a git worktree of its own (`holdfast diff ID`, `holdfast merge ID`)",
      excludes: ["agent", "continue"],
    },
    sandbox: {
      help: "for agent files and external agents: the sandbox that it works in (`holdfast doctor` lists them)",
      value: "NAME",
      excludes: ["agent", "continue"],
    },
    conversation: {
      help: "for agent files and external agents: after its answer the session waits for the next request, and the command prints the session's id and ends",
      excludes: ["agent", "continue", "ephemeral"],
    },
    local: { help: "run it in this process, also when the local stack runs", excludes: ["agent"] },
    ...SCRIPTED_OPTIONS,
  },
  examples: [
    [`run hello.ts --input '{"name": "Ada"}'`, "run an agent"],
    [
      "run plan.ts --budget 5.00usd,200000tokens,50steps --ttl 10m",
      "run it within limits (exit code 9 when one is reached)",
    ],
    [
      `run --agent deploy --input '{"version": "1.2.0"}' --demand zone=eu --url https://fleet.example`,
      "let a coordinator's runner run it, and follow it",
    ],
    [`run reviewer "look at the last commit"`, "run the agent of an agent file"],
    [`run reviewer "look at the last commit" --scripted`, "try it without a model and without a key"],
    [
      `run claude-code "fix the failing test"`,
      "let the Claude Code of this machine work in this folder, or opencode, or gemini",
    ],
    [
      `run claude-code "fix the failing test" --worktree`,
      "the same on a branch of its own; `holdfast merge ID` takes the work over",
    ],
    [
      `run claude-code "fix issue 7" --worktree --conversation`,
      "the same, and the build that fails goes back to it: `holdfast signal ID ci @build.log`",
    ],
    [
      `run claude-code "fix the failing test" --worktree -d`,
      "the same in the background: `holdfast attach ID` shows it, `holdfast inbox` what it asks",
    ],
    ["run deploy.ts --park", "run it until it waits"],
    ["run review.ts --session review-42", "safe to repeat: the same id is the same session"],
  ],

  run: (args, io) => withScriptedModel(args, io, () => runAgent(args, io)),
};

async function runAgent(args: Arguments, io: Io): Promise<number> {
  const [path, text] = args.positionals;
  if (args.has("agent") && path !== undefined)
    throw refuse(`"${path}" is one argument too many`, args.usage, { fix: "give the input by --input" });
  const call = await readCall(args, { command: "run", text }, io);
  const given = args.has("ephemeral") ? undefined : findDatabase(args, io);
  if (args.has("detach") && path !== undefined && given !== undefined) {
    const { sessionId, input } = call;
    const { options } = run;
    // Other users of the machine see the arguments of a process, so the input is none.
    return runInBackground(
      { command: "run", options, words: [path], sessionId, ...defined({ input }) },
      args,
      io,
    );
  }
  const plan = (facts: Pick<StartFacts, "loaded" | "found" | "database">) =>
    start(planStart(args, { ...call, ...facts }), args, io);
  if (path === undefined) return plan({ loaded: undefined, found: null, database: given });
  const loaded = await loadStarted(path, args, call, io);
  if (given === undefined) return plan({ loaded, found: null, database: undefined });
  return plan({ loaded, ...(await findStarted(given, call.wanted, loaded, args, io)) });
}
