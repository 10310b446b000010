// `ExecutorHost`: all executors that one process supervises.
//
//   executor-host-1. A session has at most one executor on a machine. Before another one starts, the processes are ended that a
//       killed runner, or a runner that held the session before, has left.
//   executor-host-2. A persistent process is kept for a while between two turns (warm). After that, and at another
//       runner, the next turn starts a process with `mode: "resume"` (cold).
//   executor-host-3. The schema of an executor is asked for once (`--schema`).
//   executor-host-4. Nothing starts that the runner's policy forbids (runner-policy-3).
//   executor-host-5. A turn that fails after its process was started is an outcome with its number of reports, so that its
//       session takes all of them.

import { HoldfastError } from "@holdfast/core";
import type { TaskContext } from "@holdfast/runtime";
import { endTagged, ProcessSupervisor, scrubEnvironment, type Environment } from "@holdfast/system";
import { statSync } from "node:fs";
import { isAbsolute } from "node:path";

import { namedProviders } from "@holdfast/runtime/gateway";
import { pathOutside, requireOutside } from "../policy/executor-files.ts";
import { requireExecutor, requireFolder, type RunnerPolicy } from "../policy/runner-policy.ts";
import { ExecutorProcess, tagOf } from "./executor-process.ts";
import { newestVersionIn, type SchemaVersion, type TurnRequest } from "./invocation.ts";
import { isBuiltIn, type ExecutorProfile } from "./profile.ts";
import { AgentAnswers } from "./turn-reports.ts";

/** Options of `new ExecutorHost`. */
export interface ExecutorHostOptions {
  /** The environment of this process; executors get only PATH, HOME, LANG, TERM and TMPDIR of it. */
  readonly environment: Environment;
  /** Where executors work when their session names no folder. */
  readonly projectDir: string;
  /** The limits that the owner of this machine set; without one, only the network is closed. */
  readonly policy?: RunnerPolicy;
  /** How long a persistent process waits for its next turn. 30,000 milliseconds by default. */
  readonly warmMs?: number;
  /** How long a process may take to end after it was asked to, and again after SIGTERM. 5,000 milliseconds by default. */
  readonly stopStepMs?: number;
  /** Called when a turn begins. Must not throw. */
  readonly onTurn?: (turn: {
    readonly sessionId: string;
    readonly agent: string;
    readonly mode: string;
  }) => void;
}

/** A profile with the command that may run, and the environment from which executors get a part. */
interface Allowed {
  readonly profile: ExecutorProfile;
  readonly environment: Environment;
}

const WARM_MS = 30_000;
const SCHEMA_MS = 5_000;

/** How a turn ended. */
export interface TurnOutcome {
  /** The number of reports that are signals of the session. */
  readonly reports: number;
  /** Why the turn failed; absent when it completed. */
  readonly error?: string;
}

interface Warm {
  readonly executor: ExecutorProcess;
  readonly timer: NodeJS.Timeout;
}

/** Keeps the processes of executors between their turns. */
export class ExecutorHost {
  /** Where the sessions' agents answer the requests of their executors. */
  readonly answers = new AgentAnswers();
  readonly #options: ExecutorHostOptions;
  readonly #supervisor: ProcessSupervisor;
  readonly #profiles = new Set<ExecutorProfile>();
  readonly #warm = new Map<string, Warm>();
  /** The process that works on the turn of a session, or that is being started for it. */
  readonly #turns = new Map<string, Promise<ExecutorProcess>>();
  readonly #versions = new Map<string, Promise<SchemaVersion>>();

  constructor(options: ExecutorHostOptions) {
    this.#options = options;
    this.#supervisor = new ProcessSupervisor({
      environment: options.environment,
      namespaces: "if_available",
    });
  }

  /**
   * Accepts an executor, before there is a session of it.
   *
   * @throws HoldfastError `policy_denied` (executor-host-4), UsageError for a provider whose configured address is not safe.
   */
  add(profile: ExecutorProfile): void {
    const { environment, projectDir } = this.#options;
    namedProviders(profile.providers, environment, () => "");
    this.#allowed(profile, projectDir);
    this.#profiles.add(profile);
  }

  /**
   * Carries out one turn.
   *
   * @throws HoldfastError when no process could be started.
   */
  async turn(profile: ExecutorProfile, request: TurnRequest, task: TaskContext): Promise<TurnOutcome> {
    const { sessionId } = task;
    const starting = this.#executorFor(profile, request, task);
    this.#turns.set(sessionId, starting);
    try {
      return await this.#finish(profile, await starting, task);
    } finally {
      if (this.#turns.get(sessionId) === starting) this.#turns.delete(sessionId);
    }
  }

  /** Stops the process of the turn that is under way. @returns whether this process has such a turn. */
  stopTurn(sessionId: string): boolean {
    const turn = this.#turns.get(sessionId);
    turn?.then((executor) => executor.stop("its session was cancelled")).catch(() => {}); // It did not start.
    return turn !== undefined;
  }

  /** Ends the processes that another runner of this machine has left for the session. */
  async endLost(sessionId: string): Promise<void> {
    await endTagged(tagOf(sessionId));
  }

  /** The schema version that the executor is invoked with (executor-host-3). */
  versionOf(profile: ExecutorProfile, environment = this.#options.environment): Promise<SchemaVersion> {
    if (profile.schemaVersion !== undefined) return Promise.resolve(profile.schemaVersion);
    const key = JSON.stringify(profile.command);
    const known = this.#versions.get(key) ?? this.#ask(profile, environment);
    this.#versions.set(key, known);
    return known;
  }

  /** The command and environment that the policy allows for an executor in a folder. @throws HoldfastError `policy_denied`. */
  #allowed(profile: ExecutorProfile, cwd: string): Allowed {
    const { policy = {}, environment, projectDir } = this.#options;
    requireExecutor(policy, profile.name);
    if (policy.executors === undefined || isBuiltIn(profile)) return { profile, environment };
    const folders = [projectDir, cwd];
    const { PATH = "" } = environment;
    return {
      profile: { ...profile, command: requireOutside(profile.name, profile.command, folders, PATH) },
      environment: { ...environment, PATH: pathOutside(PATH, folders) },
    };
  }

  /** Ends all processes. */
  async close(): Promise<void> {
    const sessions = [...this.#warm.keys()];
    await Promise.all(sessions.map(async (id) => this.#takeWarm(id)?.stop("the runner is closing")));
    await this.#supervisor.close("the runner is closing");
  }

  /** A process that works on the turn. */
  async #executorFor(
    profile: ExecutorProfile,
    request: TurnRequest,
    task: TaskContext,
  ): Promise<ExecutorProcess> {
    const { sessionId } = task;
    const cwd = this.#folderOf(request);
    requireFolder(this.#options.policy ?? {}, cwd);
    const allowed = this.#allowed(profile, cwd);
    // Otherwise the session could write another executor's program.
    // mutant: other-executor-writable
    for (const other of this.#profiles) this.#allowed(other, cwd);
    this.#options.onTurn?.({ sessionId, agent: request.agentName ?? profile.name, mode: request.mode });
    const warm = this.#takeWarm(sessionId);
    if (warm !== undefined && (await warm.nextTurn(request, task))) return warm;
    await warm?.stop("it no longer reads its input");
    return this.#start(allowed, request, task, cwd);
  }

  /** executor-host-5. */
  async #finish(
    profile: ExecutorProfile,
    executor: ExecutorProcess,
    { sessionId, signal }: TaskContext,
  ): Promise<TurnOutcome> {
    try {
      const reports = await executor.finishTurn(signal);
      if (profile.lifecycle === "persistent") this.#keepWarm(sessionId, executor);
      return { reports };
    } catch (error) {
      await executor.stop("its turn failed");
      return { reports: await executor.endReports(), error: (error as Error).message };
    }
  }

  async #start(
    { profile, environment }: Allowed,
    request: TurnRequest,
    task: TaskContext,
    cwd: string,
  ): Promise<ExecutorProcess> {
    await this.endLost(task.sessionId); // executor-host-1.
    const version = await this.versionOf(profile, environment);
    return ExecutorProcess.start(
      {
        profile,
        version,
        supervisor: this.#supervisor,
        environment,
        answers: this.answers,
        cwd,
        network: this.#options.policy?.network ?? { allow: [] },
        stopStepMs: this.#options.stopStepMs,
      },
      request,
      task,
    );
  }

  async #ask({ command }: ExecutorProfile, environment: Environment): Promise<SchemaVersion> {
    const asked = await this.#supervisor.start({
      argv: [...command, "--schema"],
      cwd: this.#options.projectDir,
      env: scrubEnvironment(environment),
      timeoutMs: SCHEMA_MS,
      killGraceMs: 0,
    });
    const { end, stdout } = await asked.ended;
    return end.type === "exit" && end.exitCode === 0 ? newestVersionIn(stdout) : "2.0";
  }

  #folderOf({ projectDir }: TurnRequest): string {
    if (projectDir === undefined) return this.#options.projectDir;
    const isFolder = statSync(projectDir, { throwIfNoEntry: false })?.isDirectory() === true;
    if (isAbsolute(projectDir) && isFolder) return projectDir;
    throw new HoldfastError("file_not_found", "the session's project_dir is no folder of this machine", {
      at: "/project_dir",
      got: projectDir,
      expected: "the absolute path of an existing folder",
    });
  }

  #keepWarm(sessionId: string, executor: ExecutorProcess): void {
    void executor.ended.then(() => {
      if (this.#warm.get(sessionId)?.executor === executor) this.#takeWarm(sessionId);
    });
    const timer = setTimeout(() => {
      this.#warm.delete(sessionId);
      void executor.stop("no turn came");
    }, this.#options.warmMs ?? WARM_MS);
    timer.unref();
    this.#warm.set(sessionId, { executor, timer });
  }

  #takeWarm(sessionId: string): ExecutorProcess | undefined {
    const warm = this.#warm.get(sessionId);
    clearTimeout(warm?.timer);
    this.#warm.delete(sessionId);
    return warm?.executor;
  }
}
