import {
  encodeJson,
  HoldfastError,
  isEnded,
  isSessionId,
  mintId,
  UsageError,
  ConflictError,
  validate,
  type Session,
} from "@holdfast/core";
import type { AgentRecord, GivenEnvironment } from "@holdfast/agents";
import type { Agent, Runtime, StartOptions } from "@holdfast/runtime";
import { graceOf, refuse, takeNothing, takeOnly } from "../frame/arguments.ts";
import {
  GRACE_OPTION,
  SECRET_STDIN_OPTION,
  TRACE_OPTION,
  type Arguments,
  type Command,
  type Io,
} from "../frame/command.ts";
import { quoted } from "../frame/plain-text.ts";
import {
  askedWorkspace,
  inputOf,
  overridesOf,
  profileIn,
  refuseForFound,
  START_OPTIONS,
  withOptions,
} from "../run/loading/external-input.ts";
import { parksOf } from "../run/drive/parks.ts";
import type { Database } from "../place/project.ts";
import { randomU32 } from "../frame/random.ts";

export const run: Command = {
  name: "run",
  summary: "Run an agent until its session ends",
  usage:
    "run FILE|AGENT [TEXT]|--agent NAME [--input JSON|@file|-] [--session ID] [--budget LIMITS] [--ttl TIME] [--strict-bounds] [--persistence full|minimal] [--ephemeral] [--trace WHERE] [--park] [--continue] [--demand NAME=VALUE...] [--env KEY=VALUE...] [--env-ref NAME...] [--resume-at-reset] [--worktree] [--sandbox NAME] [--profile NAME] [--conversation]",
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
    env: {
      help: "a variable for the commands of an agent file that declares it; may be given more than once, not for secrets",
      value: "KEY=VALUE",
      repeats: true,
      excludes: ["agent", "continue"],
    },
    "env-ref": {
      help: "an environment, after those that the agent file names; may be given more than once (`holdfast env list`)",
      value: "NAME",
      repeats: true,
      excludes: ["agent", "continue"],
    },
    ...START_OPTIONS,
    local: { help: "run it in this process, also when the local stack runs", excludes: ["agent"] },
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
    ["run deploy.ts --park", "run it until it waits"],
    ["run review.ts --session review-42", "safe to repeat: the same id is the same session"],
  ],

  async run(args, io) {
    const name = args.text("agent");
    if (name !== undefined) takeNothing(args.positionals, run.usage);
    else if (args.has("demand"))
      throw refuse("--demand is for sessions that runners run", run.usage, {
        fix: "give --agent NAME in place of the file; this process ignores demands for the sessions that it runs",
      });
    const wanted = args.text("session");
    if (wanted !== undefined && !isSessionId(wanted)) {
      throw new UsageError(`"${wanted}" cannot be the id of a session`, {
        at: "--session",
        expected: "1 to 100 letters, digits, dots, dashes and underscores, starting with a letter or a digit",
      });
    }
    const persistence = persistenceOf(args);
    const givenLimits = await readLimits(args);
    if (name !== undefined) {
      const { runByName } = await import("../run/run-by-name.ts");
      return runByName(
        { name, wanted, options: { ...givenLimits, ...persistence, ...callersTrace(io) } },
        args,
        io,
      );
    }
    const [path, text] = takePathAndText(args);
    const { readInput } = await import("../frame/input.ts");
    const { loadAgent } = await import("../run/load-agent.ts");
    const environment = await environmentOf(args);
    const given = args.text("input");
    const { refuseSecondStdin, secretsFor } = await import("../secrets/agent-secrets.ts");
    refuseSecondStdin(args, given === "-" ? "--input -" : undefined);
    const plainInput = given === undefined ? text : await readInput(given, io);
    const profile = args.text("profile") ?? profileIn(plainInput);
    const {
      agent,
      file,
      record,
      notes = [],
    } = await loadAgent(path, {
      cwd: io.cwd,
      env: io.env,
      given: environment,
      resumesAtReset: args.has("resume-at-reset"),
      overrides: overridesOf(args),
      profile,
      onSlow: () => io.note(`${path} is still being loaded`),
    });
    const isExternal = file.startsWith("external:");
    const input = inputOf(plainInput, args, { agent: agent.name, isExternal, record });
    for (const note of notes) io.note(`${io.notes.symbols.warn} ${note}`);
    if (record !== undefined)
      (await import("../agents/workspaces/isolation-note.ts")).noteIsolation(record, io);
    if (text !== undefined && record === undefined && agent.input === undefined)
      throw refuse(`"${text}" is one argument too many`, run.usage, {
        got: `a text for agent "${agent.name}", which has no input schema`,
        fix: "give the input by --input",
      });
    const { findDatabase, findStrictBounds, findTraces } = await import("../place/project.ts");
    const database = args.has("ephemeral") ? undefined : findDatabase(args, io);

    const limits = { ...limitsOf(record), ...givenLimits };
    const place =
      database === undefined ? undefined : await findPlaceOf(database, { args, io, agent, file, wanted });
    const found =
      place === undefined ? undefined : await findStarted(place, { args, io, agent, file, wanted });
    // The input is checked before anything is written. The schema's result is recorded.
    const isGiven = given !== undefined || text !== undefined;
    if (found === undefined || isGiven) {
      const valid = await validInput(agent, input, !isGiven, path, io);
      if (found !== undefined && encodeJson(valid, "the input") !== found.input)
        throw otherInput(found, given ?? text);
    } else refuseForFound(args, found.sessionId);

    const ofFiles = [
      ...(environment === undefined ? [] : ["--env", "--env-ref"]),
      ...(args.has("resume-at-reset") && !isExternal ? ["--resume-at-reset"] : []),
      ...(args.has("worktree") && !isExternal ? ["--worktree"] : []),
      ...(args.has("sandbox") && !isExternal ? ["--sandbox"] : []),
    ].join(" and ");
    if (ofFiles !== "")
      refuseForFiles(ofFiles, { isFile: record !== undefined, isExternal, isFound: found !== undefined });
    if (found !== undefined && isEnded(found.status)) {
      const { showEndedBefore } = await import("../view/session-end.ts");
      return showEndedBefore(found, io);
    }
    const { followInStack, stackThatRuns } = await import("../run/stack-run.ts");
    if (found !== undefined && place !== undefined) {
      const followed = await followInStack(found, place, args, io);
      if (followed !== undefined) return followed;
    } else if (stackThatRuns(agent, file, database, args, io) !== undefined) {
      // An input schema may not know the field.
      const resumes = ofFiles === "--resume-at-reset" && record?.inputSchema === null;
      const forStack = resumes ? withOptions(input, { resumeAtReset: true }) : input;
      if (ofFiles !== "" && !resumes)
        throw refuse(
          `the local stack would run this session, and does not get ${ofFiles} of this call`,
          run.usage,
          {
            fix: "give --local, or set the variables (`holdfast env set`) and the fields of the agent file",
          },
        );
      const { runByName } = await import("../run/run-by-name.ts");
      const options = { ...limits, ...persistence, ...callersTrace(io) };
      return runByName({ name: agent.name, wanted, input: forStack, options }, args, io);
    }
    const secrets = await secretsFor({ agents: [agent] }, args, io);
    const sessionId = found?.sessionId ?? wanted ?? mintId("ses", Date.now(), randomU32);
    const workspace = isExternal ? askedWorkspace(input) : record?.workspace;
    const inWorktree = workspace === "worktree";
    if (inWorktree && found === undefined) {
      const { noteUncommitted } = await import("../agents/workspaces/uncommitted-work.ts");
      await noteUncommitted(io);
    }
    if (
      place !== undefined &&
      (record !== undefined || (isExternal && workspace !== "empty")) &&
      !inWorktree
    ) {
      const { noteSharedFolder } = await import("../agents/workspaces/shared-folder.ts");
      await noteSharedFolder({ sessionId, file, record, place }, io);
    }
    const { wantedTracer } = await import("../tracing/wanted-tracer.ts");
    const tracer = await wantedTracer(findTraces(args, io), io);
    const { drive } = await import("../run/drive/drive.ts");
    return drive(
      {
        agent,
        sessionId,
        database: place,
        begin: (runtime) =>
          startOrResume(
            runtime,
            agent,
            input,
            { sessionId, file, ...limits, ...persistence, ...callersTrace(io) },
            found !== undefined,
          ),
        isBudgeted: limits.budget !== undefined,
        runtime: { strictBounds: findStrictBounds(args, io).value, secrets },
        tracer,
        parks: parksOf(args),
        ...(await graceOf(args)),
        readsStdin: given !== "-" && !args.has("secret-stdin"),
      },
      io,
    );
  },
};

async function environmentOf(args: Arguments): Promise<GivenEnvironment | undefined> {
  if (!args.has("env") && !args.has("env-ref")) return undefined;
  return (await import("../environments/given-environment.ts")).givenEnvironment(args, run.usage);
}

/** @param options the names of options that say something about an agent file. */
function refuseForFiles(
  options: string,
  { isFile, isExternal, isFound }: Readonly<Record<"isFile" | "isExternal" | "isFound", boolean>>,
): void {
  if (isExternal)
    throw refuse(`${options}: for agent files, and this is an external agent`, run.usage, {
      fix: "name the variables of your environment that its program gets in a profile (`variables`, `keys`), and give --profile",
    });
  if (!isFile)
    throw refuse(`${options}: for agent files, and this agent is code`, run.usage, {
      fix: "leave it out; an agent of code declares `secrets`, and has its own input",
    });
  if (isFound)
    throw refuse(
      "the session exists already, and keeps the variables and the agent of its start",
      run.usage,
      {
        fix: `leave ${options} out, or start another session`,
      },
    );
}

interface Wanted {
  readonly args: Arguments;
  readonly io: Io;
  readonly agent: Agent;
  readonly file: string;
  readonly wanted: string | undefined;
}

/** Where the session is that this call continues; the given database when there is none. */
async function findPlaceOf(database: Database, { args, io, agent, file, wanted }: Wanted): Promise<Database> {
  const { stack } = database;
  if (stack === undefined || (wanted === undefined && !args.has("continue"))) return database;
  const { isOfAgent, noteStack, placeOfExact, placeOfNewest } = await import("../place/find-session.ts");
  const place =
    wanted === undefined
      ? await placeOfNewest(database, (one) => !isEnded(one.status) && isOfAgent(one, agent.name, file))
      : await placeOfExact(database, wanted);
  if (place === stack) noteStack(stack, io);
  return place;
}

/** The session that this call continues, if there is one. */
async function findStarted(
  database: Database,
  { args, io, agent, file, wanted }: Wanted,
): Promise<Session | undefined> {
  if (wanted === undefined && !args.has("continue")) return undefined;
  const { findUnfinished, isOfAgent, withReader } = await import("../place/find-session.ts");
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

/**
 * The schema's result for the input. Without an input, the error explains that one is needed and how to give
 * it.
 */
async function validInput(
  agent: Agent,
  input: unknown,
  isMissing: boolean,
  path: string,
  io: Io,
): Promise<unknown> {
  try {
    return await validate(agent.input, input, `input of agent "${agent.name}"`, "invalid_input");
  } catch (error) {
    if (!isMissing || !HoldfastError.is(error)) throw error;
    throw new HoldfastError("invalid_input", `agent "${agent.name}" needs an input, and none was given`, {
      expected: error.message,
      fix: `give it: ${io.call(`run ${quoted(path)} --input '{…}'`)}, or a text: ${io.call(`run ${quoted(path)} "…"`)}`,
      cause: error,
    });
  }
}

function otherInput({ sessionId, input }: Session, given: string | undefined): ConflictError {
  return new ConflictError("session_exists", `session ${sessionId} was started with another input`, {
    ...(given === undefined ? {} : { got: given }),
    expected: input ?? "no input",
    fix: "leave --input out to continue it, or start another session",
  });
}

async function startOrResume(
  runtime: Runtime,
  agent: Agent,
  input: unknown,
  options: StartOptions & { readonly sessionId: string },
  isStarted: boolean,
) {
  if (isStarted) return runtime.resume(options.sessionId);
  const handle = await runtime.start(agent, input, options);
  return handle.created ? handle : runtime.resume(options.sessionId);
}

function persistenceOf(args: Arguments): { readonly persistence?: "full" | "minimal" } {
  const persistence = args.text("persistence");
  if (persistence === undefined) return {};
  if (persistence === "full" || persistence === "minimal") return { persistence };
  throw refuse("--persistence is neither full nor minimal", run.usage, {
    got: persistence,
    fix: "use --ephemeral for a session that need not survive its process",
  });
}

/** The file or name of the agent, and a text as its input. */
function takePathAndText(args: Arguments): readonly [path: string, text: string | undefined] {
  const [path, text, ...rest] = args.positionals;
  if (text === undefined || rest.length > 0)
    return [takeOnly(args.positionals, "the agent's file, or --agent NAME", run.usage), undefined];
  if (args.has("input"))
    throw refuse("a text and --input exclude each other", run.usage, {
      got: quoted(text),
      fix: "give one of them",
    });
  return [path ?? "", text];
}

/** The limits that an agent file sets. The options of the call override them. */
function limitsOf(record: AgentRecord | undefined): Pick<StartOptions, "budget" | "timeoutMs"> {
  if (record === undefined) return {};
  const { budget, ttlMs, isConversation } = record;
  return {
    ...(budget === null ? {} : { budget }),
    // A conversation waits this long for its next request.
    ...(ttlMs === null || isConversation ? {} : { timeoutMs: ttlMs }),
  };
}

/** The limits of a session that is started. A session that is continued keeps its own. */
async function readLimits(args: Arguments): Promise<Pick<StartOptions, "budget" | "timeoutMs">> {
  if (!args.has("budget") && !args.has("ttl")) return {};
  return (await import("../view/budget-text.ts")).readLimits(args);
}

/** The trace of the calling process, which passes it in the environment as it does to other commands. */
function callersTrace({ env }: Io): { readonly traceparent?: string } {
  const traceparent = env["TRACEPARENT"];
  return traceparent !== undefined && /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.test(traceparent)
    ? { traceparent }
    : {};
}
