// `holdfast runner`: files, options and the environment in, lines for people or programs out. Running is the
// runner's.

import {
  defined,
  type HoldfastError,
  NotFoundError,
  parseDuration,
  type TraceEvent,
  UsageError,
} from "@holdfast/core";
import {
  compositeTracer,
  limitProcessMemory,
  Watchdog,
  type Agent,
  type TaskDefinition,
} from "@holdfast/runtime";
import { makePrivateFolder, wantedSecretsOf, dataFolder } from "@holdfast/system";
import { MAX_RUNS, startRunner, type Runner, type RunnerEvent, type RunnerOptions } from "@holdfast/runner";
import { hostname } from "node:os";
import { join, resolve } from "node:path";
import { clearInterval, setInterval } from "node:timers";
import type { AgentSearch } from "../agents/agent-places.ts";
import { namedAgents } from "../agents/named-agents.ts";
import { checkRunnerExecutor, listRunnerExecutors, RunnerExecutors } from "./runner/runner-executors.ts";
import { STOP_EXIT, type Arguments, type Io, type StopSignal } from "@holdfast/terminal/frame/command";
import { checkedUrl, checkToken, URL_DEFAULT } from "@holdfast/place/coordinator-access";
import { readBounded } from "@holdfast/place/settings/config";
import { readRunnerPolicy, type FoundPolicy, policyPath } from "@holdfast/place/settings/runner-policy-file";
import { findFleetMode, findMode, findStage, type Mode } from "@holdfast/place/mode";
import { isDebugged, StoppableWork, stopper, type Stoppable } from "./typing/stopper.ts";
import { checkTrusted, isFolder } from "@holdfast/terminal/frame/given-file";
import { readAll } from "@holdfast/terminal/frame/input";
import { allLabels, readLabels } from "@holdfast/terminal/frame/labels";
import { refuseSecondStdin, suppliedFor } from "@holdfast/terminal/secrets/agent-secrets";
import { holdSecrets } from "@holdfast/terminal/secrets/held-secrets";
import { catalogueOf, coordinatorEnvironments, withPushedSecrets } from "./runner-catalogue.ts";
import { loadAgents, loadTasks, type LoadedAgent } from "./load-agent.ts";
import { withLogTimes } from "./log-times.ts";
import { runnerWork } from "./page-workspaces.ts";
import { logEvent, logTrace } from "./runner/runner-log.ts";
import { readRunnerNumbers } from "./runner/runner-numbers.ts";
import { IDLE_MS, TrialRunners } from "./runner/trial-runners.ts";
import { configFiles, findProject, findTraces } from "@holdfast/place/project";
import { watchImports } from "../stack/process/imported-files.ts";
import { KILL_AFTER_MS } from "../stack/process/stack-child.ts";
import { supervisorLink, type SupervisorLink } from "../stack/process/supervisor-link.ts";
import { wantedTracer } from "@holdfast/place/settings/wanted-tracer";

/** A coordinator's longest lease is a day, its longest poll half a minute. */
const RENEW_SECONDS_MAX = 28_800;
const POLL_SECONDS_MAX = 30;

/** @returns the exit code. */
export async function runRunner(args: Arguments, io: Io): Promise<number> {
  limitProcessMemory();
  const checked = args.text("check-executor");
  if (args.has("executor-list") || checked !== undefined) {
    const workspace = workspaceOf(args, io);
    const { executorsFolder } = readRunnerPolicy(args, io, workspace);
    if (checked === undefined) return listRunnerExecutors(executorsFolder, io);
    return checkRunnerExecutor(checked, { workspace, executorsFolder }, io);
  }
  const supervised = supervisorLink(args);
  try {
    return await runWith(args, withLogTimes(io, args.has("log-times")), supervised);
  } catch (error) {
    supervised?.failed(error);
    throw error;
  }
}

async function runWith(args: Arguments, io: Io, supervised: SupervisorLink | undefined): Promise<number> {
  const executors = new RunnerExecutors(args, io);
  const { code: _, ...options } = await runnerOptions(args, io, supervised, executors);
  const isForTrials = args.has("for-trials");
  const running = Promise.withResolvers<Runner>();
  const trials = new TrialRunners({
    io,
    url: options.url,
    secrets: options.secrets,
    ended: async (runnerId) => (await running.promise).trialEnded(runnerId),
  });
  const wanted = await wantedTracer(findTraces(args, io), io);
  const watcher = { trace: (event: TraceEvent) => logTrace(event, io, args.has("verbose")) };
  const stopped = Promise.withResolvers<StopSignal>();
  const work = new StoppableWork(io, options.graceMs);
  const trialGraceMs = work.graceMs + KILL_AFTER_MS;
  const release = io.onStop(
    stopper(io, "its sessions are released", (signal) => stopped.resolve(signal), work),
  );
  // The coordinator of a stack has lost its supervisor as well, so nothing could be committed within the
  // grace.
  void supervised?.gone.then(() => (stopped.resolve("SIGTERM"), work.handOver()));
  try {
    const end = await keepRunner({
      options: {
        ...options,
        ...(supervised === undefined ? {} : { begin: supervised.begin }),
        ...(isForTrials ? { forTrials: true } : { startTrial: (trial) => trials.start(trial) }),
        tracer: wanted === undefined ? watcher : compositeTracer([watcher, wanted]),
      },
      io,
      log: (event) => {
        logEvent(event, io);
        if (event.type === "registered" || event.type === "started") supervised?.report(event);
      },
      begun: (runner) => {
        running.resolve(runner);
        work.begins(stoppable(runner, trials));
        if (isForTrials) endWhenIdle(runner);
        void supervised?.superseded
          .then(() => (trials.supersede(), runner.supersede()))
          .then(() => supervised.report({ type: "superseded" }));
      },
      until: stopped.promise,
      ending: async () => void trials.stop(trialGraceMs),
    });
    // A drained runner is over when its trials are (runner-5).
    if (end === undefined) await Promise.race([trials.drained(), stopped.promise]);
    await trials.stop(trialGraceMs);
    if (end === undefined) return 0;
    return typeof end === "string" ? STOP_EXIT[end] : io.complain(end);
  } finally {
    release();
    await executors.close();
  }
}

/** A runner with its processes for trials, as a stop sees them. */
export function stoppable(runner: Runner, trials?: TrialRunners): Stoppable {
  return {
    get running() {
      return runner.running + (trials?.running ?? 0);
    },
    close(how) {
      trials?.hurry();
      return runner.stop(how);
    },
  };
}

/** trial-runners-1. */
function endWhenIdle(runner: Runner): void {
  let idleSince = performance.now();
  const timer = setInterval(() => {
    if (runner.health().held > 0) idleSince = performance.now();
    if (performance.now() - idleSince >= IDLE_MS) void runner.stop();
  }, IDLE_MS / 10);
  void runner.ended.then(() => clearInterval(timer));
}

/** A runner of a coordinator, until its command ends or the coordinator ends it. */
export interface KeptRunner<T> {
  readonly options: RunnerOptions;
  readonly io: Io;
  readonly log: (event: RunnerEvent) => void;
  /** Resolves when the command ends. */
  readonly until: Promise<T>;
  /** Called once the runner is registered. */
  readonly begun?: (runner: Runner) => void;
  /** Called at the end of the command, before the runner stops. */
  readonly ending?: () => Promise<void>;
}

/**
 * @returns what `until` gives; otherwise the error with which the coordinator refused the runner, or nothing
 *   after a drain.
 */
export async function keepRunner<T extends {}>({
  options,
  io,
  log,
  until,
  begun,
  ending,
}: KeptRunner<T>): Promise<T | HoldfastError | undefined> {
  process.chdir(options.workspace); // Where agents work: files they name are looked for there.
  const giveUp = new AbortController();
  void until.then(() => giveUp.abort());
  const watchdog = isDebugged() ? undefined : await watchdogOf(options, io);
  try {
    const started = await startedRunner(
      { ...options, signal: giveUp.signal, log, ...defined({ watchdog }) },
      until,
    );
    if ("gaveUp" in started) return started.gaveUp;
    const { runner } = started;
    begun?.(runner);
    const end = await Promise.race([until.then((by) => ({ by })), runner.ended.then(() => undefined)]);
    await ending?.();
    if (end !== undefined) await runner.stop();
    return (await runner.ended) ?? end?.by;
  } finally {
    await watchdog?.close();
  }
}

/** The watchdog's notes about agents that kept the process busy lie beside the runner's token. */
async function watchdogOf({ name = "default" }: RunnerOptions, io: Io): Promise<Watchdog> {
  const folder = runnersFolder(io);
  makePrivateFolder(folder);
  return new Watchdog({ path: join(folder, `${encodeURIComponent(name)}-suspects`) });
}

function runnersFolder(io: Io): string {
  return join(dataFolder(io), "runners");
}

/** The runner, or what ended its command before it was registered. */
async function startedRunner<T>(
  options: RunnerOptions,
  until: Promise<T>,
): Promise<{ readonly runner: Runner } | { readonly gaveUp: T }> {
  try {
    return { runner: await startRunner(options) };
  } catch (error) {
    if (options.signal?.aborted !== true) throw error;
    return { gaveUp: await until };
  }
}

/** The options of a runner as its command found them. */
interface FoundOptions extends RunnerOptions {
  readonly secrets: ReadonlyMap<string, string>;
  readonly code: RunnerCode;
}

/** The options of a runner from its command line, with the code that it has loaded. */
export async function runnerOptions(
  args: Arguments,
  io: Io,
  supervised: SupervisorLink | undefined,
  executors: RunnerExecutors,
): Promise<FoundOptions> {
  const mode = findFleetMode(args, io);
  const isForTrials = args.has("for-trials");
  const urls = supervised === undefined ? coordinatorUrls(args, io, mode) : undefined;
  const workspace = workspaceOf(args, io);
  const settings = [...configFiles(workspace, io).map(([, path]) => path), policyPath(args, io) ?? []].flat();
  supervised?.report({ type: "files", files: settings });
  const policyFile = readRunnerPolicy(args, io, workspace);
  const { policy } = policyFile;
  const imported = supervised === undefined ? () => [] : watchImports();
  const servesOthers = !args.has("supervised"); // The local stack serves the person who started it.
  const stage = findStage(io);
  const labels = { ...defined({ env: stage }), ...readLabels(args, "label") };
  const held = holdSecrets([], io);
  const { environments, ...own } = await coordinatorEnvironments(policy, workspace, held, io);
  // The local stack is the user's own machine, and has no labels to give (demands-1).
  const demanded = servesOthers ? { labels: allLabels(labels, workspace, args.text("name")) } : undefined;
  const code = await loadCode(args, io, workspace, policyFile, executors, {
    servesOthers,
    ...demanded,
    ...own,
    imported: () => supervised?.report({ type: "files", files: [...settings, ...imported()] }),
  });
  const { agents, tasks } = code;
  const numbers = readRunnerNumbers(args);
  const wantedRuns = isForTrials ? 1 : numbers.maxRuns;
  const { concurrency = Infinity } = policy;
  const maxRuns = concurrency === Infinity ? wantedRuns : Math.min(wantedRuns ?? MAX_RUNS, concurrency);
  if (wantedRuns !== undefined && wantedRuns !== maxRuns)
    io.note(`${io.notes.symbols.warn} --max-runs is lowered to ${maxRuns}, the policy's concurrency`);
  const healthPort = isForTrials ? undefined : numbers.healthPort;
  const grace = args.text("grace");
  const named = args.text("name");
  const name = isForTrials ? `${named ?? hostname()} (trials)` : named;
  const declared = wantedSecretsOf(agents, tasks);
  const wanted =
    policy.agentFiles === undefined ? declared : withPushedSecrets(declared, policy.agentFiles, io);
  refuseSecondStdin(args, args.text("token-file") === "-" ? "--token-file -" : undefined);
  supervised?.report({
    type: "loaded",
    agents: agents.map((agent) => agent.name),
    secrets: wanted,
  });
  const given = await supervised?.handedOver;
  const secrets =
    given === undefined ? await suppliedFor(wanted, args, io) : new Map(Object.entries(given.secrets));
  for (const value of secrets.values()) held.add(value);
  if (given !== undefined) io.supply(secrets);
  const token = given?.token ?? (await tokenOf(args, io));
  const renewMs = secondsOf(io, "HEARTBEAT_INTERVAL", RENEW_SECONDS_MAX);
  const pollTimeoutMs = secondsOf(io, "POLL_TIMEOUT", POLL_SECONDS_MAX);
  return {
    code,
    url: given?.url ?? urls ?? URL_DEFAULT,
    ...(supervised === undefined ? { stateFolder: runnersFolder(io) } : {}),
    workspace,
    agents,
    tasks,
    secrets,
    labels,
    insecure: args.has("insecure"),
    work: runnerWork(workspace, policy.mergeWork === true, held, io),
    ...(await catalogueOf(
      policy,
      { cwd: workspace, env: io.env, servesOthers, mode, ...demanded, ...own },
      held,
      code,
      io,
      (current) => executors.noteOffered(current),
    )),
    ...defined({ name, token, maxRuns, healthPort, environments, renewMs, pollTimeoutMs }),
    ...(grace === undefined ? {} : { graceMs: parseDuration(grace, "--grace") }),
  };
}

/** The agents and tasks of a runner. */
export interface RunnerCode {
  readonly agents: readonly Agent[];
  readonly tasks: readonly TaskDefinition[];
  /** The agents that came from a file or by a name, each as it was loaded. */
  readonly loaded: readonly LoadedAgent[];
}

/**
 * Loads the files that the command line names, and the agent of its executor.
 *
 * `imported` is called when the files were loaded, also when one of them cannot be.
 */
export async function loadCode(
  args: Arguments,
  io: Io,
  workspace: string,
  { policy, executorsFolder }: FoundPolicy,
  executors: RunnerExecutors,
  {
    imported,
    ...served
  }: Pick<AgentSearch, "servesOthers" | "labels" | "machine"> & { readonly imported?: () => void } = {},
): Promise<RunnerCode> {
  const { cwd, env } = io;
  const mode = findMode(args, io, true).value;
  const onSlow = (): void => io.note("a file is still loading");
  const search = { cwd, env, mode, ...served, onSlow };
  const loaded: LoadedAgent[] = [];
  const tasks: TaskDefinition[] = [];
  try {
    for (const agent of await namedAgents(args, workspace, io))
      loaded.push(...(await loadAgents(agent, { ...search, cwd: workspace })));
    for (const file of args.texts("tasks")) tasks.push(...(await loadTasks(file, search)));
  } finally {
    imported?.();
  }
  const isAlone = loaded.length + tasks.length === 0 && policy.agentFiles === undefined;
  const executor = await executors.agents({ workspace, executorsFolder }, isAlone, policy, search);
  return { agents: [...new Set(loaded.map(({ agent }) => agent)), ...executor], tasks, loaded };
}

/** The coordinator or, in the order they are tried in, several. @throws UsageError that names the flag or the variable. */
export function coordinatorUrls(args: Arguments, { env }: Io, mode: Mode): readonly string[] {
  const named = [
    ["--coordinator", args.texts("coordinator")],
    ["--url", args.texts("url")],
    ...["HOLDFAST_URL", "AGENT_ORCHESTRATOR_API_URL"].map((name) => [name, valuesOf(env[name])] as const),
  ] as const;
  for (const [from, urls] of named)
    if (urls.length > 0) return urls.map((url) => checkedUrl(url, from, args.has("insecure")));
  if (mode === "cloud")
    throw new UsageError("no coordinator is named, and in mode cloud there is none by default", {
      expected: "-c URL, or HOLDFAST_URL",
      fix: "name the coordinator of the fleet",
    });
  return [URL_DEFAULT];
}

function valuesOf(variable: string | undefined): readonly string[] {
  const value = nonEmpty(variable);
  return value === undefined ? [] : [value];
}

/** A variable of whole seconds. @returns milliseconds. */
function secondsOf(io: Io, variable: string, max: number): number | undefined {
  const text = nonEmpty(io.env[variable]);
  if (text === undefined) return undefined;
  const seconds = Number(text);
  if (/^\d+$/.test(text) && seconds >= 1 && seconds <= max) return seconds * 1_000;
  throw new UsageError(`${variable} is not ${JSON.stringify(text)}`, {
    at: variable,
    expected: `whole seconds from 1 to ${max}`,
  });
}

/** The project's folder. @throws NotFoundError when there is no such folder. */
export function workspaceOf(args: Arguments, io: Io): string {
  const given = args.text("project") ?? nonEmpty(io.env["PROJECT_DIR"]);
  const folder = given === undefined ? findProject(io) : resolve(io.cwd, given);
  if (!isFolder(folder)) {
    throw new NotFoundError("file_not_found", `there is no folder ${given ?? folder}`, {
      at: args.text("project") === undefined ? "PROJECT_DIR" : "--project",
      fix: "check the path; it is taken from the current folder",
    });
  }
  return folder;
}

/** The registration token, checked: a token that no header can carry would be sent again without end. */
async function tokenOf(args: Arguments, io: Io): Promise<string | undefined> {
  const token = await givenToken(args, io);
  return token === undefined ? undefined : checkToken(token, args.text("token-file") ?? "HOLDFAST_TOKEN");
}

/** Never from the command line, which others can see. */
async function givenToken(args: Arguments, io: Io): Promise<string | undefined> {
  const file = args.text("token-file");
  // With --ipc the variable is the host's own token, for its requests.
  if (file === undefined) return args.has("ipc") ? undefined : nonEmpty(io.env["HOLDFAST_TOKEN"]);
  if (file === "-") return nonEmpty((await readAll(io.stdin)).trim());
  const path = resolve(io.cwd, file);
  checkTrusted(path, (warning) => io.note(`${io.notes.symbols.warn} ${warning}`));
  try {
    return nonEmpty(readBounded(path).trim());
  } catch (cause) {
    throw new NotFoundError(
      "file_not_found",
      `the token's file cannot be read: ${(cause as Error).message}`,
      {
        at: path,
        fix: "check the path; it is taken from the current folder",
        cause,
      },
    );
  }
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === "" ? undefined : text;
}
