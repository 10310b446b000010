// `checkExecutor` checks a program against the protocol of executors, as a user's own executor is checked
// before its first session. It runs the program over a run gateway, and needs no coordinator and no storage.
//
//   executor-conformance-1  It prints a JSON Schema for `--schema` that names a schema version.
//   executor-conformance-2  A start ends with a result.
//   executor-conformance-3  It binds an id of its own during the start.
//   executor-conformance-4  A resume ends with a result.
//   executor-conformance-5  Input that is no invocation ends it with an exit code above 0 and an error text. It
//       sends no request before. A crash is no refusal: its text is a stack trace, or the same for an invocation.
//   executor-conformance-6  It refuses a schema version that it does not know, in the same way.
//   executor-conformance-7  It ends within five seconds of SIGTERM.
//   executor-conformance-8  A persistent one takes a second turn in the same process.
//   executor-conformance-9  A persistent one ends at `shutdown` and at the end of its input, with exit code 0.

import { describeProcessEnd, scrubEnvironment, type Environment } from "@holdfast/system";
import { ProcessSupervisor } from "@holdfast/system/processes";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

import type { ExternalEnd, ExternalTurn } from "../../session/external-agent-protocol.ts";
import { turnAlone } from "../../session/program/turn-alone.ts";
import { SHUTDOWN } from "./executor-process.ts";
import type { ExecutorTurn } from "./executor-turn.ts";
import { Executor } from "./executor.ts";
import { invocationOf, newestVersionIn, type SchemaVersion } from "./invocation.ts";
import type { ExecutorProfile } from "./profile.ts";

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
  /** As for `Executor`. */
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

/** How programs of Python, Node, Java, Go, Rust and Ruby end with an error that they did not expect. */
const STACK_TRACE =
  /^Traceback \(most recent call last\)|^\s+at .+:\d+(?::\d+)?\)?$|^Exception in thread |^goroutine \d+ \[|^thread '.*' .*panicked at |^\s+from .+:\d+:in /;

/** A clause that does not apply. */
class Skipped extends Error {}

/**
 * Checks a program against all clauses of the protocol of executors, in their order. Never rejects: a program
 * that cannot be started fails its clauses.
 */
export async function checkExecutor(
  profile: ExecutorProfile,
  options: CheckOptions,
): Promise<readonly CheckedClause[]> {
  const check = new Check(profile, options);
  const checked: CheckedClause[] = [];
  try {
    for (const [number, what, run] of check.clauses()) {
      const clause = { clause: `${PREFIX}${number}`, what, ...(await outcomeOf(run)) };
      checked.push(clause);
      options.onClause?.(clause);
    }
  } finally {
    await check.close();
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
  /** For programs that get no gateway. */
  readonly #supervisor: ProcessSupervisor;
  readonly #sessionId = `ses_${randomUUID()}`;
  #executor: Executor;
  #executorSessionId: string | null = null;
  #version: SchemaVersion;
  #hasStarted = false;
  #invoked: Promise<string | undefined> | undefined;

  constructor(profile: ExecutorProfile, options: CheckOptions) {
    this.#version = profile.schemaVersion ?? "2.0";
    this.#profile = { ...profile, timeoutMs: options.turnMs ?? TURN_MS };
    this.#options = options;
    this.#supervisor = new ProcessSupervisor({
      environment: options.environment,
      namespaces: "if_available",
    });
    this.#executor = this.#executorOf(this.#version);
  }

  async close(): Promise<void> {
    await this.#executor.close();
    await this.#supervisor.close("the check is over");
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
    this.#executor = this.#executorOf(this.#version);
  }

  async #start(): Promise<void> {
    await this.#turn("start");
    this.#hasStarted = true;
  }

  async #bound(): Promise<void> {
    if (!this.#hasStarted) throw new Skipped("the start failed");
    if (this.#executorSessionId === null)
      throw new Error("no POST /bind came: the program cannot find its conversation again after a crash");
  }

  async #resume(): Promise<void> {
    if (!this.#hasStarted) throw new Skipped("the start failed");
    await this.#turn("resume");
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
    const tag = `check:${randomUUID()}`;
    answered((await this.#begin("start", tag)).end);
    const first = this.#executor.takeWarm(tag);
    if (first === undefined) throw new Error("the program ended after its first turn");
    this.#executor.keepWarm(tag, first);
    const { end } = await this.#begin("sendMessage", tag);
    const second = this.#executor.takeWarm(tag);
    await second?.stop("the check is over");
    if (end.type === "answered" && second !== first)
      throw new Error("the program ended after its first turn");
    answered(end);
  }

  async #shutsDown(): Promise<void> {
    this.#onlyPersistent();
    for (const [what, message] of [
      ["shutdown", SHUTDOWN],
      ["the end of its input", ""],
    ] as const) {
      const tag = `check:${randomUUID()}`;
      await this.#begin("start", tag);
      const process = this.#executor.takeWarm(tag);
      if (process === undefined) throw new Error(`${what}: the program ended after its first turn`);
      const { end } = await process.shutDown(message, STOP_MS);
      const isGood =
        end.type === "exit" ? end.exitCode === 0 : end.type === "stopped" && end.means === "request";
      if (!isGood) throw new Error(`${what}: ${describeProcessEnd(end)}`);
    }
  }

  #onlyPersistent(): void {
    if (this.#profile.lifecycle !== "persistent") throw new Skipped("the profile is not persistent");
    if (!this.#hasStarted) throw new Skipped("the start failed");
  }

  /** One turn that must be answered. */
  async #turn(mode: "start" | "resume"): Promise<void> {
    const tag = `check:${randomUUID()}`;
    const { end } = await this.#begin(mode, tag);
    await this.#executor.takeWarm(tag)?.stop("its turn is over");
    answered(end);
  }

  async #begin(
    member: "start" | "sendMessage" | "resume",
    tag: string,
  ): Promise<{ readonly turn: ExecutorTurn; readonly end: ExternalEnd }> {
    const turn = await this.#executor[member](this.#turnOf(tag));
    turn.subscribe((event) => {
      if (event.type === "session_started") this.#executorSessionId = event.boundId;
    });
    return { turn, end: await turn.ended };
  }

  /** A program that goes on is known by its first request, whether or not it fails later. */
  async #refuses(what: string, input: string): Promise<void> {
    const gateway = await openListener();
    const { end, stderr, stdout } = await this.#runRaw(input, [], gateway.url).finally(gateway.close);
    if (gateway.requests.length > 0)
      throw new Error(
        `with ${what} as its input it must end before it reports anything, and it went on: ${gateway.requests[0]}`,
      );
    if (end.type !== "exit" || end.exitCode === 0)
      throw new Error(
        `with ${what} as its input it must end with an exit code above 0, and it ended with ${describeProcessEnd(end)}`,
      );
    const said = `${stderr}${stdout}`.trim();
    if (said === "")
      throw new Error(
        `with ${what} as its input it ended with exit code ${end.exitCode}, and wrote no error to standard error`,
      );
    const trace = said.split("\n").find((line) => STACK_TRACE.test(line));
    if (trace !== undefined)
      throw new Error(
        `with ${what} as its input it must say what is wrong with it, and it crashed: ${trace.trim().slice(0, 200)}`,
      );
    if (said === (await this.#endOfInvocation()))
      throw new Error(
        `with ${what} as its input it ended as it does with an invocation, so it may have crashed: ${said.slice(0, 200)}`,
      );
  }

  /** The text with which it ends for an invocation outside of a session; `undefined` if it goes on with it. */
  #endOfInvocation(): Promise<string | undefined> {
    return (this.#invoked ??= this.#invokeRaw());
  }

  async #invokeRaw(): Promise<string | undefined> {
    const gateway = await openListener();
    const input = JSON.stringify(this.#invocation(this.#version));
    const { end, stderr, stdout } = await this.#runRaw(input, [], gateway.url).finally(gateway.close);
    const isRefused = gateway.requests.length === 0 && !(end.type === "exit" && end.exitCode === 0);
    return isRefused ? `${stderr}${stdout}`.trim() : undefined;
  }

  /** Runs the program without the gateway of a session: it must not need one to refuse its input. */
  async #runRaw(input: string, args: readonly string[], url?: string) {
    return (await this.#startRaw(input, args, false, url)).ended;
  }

  #startRaw(input: string, args: readonly string[], keepsInputOpen: boolean, url = "http://127.0.0.1:9") {
    const { environment, projectDir } = this.#options;
    const secrets = Object.fromEntries(this.#profile.secrets.map((name) => [name, environment[name] ?? ""]));
    const env = { AGENT_ORCHESTRATOR_API_URL: url, AGENT_SESSION_ID: this.#sessionId };
    return this.#supervisor.start({
      argv: [...this.#profile.command, ...args],
      cwd: projectDir,
      env: scrubEnvironment(environment, secrets, env),
      input,
      keepsInputOpen,
      timeoutMs: this.#options.turnMs ?? TURN_MS,
    });
  }

  #executorOf(schemaVersion: SchemaVersion): Executor {
    const { environment, projectDir } = this.#options;
    return new Executor({ profile: { ...this.#profile, schemaVersion }, environment, projectDir });
  }

  /** Stands in for a turn of a session. */
  #turnOf(tag: string): ExternalTurn {
    const { environment, projectDir, prompt = PROMPT } = this.#options;
    return {
      intent: {
        agentSessionId: this.#sessionId,
        folder: projectDir,
        program: this.#profile.command[0],
        version: this.#version,
        model: null,
        permissionMode: "default",
      },
      boundId: this.#executorSessionId,
      prompt,
      parameters: { prompt },
      tag,
      ...turnAlone(this.#sessionId, (name) => {
        const value = environment[name];
        if (value !== undefined) return value;
        throw new Error(`the secret ${name} of executor ${this.#profile.name} is not in the environment`);
      }),
    };
  }

  #invocation(version: SchemaVersion): Readonly<Record<string, unknown>> {
    const { projectDir } = this.#options;
    return invocationOf(version, "start", this.#turnOf("check"), projectDir, this.#profile.config);
  }
}

/** Stands in for the gateway of a session: takes each request, and notes it. */
async function openListener() {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    request.resume().on("end", () => response.setHeader("content-type", "application/json").end("{}"));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  return { requests, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}

/** @throws Error for a turn that was not answered. */
function answered(end: ExternalEnd): void {
  if (end.type === "answered") return;
  throw new Error("message" in end ? end.message : `the turn ended without an answer (${end.type})`);
}
