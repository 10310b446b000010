// `checkExecutor` checks a program against the protocol of executors, as a user's own executor is checked before its first
// session. It runs the program over a run gateway, and needs no coordinator and no storage.
//
//   executor-conformance-1  It prints a JSON Schema for `--schema` that names a schema version.
//   executor-conformance-2  A start ends with a result.
//   executor-conformance-3  It binds an id of its own during the start.
//   executor-conformance-4  A resume ends with a result.
//   executor-conformance-5  Input that is no invocation ends it with an exit code above 0 and an error text.
//   executor-conformance-6  It refuses a schema version that it does not know.
//   executor-conformance-7  It ends within five seconds of SIGTERM.
//   executor-conformance-8  A persistent one takes a second turn in the same process.
//   executor-conformance-9  A persistent one ends at `shutdown` and at the end of its input, with exit code 0.

import type { TaskContext } from "@holdfast/runtime";
import { describeProcessEnd, ProcessSupervisor, scrubEnvironment, type Environment } from "@holdfast/system";
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";

import { ExecutorProcess, SHUTDOWN, type ProcessOptions } from "./executor-process.ts";
import { invocationOf, newestVersionIn, type TurnRequest } from "./invocation.ts";
import type { ExecutorProfile } from "./profile.ts";
import { AgentAnswers, type StoredReport } from "./turn-reports.ts";

/** One clause of the protocol of executors, and whether a program fulfils it. */
export interface CheckedClause {
  readonly clause: string;
  readonly what: string;
  /** `skipped`: the clause does not apply to this program. */
  readonly status: "passed" | "failed" | "skipped";
  /** Why it failed or was skipped. */
  readonly detail?: string;
}

/** Options of `checkExecutor`. */
export interface CheckOptions {
  /** As for `ExecutorHost`. */
  readonly environment: Environment;
  /** The folder that the program works in. */
  readonly projectDir: string;
  /** The prompt of each turn. */
  readonly prompt?: string;
  /** How long a turn may take. Milliseconds; a minute by default. */
  readonly turnMs?: number;
  /** Called after each clause. Must not throw. */
  readonly onClause?: (clause: CheckedClause) => void;
}

const PROMPT = "Reply with the one word: ready";
const TURN_MS = 60_000;
const STOP_MS = 5_000;
/** A program that has not ended by then waits for its input. */
const BEGUN_MS = 500;
const PREFIX = "executor-conformance-";

/** A clause that does not apply. */
class Skipped extends Error {}

/** All clauses, in order. Never rejects: a program that cannot be started fails its clauses. */
export async function checkExecutor(
  profile: ExecutorProfile,
  options: CheckOptions,
): Promise<readonly CheckedClause[]> {
  const supervisor = new ProcessSupervisor({ environment: options.environment, namespaces: "if_available" });
  const check = new Check(profile, options, supervisor);
  const checked: CheckedClause[] = [];
  try {
    for (const [number, what, run] of check.clauses()) {
      const clause = { clause: `${PREFIX}${number}`, what, ...(await outcomeOf(run)) };
      checked.push(clause);
      options.onClause?.(clause);
    }
  } finally {
    await supervisor.close("the check is over");
  }
  return checked;
}

async function outcomeOf(run: () => Promise<void>): Promise<Pick<CheckedClause, "status" | "detail">> {
  try {
    await run();
    return { status: "passed" };
  } catch (error) {
    return { status: error instanceof Skipped ? "skipped" : "failed", detail: (error as Error).message };
  }
}

class Check {
  readonly #profile: ExecutorProfile;
  readonly #options: CheckOptions;
  readonly #supervisor: ProcessSupervisor;
  readonly #sessionId = `ses_${randomUUID()}`;
  #executorSessionId: string | null = null;
  #version: ProcessOptions["version"];
  #hasStarted = false;

  constructor(profile: ExecutorProfile, options: CheckOptions, supervisor: ProcessSupervisor) {
    this.#profile = { ...profile, timeoutMs: options.turnMs ?? TURN_MS };
    this.#options = options;
    this.#supervisor = supervisor;
    this.#version = profile.schemaVersion ?? "2.0";
  }

  clauses(): readonly (readonly [number, string, () => Promise<void>])[] {
    return [
      [1, "--schema prints a JSON Schema that names a schema version", () => this.#schema()],
      [2, "a start ends with a result", () => this.#start()],
      [3, "the start binds an executor_session_id", () => this.#bound()],
      [4, "a resume ends with a result", () => this.#resume()],
      [5, "input that is no invocation is refused with an error text", () => this.#refusesInput()],
      [6, "an unknown schema version is refused", () => this.#refusesVersion()],
      [7, "the program ends within five seconds of SIGTERM", () => this.#stops()],
      [8, "a second turn is taken by the same process", () => this.#secondTurn()],
      [9, "shutdown and the end of the input end the program with exit code 0", () => this.#shutsDown()],
    ];
  }

  async #schema(): Promise<void> {
    const { end, stdout } = await this.#runRaw("", ["--schema"]);
    if (end.type !== "exit" || end.exitCode !== 0)
      throw new Skipped(
        `--schema: ${describeProcessEnd(end)}; the program is invoked with schema ${this.#version}`,
      );
    if (!/"schema_version"/.test(stdout))
      throw new Error("the output of --schema has no property schema_version");
    this.#version = this.#profile.schemaVersion ?? newestVersionIn(stdout);
  }

  async #start(): Promise<void> {
    checkResult(await this.#turn(this.#request("start", 1)));
    this.#hasStarted = true;
  }

  async #bound(): Promise<void> {
    if (!this.#hasStarted) throw new Skipped("the start failed");
    if (this.#executorSessionId === null)
      throw new Error("no POST /bind came: the program cannot find its conversation again after a crash");
  }

  async #resume(): Promise<void> {
    if (!this.#hasStarted) throw new Skipped("the start failed");
    checkResult(await this.#turn(this.#request("resume", 2)));
  }

  async #refusesInput(): Promise<void> {
    const valid = this.#invocation(this.#version);
    const { mode: _mode, ...withoutMode } = valid;
    const inputs = [
      ["nothing", ""],
      ["no JSON", "garbage"],
      ["half an invocation", JSON.stringify(valid).slice(0, 30)],
      ["an invocation without a mode", JSON.stringify(withoutMode)],
      ["an invocation with an unknown mode", JSON.stringify({ ...valid, mode: "begin" })],
    ] as const;
    for (const [what, input] of inputs) await this.#refuses(what, input);
  }

  async #refusesVersion(): Promise<void> {
    await this.#refuses(
      "schema 99.0",
      JSON.stringify({ ...this.#invocation(this.#version), schema_version: "99.0" }),
    );
  }

  async #stops(): Promise<void> {
    // Its input stays open, so it waits for the rest of its invocation.
    const started = await this.#startRaw('{"schema_version":', [], true);
    if ((await Promise.race([started.ended, delay(BEGUN_MS)])) !== undefined)
      throw new Skipped("the program does not wait for the end of its input");
    const { end } = await started.stop("the check stops it", { graceMs: STOP_MS });
    if (end.type === "stopped" && end.means === "SIGKILL")
      throw new Error("it was still running five seconds later");
  }

  async #secondTurn(): Promise<void> {
    this.#onlyPersistent();
    const first = this.#recorder();
    const executor = await ExecutorProcess.start(
      this.#processOptions(),
      this.#request("start", 1),
      first.task,
    );
    try {
      await executor.finishTurn(first.task.signal);
      const second = this.#recorder();
      const isRead = await executor.nextTurn(this.#request("resume", 2), second.task);
      if (!isRead) throw new Error("the program ended after its first turn");
      await executor.finishTurn(second.task.signal);
      checkResult(second);
    } finally {
      await executor.stop("the check is over");
    }
  }

  async #shutsDown(): Promise<void> {
    this.#onlyPersistent();
    for (const [what, message] of [
      ["shutdown", SHUTDOWN],
      ["the end of its input", ""],
    ] as const) {
      const recorder = this.#recorder();
      const executor = await ExecutorProcess.start(
        this.#processOptions(),
        this.#request("start", 1),
        recorder.task,
      );
      await executor.finishTurn(recorder.task.signal).catch(() => {});
      const { end } = await executor.shutDown(message, STOP_MS);
      const isGood =
        end.type === "exit" ? end.exitCode === 0 : end.type === "stopped" && end.means === "request";
      if (!isGood) throw new Error(`${what}: ${describeProcessEnd(end)}`);
    }
  }

  #recorder(): Recorder {
    return new Recorder(this.#profile.name, this.#options.environment, this.#sessionId);
  }

  #onlyPersistent(): void {
    if (this.#profile.lifecycle !== "persistent") throw new Skipped("the profile is not persistent");
    if (!this.#hasStarted) throw new Skipped("the start failed");
  }

  async #turn(request: TurnRequest): Promise<Recorder> {
    const recorder = this.#recorder();
    const executor = await ExecutorProcess.start(this.#processOptions(), request, recorder.task);
    try {
      await executor.finishTurn(recorder.task.signal);
    } finally {
      await executor.stop("its turn is over");
    }
    for (const report of recorder.reports)
      if (report.type === "bind") this.#executorSessionId = report.executorSessionId;
    return recorder;
  }

  async #refuses(what: string, input: string): Promise<void> {
    const { end, stderr, stdout } = await this.#runRaw(input, []);
    if (end.type !== "exit" || end.exitCode === 0)
      throw new Error(
        `with ${what} as its input it must end with an exit code above 0, and it ended with ${describeProcessEnd(end)}`,
      );
    if (`${stderr}${stdout}`.trim() === "")
      throw new Error(
        `with ${what} as its input it ended with exit code ${end.exitCode}, and wrote no error to standard error`,
      );
  }

  /** Runs the program without a gateway: it must not need one to refuse its input. */
  async #runRaw(input: string, args: readonly string[]) {
    return (await this.#startRaw(input, args, false)).ended;
  }

  #startRaw(input: string, args: readonly string[], keepsInputOpen: boolean) {
    const { environment, projectDir } = this.#options;
    const secrets = Object.fromEntries(this.#profile.secrets.map((name) => [name, environment[name] ?? ""]));
    const env = { AGENT_ORCHESTRATOR_API_URL: "http://127.0.0.1:9", AGENT_SESSION_ID: this.#sessionId };
    return this.#supervisor.start({
      argv: [...this.#profile.command, ...args],
      cwd: projectDir,
      env: scrubEnvironment(environment, secrets, env),
      input,
      keepsInputOpen,
      timeoutMs: this.#options.turnMs ?? TURN_MS,
    });
  }

  #processOptions(): ProcessOptions {
    const { environment, projectDir: cwd } = this.#options;
    const [profile, version, supervisor] = [this.#profile, this.#version, this.#supervisor];
    const answers = new AgentAnswers(); // No agent answers a request here.
    return { profile, version, supervisor, environment, answers, cwd, network: { allow: [] } };
  }

  #request(mode: TurnRequest["mode"], turn: number): TurnRequest {
    const parameters = { prompt: this.#options.prompt ?? PROMPT };
    return {
      sessionId: this.#sessionId,
      turn,
      mode,
      parameters,
      projectDir: this.#options.projectDir,
      executorSessionId: this.#executorSessionId,
    };
  }

  #invocation(version: ProcessOptions["version"]): Readonly<Record<string, unknown>> {
    return invocationOf(version, this.#request("start", 1), this.#profile.config);
  }
}

/** Stands in for the task of a session, and keeps its signals. */
class Recorder {
  readonly reports: StoredReport[] = [];
  readonly task: TaskContext;

  constructor(executor: string, environment: Environment, sessionId: string) {
    const taskId = `${sessionId}-${randomUUID()}`;
    this.task = {
      sessionId,
      taskId,
      attempt: 1,
      overlaps: false,
      idempotencyKey: taskId,
      signal: new AbortController().signal,
      secret: (name) => {
        const value = environment[name];
        if (value !== undefined) return value;
        throw new Error(`the secret ${name} of executor ${executor} is not in the environment`);
      },
      signalSession: async (_name, report) => {
        this.reports.push(report as StoredReport);
        return undefined;
      },
      readSession: async () => undefined,
      remainingBudget: async () => undefined,
      streamToken: () => {},
      progress: () => {},
      reportUsage: () => {},
    };
  }
}

function checkResult({ reports }: Recorder): void {
  const events = reports.flatMap((report) => (report.type === "event" ? [report.event] : []));
  const hasResult = events.some(
    ({ event_type: type, role }) => type === "result" || (type === "message" && role !== "user"),
  );
  if (!hasResult) throw new Error('the turn ended without an event "result" and without a message');
}
