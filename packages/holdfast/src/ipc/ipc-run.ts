// `holdfast runner --ipc` (`runIpc`): a runner that a program holds by its standard input and output.
//
//   - Standard output carries the protocol and nothing else. The log goes to standard error.
//   - When standard input ends, the host is gone: the runner performs what it has accepted, and ends as if it
//     had been stopped. Nothing that was acknowledged is lost.
//   - Options that only the other kind of runner has are refused.

import { clearInterval, setInterval } from "node:timers";
import { VERSION } from "@holdfast/core";
import { compositeTracer, limitProcessMemory, type Agent } from "@holdfast/runtime";
import { RunnerExecutors } from "../run/runner/runner-executors.ts";
import { graceOf, refuse } from "@holdfast/terminal/frame/arguments";
import { STOP_EXIT, type Arguments, type Io } from "@holdfast/terminal/frame/command";
import { coordinatorToken } from "@holdfast/place/coordinator-access";
import { findFleetMode, findMode } from "@holdfast/place/mode";
import { findLocalDatabase, findStrictBounds, findTraces } from "@holdfast/place/project";
import { StoppableWork, stopper } from "../run/typing/stopper.ts";
import { coordinatorUrls, loadCode, runnerOptions, workspaceOf } from "../run/runner-run.ts";
import { secretsFor } from "@holdfast/terminal/secrets/agent-secrets";
import { readRunnerPolicy } from "@holdfast/place/settings/runner-policy-file";
import { wantedTracer } from "@holdfast/place/settings/wanted-tracer";

import { runOverCoordinator } from "./coordinator-place.ts";
import { runOverDatabase } from "./database-place.ts";
import { ipcError } from "./ipc-error.ts";
import { IpcHost } from "./ipc-host.ts";
import { IpcOutput } from "./ipc-output.ts";
import type { IpcEnd } from "./ipc-place.ts";

const AFTER = "its sessions continue when it is started again";

/** @returns the exit code. */
export async function runIpc(args: Arguments, io: Io): Promise<number> {
  const isFleet = hasCoordinator(args, io);
  refuseOthersOptions(args, isFleet);
  limitProcessMemory();
  const ended = Promise.withResolvers<IpcEnd>();
  const output = new IpcOutput(io);
  const loaded: { agents: readonly Agent[] } = { agents: [] };
  const host = new IpcHost({
    output,
    version: VERSION,
    agents: () => loaded.agents.map(({ name, version: of }) => ({ name, version: of })),
    stop: () => ended.resolve({ reason: "stopped" }),
    note: (line) => io.note(line),
  });
  const work = new StoppableWork(io, graceOf(args).graceMs);
  const release = io.onStop(
    stopper(io, AFTER, (signal) => ended.resolve({ reason: "signal", signal }), work),
  );
  const isGone = (): void => ended.resolve({ reason: "host_gone" });
  void host.read(io.stdin).then(isGone, isGone);
  void output.closed.then(isGone);
  // Sessions that only wait hold nothing that would keep the process alive.
  const alive = setInterval(() => {}, 60_000);
  try {
    const until = ended.promise.then((end) => (work.isRunning && work.stop(AFTER), end));
    const end = await run({ args, io, host, isFleet, until, loaded, work });
    await output.end({ type: "end", reason: end.reason });
    return end.signal === undefined ? 0 : STOP_EXIT[end.signal];
  } catch (error) {
    await output.end({ type: "end", reason: "failed", error: ipcError(error) });
    throw error;
  } finally {
    clearInterval(alive);
    release();
    io.stdin.destroy();
  }
}

interface Running {
  readonly args: Arguments;
  readonly io: Io;
  readonly host: IpcHost;
  readonly isFleet: boolean;
  readonly until: Promise<IpcEnd>;
  /** Receives the agents when they are loaded. */
  readonly loaded: { agents: readonly Agent[] };
  readonly work: StoppableWork;
}

async function run({ args, io, host, isFleet, until, loaded, work }: Running): Promise<IpcEnd> {
  const executors = new RunnerExecutors(args, io);
  const wanted = await wantedTracer(findTraces(args, io), io);
  const tracer = wanted === undefined ? host.tracer : compositeTracer([host.tracer, wanted]);
  try {
    if (isFleet) {
      const access = coordinatorToken(NO_ARGUMENTS, io); // The host's: the token file is the runner's.
      const [url] = coordinatorUrls(args, io, findFleetMode(args, io));
      const { code, ...options } = await runnerOptions(args, io, undefined, executors);
      loaded.agents = code.agents;
      return await runOverCoordinator(
        { options, access: { url: url!, ...access }, tracer, host, until, work },
        io,
      );
    }
    const workspace = workspaceOf(args, io);
    const policy = readRunnerPolicy(args, io, workspace);
    const code = await loadCode(args, io, workspace, policy, executors);
    loaded.agents = code.agents;
    const secrets = await secretsFor(code, args, io);
    // A database that is named is found from here, the project's own from its folder.
    const here = args.has("db") ? io : { cwd: workspace, env: io.env };
    const database = findLocalDatabase(args, here);
    const strictBounds = findStrictBounds(args, here).value;
    process.chdir(workspace); // Where agents work: files they name are looked for there.
    return await runOverDatabase({ database, code, secrets, strictBounds, work, tracer, host, until }, io);
  } finally {
    await executors.close();
  }
}

const NO_ARGUMENTS: Arguments = {
  action: undefined,
  positionals: [],
  usage: "runner",
  has: () => false,
  text: () => undefined,
  texts: () => [],
};

/** Whether somebody named a coordinator. Without one, sessions are in a database. */
function hasCoordinator(args: Arguments, io: Io): boolean {
  if (args.has("coordinator") || args.has("url")) return true;
  if (args.has("db")) return false;
  const isNamed = ["HOLDFAST_URL", "AGENT_ORCHESTRATOR_API_URL"].some((name) => (io.env[name] ?? "") !== "");
  return isNamed || findMode(args, io, true).value === "cloud";
}

const OF_COORDINATOR = ["name", "label", "max-runs", "health-port", "token-file", "insecure"];

/** @throws UsageError */
function refuseOthersOptions(args: Arguments, isFleet: boolean): void {
  const { usage } = args;
  if (isFleet && args.has("db"))
    throw refuse("--db and a coordinator exclude each other", usage, { fix: "give one of them" });
  if (isFleet && args.text("token-file") === "-")
    throw refuse("--token-file - and --ipc both read standard input", usage, { fix: "name a file" });
  const [one, other] = args.texts("coordinator");
  if (other !== undefined)
    throw refuse("--ipc takes one coordinator", usage, {
      got: `-c ${one} and -c ${other}`,
      fix: "name one of them, or a proxy in front of them",
    });
  const foreign = OF_COORDINATOR.find((name) => args.has(name));
  if (isFleet || foreign === undefined) return;
  throw refuse(`--${foreign} is for a runner of a coordinator`, usage, {
    got: `--${foreign}`,
    fix: "leave it out, or name the coordinator with -c URL",
  });
}
