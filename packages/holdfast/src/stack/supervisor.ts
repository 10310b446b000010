// The supervisor of the local stack: `Supervisor` runs one coordinator and one runner, and keeps both
// running.
//
//   - Before it starts anything, it ends whatever an earlier supervisor of this folder left running. The
//     marker finds these processes.
//   - When a runner's process has ended, what it had started is ended first. The coordinator is told after
//     that, and gives its sessions to the next runner. No lease has to pass, and no command runs twice.
//   - Nothing is lost when a report to the coordinator fails: it is repeated until it succeeds. A later
//     supervisor reports all runners of the stack before it starts its own.
//   - The runner ends before the coordinator, to which it releases its sessions.
//   - New files of agents are loaded by a new runner beside the old one. The old one takes nothing new, and
//     releases its sessions at their checkpoints. It takes back those that diverge from the new code, and
//     ends with the last session of its code. The new runner begins when the coordinator knows that the old
//     one is superseded. If the new files do not load, the old runner stays.
//   - A later version may be installed over the one that runs. Its runner, which starts after an end of the old
//     one, is refused by the coordinator in memory. The coordinator is then started again, too.
//   - The files of a load that failed are watched as well, so that their correction is loaded. The
//     configuration files are watched even where none exists yet.

import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { defined, HoldfastError, toError, toHoldfastError } from "@holdfast/core";
import { programOf } from "@holdfast/machine/agent-source";
import { withHandedKeys } from "@holdfast/system";
import { endExecution, EXECUTION_MARKER, processIdentity } from "@holdfast/system/processes";
import type { Report } from "./process/supervisor-link.ts";
import type { StackPaths, StackState } from "@holdfast/place/local-stack";
import { FileWatch } from "./changed-files.ts";
import { Keeper } from "./keeper.ts";
import { StackAdmin } from "./stack-admin.ts";
import { KILL_AFTER_MS, StackChild } from "./process/stack-child.ts";
import type { StackLog } from "./stack-log.ts";
import type { StackSecrets } from "./stack-secrets.ts";
import { StateFile, type StateChange } from "./state-file.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export interface StackPlan {
  /** How `holdfast` is started: the program and its first arguments. */
  readonly program: readonly [string, ...string[]];
  /** The environments of the processes. */
  readonly env: Readonly<Record<"coordinator" | "runner", Environment>>;
  /** The names of variables whose values are keys, besides those that are known by their names. */
  readonly keys: ReadonlySet<string>;
  readonly port: number;
  /** The folder that agents work in. */
  readonly project: string;
  /** The texts of their sources, as sessions store them (`AgentSource`). */
  readonly agents: readonly string[];
  /** Absolute. */
  readonly tasks: readonly string[];
  /** The executor that the runner offers besides, as an option of `holdfast runner`. */
  readonly executor?: readonly ["--executor" | "--executor-path", string];
  /** The file of the runner's policy, absolute; else the user's own counts. */
  readonly policy?: string;
  /** How long the runner's steps may take to end at a stop. */
  readonly graceMs: number;
  /** Marks everything that the stack starts; equal for all supervisors of its folder. */
  readonly marker: string;
}

export interface SupervisorParts {
  readonly plan: StackPlan;
  readonly paths: StackPaths;
  readonly log: StackLog;
  readonly secrets: StackSecrets;
}

/** The label by which a later supervisor finds the runners of the stack. */
const LABEL = ["stack", "local"] as const;
const COORDINATOR_GRACE_MS = 8_000;
const REPEAT_MS = 100;

export class Supervisor {
  readonly #parts: SupervisorParts;
  readonly #coordinator: Keeper;
  readonly #runner: Keeper;
  readonly #files: FileWatch;
  readonly #runnerIds = new Map<StackChild, string>();
  readonly #state: StateFile;
  readonly #over = new AbortController();
  readonly #ended = Promise.withResolvers<HoldfastError | undefined>();
  readonly #firstAdmin = Promise.withResolvers<void>();
  #admin: StackAdmin | undefined;
  #port: number;
  #children = 0;
  #cleaning: Promise<unknown> = Promise.resolve();
  #replacing: Promise<void> | undefined;
  #renewing: Promise<void> | undefined;

  constructor(parts: SupervisorParts) {
    const { plan, paths } = parts;
    this.#parts = parts;
    this.#port = plan.port;
    const { project, agents, executor, policy, graceMs } = plan;
    const state: StackState = {
      version: 1,
      status: "starting",
      supervisor: processIdentity(process.pid) ?? { pid: process.pid, startedAt: "" },
      startedAt: Date.now(),
      renewals: 0,
      project,
      agents,
      ...(executor === undefined ? {} : { executor: executor[1] }),
      ...defined({ policy }),
      graceMs,
      offers: [],
      processes: [],
    };
    this.#state = new StateFile(paths.state, state, (message) =>
      this.#parts.log.write("supervisor", `the state could not be written: ${message}`),
    );
    const common = {
      changed: () => this.#change({}),
      log: (text: string) => this.#parts.log.write("supervisor", text),
    };
    this.#coordinator = new Keeper("coordinator", {
      ...common,
      start: () => this.#startCoordinator(),
      makeReady: (child) => this.#coordinatorReady(child),
      begin: () => {},
      replaced: (child) => child.stop(COORDINATOR_GRACE_MS),
      hurry: () => {},
      cleanUp: (child) => void this.#endAll(child),
      gaveUp: (end) => void this.#giveUp("coordinator", end),
    });
    this.#runner = new Keeper("runner", {
      ...common,
      start: () => this.#startRunner(),
      makeReady: (child) => this.#runnerReady(child),
      begin: (child) => child.order({ type: "begin" }),
      replaced: (child) => this.#supersede(child),
      hurry: (child) => void this.#drainRunner(child),
      cleanUp: (child) => this.#cleanUpRunner(child),
      gaveUp: (end) => void this.#giveUp("runner", end),
    });
    this.#files = new FileWatch(() => void this.#reload());
  }

  get state(): StackState {
    return this.#state.state;
  }

  /** Resolves when the stack has stopped, with the error if it was given up. Never rejects. */
  get ended(): Promise<HoldfastError | undefined> {
    return this.#ended.promise;
  }

  /** Resolves when everything is ready. @throws what the first process that failed reported; nothing runs then. */
  async start(): Promise<void> {
    this.#parts.log.write("supervisor", `starting as process ${process.pid}`);
    this.#change({});
    // Processes of an earlier supervisor of this folder may still run.
    await endExecution(this.#parts.plan.marker);
    try {
      await Promise.all([this.#coordinator.start(), this.#runner.start()]);
    } catch (error) {
      this.#parts.log.write("supervisor", `the stack did not start: ${toError(error).message}`);
      await this.stop();
      throw error;
    }
    this.#change({ status: "running" });
    this.#parts.log.write("supervisor", `ready on ${this.state.url}`);
  }

  /** Stops the runner and then the coordinator. A second call waits for the first. */
  async stop(failure?: HoldfastError): Promise<void> {
    if (this.#over.signal.aborted) return void (await this.#ended.promise);
    this.#over.abort();
    this.#files.close();
    this.#change({ status: "stopping" });
    this.#parts.log.write("supervisor", "stopping");
    await this.#runner.stop(this.#runnerStopMs);
    await this.#cleaning; // The coordinator receives the last reports.
    await this.#coordinator.stop(COORDINATOR_GRACE_MS);
    await endExecution(this.#parts.plan.marker);
    this.#change(
      failure === undefined ? { status: "stopped" } : { status: "failed", failure: failure.message },
    );
    this.#parts.log.write("supervisor", "stopped");
    this.#ended.resolve(failure);
  }

  /** Ends the grace of a stop. */
  hurry(): void {
    this.#runner.hurry();
  }

  /** Ends everything by force. */
  stopNow(): void {
    this.#over.abort();
    this.#runner.killAll();
    this.#coordinator.killAll();
  }

  /** Starts the coordinator and the runner again. Running sessions keep their process until they have ended. */
  async renew(): Promise<void> {
    if (this.#over.signal.aborted) return;
    this.#parts.log.write("supervisor", "restarting the coordinator and the runner");
    await this.#renewCoordinator();
    await this.#reload();
    this.#change({ renewals: this.state.renewals + 1 });
  }

  /** Calls at the same time share one renewal: a second one would end the coordinator that the first has started. */
  async #renewCoordinator(): Promise<void> {
    if (this.#over.signal.aborted) return;
    this.#renewing ??= this.#coordinator
      .renew(COORDINATOR_GRACE_MS)
      .catch((error: unknown) => this.#giveUp("coordinator", toError(error).message))
      .finally(() => (this.#renewing = undefined));
    await this.#renewing;
  }

  // ---- the coordinator ---------------------------------------------------------------------------------------------

  #startCoordinator(): StackChild {
    return this.#spawn(
      "coordinator",
      ["coordinator", "--supervised", "--port", String(this.#port)],
      () => {},
    );
  }

  async #coordinatorReady(child: StackChild): Promise<void> {
    const { url, adminTokenFile } = await child.reported("listening");
    this.#port = Number(new URL(url).port);
    const admin = new StackAdmin(url, readFileSync(adminTokenFile, "utf8").trim());
    if (this.state.url === undefined)
      // An earlier supervisor may have failed to report the end of its runners.
      for (const runnerId of await admin.runnersWith(...LABEL)) await admin.runnerEnded(runnerId);
    this.#change({ url });
    this.#admin = admin;
    this.#firstAdmin.resolve();
  }

  /** A runner first waits for its processes for trials, which have the grace as well. */
  get #runnerStopMs(): number {
    return this.#parts.plan.graceMs + 2 * KILL_AFTER_MS;
  }

  // ---- the runner --------------------------------------------------------------------------------------------------

  #startRunner(): StackChild {
    const { agents, tasks, project, executor = [], policy, graceMs } = this.#parts.plan;
    const args = [
      "runner",
      "--supervised",
      "--name",
      "local",
      "--label",
      LABEL.join("="),
      "--project",
      project,
      "--grace",
      `${graceMs}ms`,
      ...agents.flatMap((agent) => ["--agents", agent]),
      ...tasks.flatMap((file) => ["--tasks", file]),
      ...executor,
      ...(policy === undefined ? [] : ["--policy", policy]),
    ];
    const files = [...agents.filter((agent) => programOf(agent) === undefined), ...tasks];
    const child: StackChild = this.#spawn("runner", args, (report) => {
      if (report.type === "registered") this.#runnerIds.set(child, report.runnerId);
      // Files of a load that failed are watched as well, so that their correction is loaded.
      if (report.type === "files") this.#files.watch([...new Set([...files, ...report.files])]);
    });
    return child;
  }

  async #runnerReady(child: StackChild): Promise<void> {
    const { agents: offers, secrets } = await child.reported("loaded");
    const values = await this.#parts.secrets.valuesOf(secrets);
    const token = await this.#untilAnswered((admin) => admin.registrationToken("local"));
    child.order({ type: "hand_over", url: this.state.url ?? "", token, secrets: values });
    try {
      await child.reported("started");
    } catch (error) {
      if (isOfLaterVersion(error)) await this.#renewCoordinator();
      throw error;
    }
    this.#change({ offers });
  }

  async #supersede(child: StackChild): Promise<void> {
    child.order({ type: "supersede" });
    await child.reported("superseded").catch(() => {}); // It has ended.
  }

  async #drainRunner(child: StackChild): Promise<void> {
    const runnerId = this.#runnerIds.get(child);
    this.#parts.log.write("supervisor", `too many old runners: ${runnerId} no longer waits for its sessions`);
    if (runnerId === undefined) await child.stop(this.#runnerStopMs);
    else await this.#untilAnswered((admin) => admin.drain(runnerId)).catch(() => {});
  }

  #cleanUpRunner(child: StackChild): void {
    const runnerId = this.#runnerIds.get(child);
    this.#runnerIds.delete(child);
    const cleaned = this.#endAll(child).then(async () => {
      if (runnerId === undefined) return;
      await this.#untilAnswered((admin) => admin.runnerEnded(runnerId));
      this.#parts.log.write("supervisor", `the sessions of ${runnerId} are free: its process has ended`);
    });
    this.#cleaning = Promise.allSettled([this.#cleaning, cleaned]);
  }

  /** Replacements follow one another. */
  async #reload(): Promise<void> {
    while (this.#replacing !== undefined) await this.#replacing;
    if (this.#over.signal.aborted) return;
    this.#replacing = this.#replaceRunner().finally(() => (this.#replacing = undefined));
    await this.#replacing;
  }

  async #replaceRunner(): Promise<void> {
    try {
      await this.#runner.replace().catch((error: unknown) => {
        if (!isOfLaterVersion(error)) throw error;
        return this.#runner.replace(); // The coordinator has the later version now.
      });
      this.#parts.log.write("supervisor", "a new runner has loaded the agents");
      this.#change({ problem: undefined });
    } catch (thrown) {
      const { message, at } = toHoldfastError(thrown);
      const problem = `${message}${at === undefined ? "" : ` (${at})`}`;
      this.#parts.log.write(
        "supervisor",
        `the agents were not loaded again, and their last version stays: ${problem}`,
      );
      this.#change({ problem });
    }
  }

  // ---- both --------------------------------------------------------------------------------------------------------

  #spawn(
    component: "coordinator" | "runner",
    args: readonly string[],
    onReport: (report: Report) => void,
  ): StackChild {
    const { program, env, marker, project } = this.#parts.plan;
    return new StackChild({
      component,
      argv: [...program, ...args],
      cwd: project,
      env: withHandedKeys(
        { ...env[component], [EXECUTION_MARKER]: `${marker}/${++this.#children}` },
        this.#parts.plan.keys,
      ),
      marker: `${marker}/${this.#children}`,
      log: (line) => this.#parts.log.write(component, line),
      onReport,
    });
  }

  /** Ends everything that a process has started. */
  async #endAll({ marker }: StackChild): Promise<void> {
    if (!(await endExecution(marker)))
      this.#parts.log.write("supervisor", `some processes of ${marker} could not be ended`);
  }

  /** Asks the coordinator until it answers. @throws what it refuses with, or when the stack stops. */
  async #untilAnswered<T>(ask: (admin: StackAdmin) => Promise<T>): Promise<T> {
    await this.#firstAdmin.promise;
    for (;;) {
      try {
        return await ask(this.#admin!);
      } catch (error) {
        const isAway =
          HoldfastError.is(error) && (error.code === "unavailable" || error.code.startsWith("storage_"));
        if (!isAway || this.#over.signal.aborted) throw error;
        await delay(REPEAT_MS);
      }
    }
  }

  async #giveUp(component: string, end: string): Promise<void> {
    const failure = new HoldfastError("agent_error", `the ${component} was restarted too often: ${end}`, {
      fix: `run \`holdfast local logs -c ${component}\` to see what it wrote`,
    });
    this.#parts.log.write("supervisor", failure.message);
    await this.stop(failure);
  }

  #change(change: StateChange): void {
    this.#state.change({ ...change, processes: [...this.#coordinator.states, ...this.#runner.states] });
  }
}

/** The coordinator has refused a runner of a later version. */
function isOfLaterVersion(error: unknown): boolean {
  return toHoldfastError(error).code === "unsupported_protocol";
}
