// `holdfast local start`: checks what was asked for, and starts a supervisor that stays when this command
// ends.
//
//   - When several starts happen at once, one of them gets the lock of the folder. The others say which
//     process has it.
//   - The command returns when everything is ready, or when the first process has failed. It then ends with
//     the error of that process.
//   - A person who removes the folder removes its lock, and another start gets a new one. The supervisor of
//     the removed lock therefore ends at once, with its processes. Sessions continue with the next start.

import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { closeSync, existsSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { clearInterval, setInterval } from "node:timers";
import {
  ConflictError,
  defined,
  HoldfastError,
  NotFoundError,
  STOP_GRACE_MS,
  UsageError,
} from "@holdfast/core";
import {
  INHERITED_VARIABLES,
  keyVariables,
  makePrivateFolder,
  openPrivateAppend,
  withHandedKeys,
} from "@holdfast/system";
import { programOf } from "@holdfast/machine/agent-source";
import { lockFile } from "@holdfast/storage/lock-file";
import { graceOf } from "@holdfast/terminal/frame/arguments";
import { STOP_EXIT, type Arguments, type Io, type StopSignal } from "@holdfast/terminal/frame/command";
import {
  errorOf,
  reportedError,
  shownError,
  type ReportedError,
} from "@holdfast/terminal/frame/command-error";
import { duration } from "@holdfast/terminal/frame/plain-text";
import { isFolder } from "@holdfast/terminal/frame/given-file";
import { readStackState, stackPaths, type StackPaths, type StackState } from "@holdfast/place/local-stack";
import { findFleetMode } from "@holdfast/place/mode";
import { findProject } from "@holdfast/place/project";
import { answerTo, StackSecrets, supplyByLauncher, type SecretsQuestion } from "./stack-secrets.ts";
import { reportStack } from "./stack-text.ts";
import { suppliedFor } from "@holdfast/terminal/secrets/agent-secrets";
import { StackLog } from "./stack-log.ts";
import { Supervisor, type StackPlan } from "./supervisor.ts";
import { agentPlaces } from "../agents/agent-places.ts";
import { filesOf, namedAgents } from "../agents/named-agents.ts";
import { PORT } from "@holdfast/place/coordinator-access";

const LOCK_WATCH_MS = 250;
/** A small space of young objects saves ten megabytes in each process of a stack that is mostly idle. */
const MEMORY_FLAG = "--max-semi-space-size=1";
/** A coordinator runs no code of agents, so it gets no key of theirs. */
const COORDINATOR_VARIABLES = [
  ...INHERITED_VARIABLES,
  "LC_ALL",
  "LC_CTYPE",
  "TZ",
  "XDG_DATA_HOME",
  "XDG_CONFIG_HOME",
  "XDG_RUNTIME_DIR",
  "NODE_OPTIONS",
  "NODE_COMPILE_CACHE",
  "SANDBOX_ROOT_DIR",
];
/** They name another coordinator than the stack's. */
const FOREIGN_VARIABLES = ["HOLDFAST_URL", "AGENT_ORCHESTRATOR_API_URL", "HOLDFAST_TOKEN", "HOLDFAST_DB"];

/** The supervisor's answer to the command that started it. */
type Answer =
  | SecretsQuestion
  | { readonly type: "ready"; readonly state: StackState }
  | { readonly type: "failed"; readonly error: ReportedError };

/** @returns the exit code. */
export async function startStack(args: Arguments, io: Io): Promise<number> {
  if (findFleetMode(args, io) === "cloud")
    io.note("mode cloud is for fleets: the local stack runs in mode local");
  const plan = await planOf(args, io);
  const paths = stackPaths(io);
  makePrivateFolder(paths.folder);
  if (args.has("foreground")) return supervise(plan, paths, args, io);
  const state = await startDetached(args, paths, io);
  reportStack(state, paths, io);
  return 0;
}

/** @throws UsageError and NotFoundError, before anything is started. */
export async function planOf(args: Arguments, io: Io): Promise<StackPlan> {
  const tasks = filesOf(args, "tasks", io);
  const [executorPath] = filesOf(args, "executor-path", io);
  const [policy] = filesOf(args, "policy", io);
  const executorName = args.text("executor");
  const executor =
    executorPath !== undefined
      ? (["--executor-path", executorPath] as const)
      : executorName === undefined
        ? undefined
        : (["--executor", executorName] as const);
  const given = args.text("project");
  const project = given === undefined ? findProject(io) : resolve(io.cwd, given);
  if (!isFolder(project))
    throw new NotFoundError("file_not_found", `there is no folder ${given ?? project}`, { at: "--project" });
  const named = await namedAgents(args, project, io);
  const isNamed = named.length + tasks.length > 0 || executor !== undefined;
  const agents = isNamed ? named : await foundAgents(project, io);
  const env = Object.fromEntries(
    Object.entries(io.env).filter(([name]) => !FOREIGN_VARIABLES.includes(name)),
  );
  const { graceMs = STOP_GRACE_MS } = graceOf(args);
  return {
    program: [process.execPath, ...process.execArgv, process.argv[1]!],
    env: {
      coordinator: {
        ...Object.fromEntries(COORDINATOR_VARIABLES.map((name) => [name, env[name]])),
        HOLDFAST_MODE: "local",
      },
      runner: { ...env, HOLDFAST_MODE: "local" },
    },
    keys: io.keys.handed,
    port: portOf(args.text("port")),
    project,
    agents,
    tasks,
    graceMs,
    ...defined({ executor, policy }),
    marker: `stack-${createHash("sha256").update(stackPaths(io).folder).digest("hex").slice(0, 16)}`,
  };
}

/** Without options: the agents of the last start here, and the agent files of the project and of the user. */
async function foundAgents(project: string, io: Io): Promise<readonly string[]> {
  const last = readStackState(stackPaths(io));
  const former =
    last?.project === project
      ? last.agents.filter((agent) => programOf(agent) !== undefined || existsSync(agent))
      : [];
  const { listAgents } = await import("@holdfast/agents");
  const found = listAgents(agentPlaces(io, { project })).flatMap(({ status, record }) =>
    status === "loaded" && record !== null ? [record.source.path] : [],
  );
  const agents = [...new Set([...former, ...found])];
  if (agents.length === 0)
    io.note(
      "no agents are here yet: add one with `holdfast agents new NAME`, or push one with `holdfast push`; " +
        "then `holdfast local stop` and `holdfast local start`",
    );
  return agents;
}

function portOf(text: string | undefined): number {
  if (text === undefined) return PORT;
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port;
  throw new UsageError(`"${text}" is no port`, {
    at: "--port",
    expected: "a number from 0 to 65535; 0 for any that is free",
  });
}

// ---- the command that returns
// ------------------------------------------------------------------------------------

/** The options of a start, as words of a command line in the same folder. */
export function startWords(args: Arguments): readonly string[] {
  return ["agents", "tasks", "executor", "executor-path", "policy", "port", "project", "grace"].flatMap(
    (option) => args.texts(option).flatMap((value) => [`--${option}`, value]),
  );
}

async function startDetached(args: Arguments, paths: StackPaths, io: Io): Promise<StackState> {
  const words = startWords(args);
  // For what the supervisor itself may write when it dies.
  const output = openPrivateAppend(paths.log);
  const flags = process.execArgv.includes(MEMORY_FLAG) ? [] : [MEMORY_FLAG];
  const child = spawn(
    process.execPath,
    [...process.execArgv, ...flags, process.argv[1]!, "local", "start", "--foreground", ...words],
    {
      cwd: io.cwd,
      detached: true,
      stdio: ["ignore", output, output, "ipc"],
      env: withHandedKeys(process.env, io.keys.handed),
    },
  );
  closeSync(output);
  const ended = new Promise<HoldfastError>((over) => {
    const early = (how: string): void =>
      over(
        new HoldfastError("agent_error", `the supervisor ended before the stack was ready: ${how}`, {
          at: paths.log,
          fix: "run `holdfast local logs` to see what it wrote",
        }),
      );
    child.on("error", ({ message }) => early(message));
    child.on("exit", (code, signal) => early(signal ?? `exit code ${code}`));
  });
  try {
    const answered = new Promise<Exclude<Answer, SecretsQuestion>>((done) =>
      child.on("message", (message) => {
        const answer = message as Answer;
        if (answer.type !== "secrets") done(answer);
        else void answerTo(answer, args, io).then((values) => child.send(values, () => {}));
      }),
    );
    const answer = await Promise.race([answered, ended]);
    if (answer instanceof HoldfastError) throw answer;
    if (answer.type === "ready") return answer.state;
    await ended; // Nothing of it is left then.
    throw errorOf(answer.error);
  } finally {
    if (child.connected) child.disconnect();
    child.unref();
  }
}

// ---- the supervisor ----------------------------------------------------------------------------------------------

async function supervise(plan: StackPlan, paths: StackPaths, args: Arguments, io: Io): Promise<number> {
  const answer = (given: Answer): void => {
    if (process.connected) process.send?.(given, undefined, undefined, () => {});
  };
  try {
    const secrets = new StackSecrets(
      (wanted) => (process.connected ? supplyByLauncher(wanted, io) : suppliedFor(wanted, args, io)),
      keyVariables(io.env).flatMap((name) => io.env[name] ?? []),
    );
    return await superviseLocked({ plan, paths, secrets, io }, (state) => {
      if (process.send === undefined) reportStack(state, paths, io);
      answer({ type: "ready", state });
    });
  } catch (error) {
    if (!process.connected) throw error;
    answer({ type: "failed", error: reportedError(error) }); // The command that waits shows it.
    return shownError(error).exitCode;
  }
}

interface Supervision {
  readonly plan: StackPlan;
  readonly paths: StackPaths;
  readonly secrets: StackSecrets;
  readonly io: Io;
}

async function superviseLocked(
  { plan, paths, secrets, io }: Supervision,
  ready: (state: StackState) => void,
): Promise<number> {
  const lock = lockFile(paths.lock);
  if (lock === undefined) throw isRunningAlready(paths);
  const log = new StackLog(paths.log, (text) => secrets.redacted(text));
  let signal: StopSignal | undefined;
  const supervisor = new Supervisor({ plan, paths, log, secrets });
  let signals = 0;
  const release = io.onStop((given) => {
    signal ??= given;
    signals++;
    if (signals > 2) return supervisor.stopNow();
    if (signals === 2) return supervisor.hurry();
    void supervisor.stop();
    const grace = duration(plan.graceMs);
    if (process.send === undefined)
      io.note(`stopping: running steps have ${grace} to end; once more hands them over at once`);
  });
  const renew = (): void => void supervisor.renew();
  process.on("SIGUSR2", renew);
  const lost = Promise.withResolvers<HoldfastError>();
  const { ino } = statSync(paths.lock);
  const watch = setInterval(() => {
    if (statSync(paths.lock, { throwIfNoEntry: false })?.ino === ino) return;
    supervisor.stopNow(); // Somebody removed the folder with the lock, so another stack may start there.
    lost.resolve(folderRemoved(paths));
  }, LOCK_WATCH_MS);
  try {
    try {
      await Promise.race([supervisor.start(), lost.promise]);
    } catch (error) {
      if (signal === undefined) throw error;
      return STOP_EXIT[signal]; // A stop during the start is no failure.
    }
    ready(supervisor.state);
    const failure = await Promise.race([supervisor.ended, lost.promise]);
    if (failure !== undefined) throw failure;
    return signal === undefined ? 0 : STOP_EXIT[signal];
  } finally {
    clearInterval(watch);
    process.off("SIGUSR2", renew);
    release();
    log.close();
    lock.close();
  }
}

function folderRemoved({ folder }: StackPaths): HoldfastError {
  return new HoldfastError("storage_lost", "the folder of the local stack was removed while the stack ran", {
    at: folder,
    fix: "start the stack again with `holdfast local start`",
  });
}

function isRunningAlready(paths: StackPaths): ConflictError {
  const state = readStackState(paths);
  const pid = state === undefined ? "" : ` as process ${state.supervisor.pid}`;
  const where = state?.url === undefined ? "" : `, on ${state.url}`;
  return new ConflictError("locked", `the local stack is running already${pid}${where}`, {
    at: paths.folder,
    expected: "one stack for each user",
    fix: "use it, or stop it first with `holdfast local stop`",
  });
}
