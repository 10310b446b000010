// One process of an executor and the run gateway that serves it: `ExecutorProcess`.
//
//   executor-process-1. The process gets the invocation on its standard input, the gateway's URL and the session's id in
//       its environment, and secrets only by declaration. It holds no token but that of its gateway, which adds the keys of
//       providers.
//   executor-process-2. A one-shot process takes one turn: exit code 0 completes the turn. A persistent process takes turns
//       until it is asked to shut down; the message `turn_complete` completes a turn.
//   executor-process-3. A turn ends once: by its completion, by the end of the process, or by a message that is none.
//   executor-process-4. After the end of the process nothing of its tree and its gateway is left.

import { NonRetryableError, type TaskContext } from "@holdfast/runtime";
import {
  describeProcessEnd,
  isUrgentAbort,
  Redactor,
  scrubEnvironment,
  type Environment,
  type ProcessReport,
  type ProcessSupervisor,
  type StopOptions,
  type SupervisedProcess,
} from "@holdfast/system";

import {
  namedProviders,
  startRunGateway,
  type NetworkPolicy,
  type RunGateway,
} from "@holdfast/runtime/gateway";
import { childRoutes } from "./child-routes.ts";
import { invocationOf, promptOf, type SchemaVersion, type TurnRequest } from "./invocation.ts";
import { MessageLines, type Message } from "./message-lines.ts";
import type { ExecutorProfile } from "./profile.ts";
import { reportRoutes, TurnReports, type AgentAnswers, type ReportTarget } from "./turn-reports.ts";

/** Output kept of one process, both streams together. */
const OUTPUT_BYTES = 256 * 1024;
const ERROR_CHARS = 2_000;
/** The message that asks a persistent process to end. */
export const SHUTDOWN = '{"type":"shutdown"}\n';
/** How long each step of a stop takes at most, while the session continues: the request to shut down, SIGTERM. */
const STOP_STEP_MS = 5_000;
/** Stands for a line that is too long to be a message. No message has such a type. */
const TOO_LONG = "\0too long";

export interface ProcessOptions {
  readonly profile: ExecutorProfile;
  readonly version: SchemaVersion;
  readonly supervisor: ProcessSupervisor;
  /** The environment from which PATH, HOME and their like are taken. */
  readonly environment: Environment;
  readonly cwd: string;
  /** The answers of the session's agent to requests of the executor. */
  readonly answers: AgentAnswers;
  /** Hosts that the executor may connect to. */
  readonly network: NetworkPolicy;
  /** How long a process may take to end after it was asked to, and again after SIGTERM. 5,000 milliseconds by default. */
  readonly stopStepMs?: number | undefined;
}

/** The completion of a turn that an executor writes itself. */
type TurnEnd = { readonly message: Message } | { readonly broken: string };

export class ExecutorProcess {
  /** Settles when the process has ended and its gateway is closed. */
  readonly ended: Promise<ProcessReport>;
  readonly #options: ProcessOptions;
  readonly #process: SupervisedProcess;
  readonly #lines: MessageLines;
  readonly #target: ReportTarget & { reports: TurnReports };
  #turnEnd = Promise.withResolvers<TurnEnd>();
  #turnId = "";

  private constructor(options: ProcessOptions, parts: Parts) {
    this.#options = options;
    this.#process = parts.process;
    this.#lines = parts.lines;
    this.#target = parts.target;
    parts.received((message) => this.#receive(message));
    this.ended = parts.process.ended.then(async (report) => {
      await parts.gateway.close();
      return report;
    });
  }

  /** Starts the process with its first turn; `finishTurn` waits for the end of that turn. */
  static async start(
    options: ProcessOptions,
    request: TurnRequest,
    task: TaskContext,
  ): Promise<ExecutorProcess> {
    const { profile, version, supervisor, environment, cwd, network, answers } = options;
    const secrets = Object.fromEntries(profile.secrets.map((name) => [name, task.secret(name)]));
    const target = {
      reports: new TurnReports(task, request.turn, answers),
      executorSessionId: request.executorSessionId,
      projectDir: cwd,
      executor: profile.name,
    };
    const gateway = await startRunGateway({
      run: { sessionId: task.sessionId, runId: task.taskId },
      routes: { ...reportRoutes(() => target), ...childRoutes(() => target) },
      redactor: new Redactor(Object.values(secrets)),
      providers: namedProviders(profile.providers, environment, (name) => task.secret(name)),
      network,
    });
    const isPersistent = profile.lifecycle === "persistent";
    const invocation = invocationOf(version, request, profile.config);
    const turnId = String(request.turn);
    const lines = new MessageLines();
    let receive = (_message: Message): void => {};
    const process = await supervisor.start({
      argv: profile.command,
      cwd,
      env: environmentOf(environment, secrets, gateway, task.sessionId),
      input: `${JSON.stringify(isPersistent ? { ...invocation, turn_id: turnId } : invocation)}\n`,
      keepsInputOpen: isPersistent,
      needsOutput: isPersistent,
      outputBytes: OUTPUT_BYTES,
      killGraceMs: options.stopStepMs ?? STOP_STEP_MS,
      tag: tagOf(task.sessionId),
      onOutput: (stream, text) => {
        if (!isPersistent || stream !== "stdout") return;
        for (const message of lines.push(text)) receive(message);
        if (lines.isTooLong) receive({ type: TOO_LONG });
      },
      ...(profile.timeoutMs === undefined || isPersistent ? {} : { timeoutMs: profile.timeoutMs }),
    });
    const started = new ExecutorProcess(options, {
      process,
      gateway,
      lines,
      target,
      received: (receiver) => (receive = receiver),
    });
    started.#turnId = turnId;
    return started;
  }

  /** Gives a persistent process its next turn. @returns false when the process does not read any more. */
  async nextTurn(request: TurnRequest, task: TaskContext): Promise<boolean> {
    this.#turnEnd = Promise.withResolvers<TurnEnd>();
    this.#turnId = String(request.turn);
    this.#target.reports = new TurnReports(task, request.turn, this.#options.answers);
    const { parameters } = request;
    const turn = { type: "turn", turn_id: this.#turnId, prompt: promptOf(parameters), parameters };
    return this.#process.write(`${JSON.stringify(turn)}\n`);
  }

  /** Waits for the end of the turn. @returns the number of its reports. @throws NonRetryableError when it failed. */
  async finishTurn(signal: AbortSignal): Promise<number> {
    const onAbort = (): void => void this.stop("its session was stopped", isUrgentAbort(signal));
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    try {
      return await (this.#options.profile.lifecycle === "persistent"
        ? this.#messageTurn()
        : this.#exitTurn());
    } finally {
      signal.removeEventListener("abort", onAbort);
      await this.endReports();
    }
  }

  /** Refuses further reports of the turn. @returns the number of its reports. */
  endReports(): Promise<number> {
    return this.#target.reports.end();
  }

  /** Ends the process: by a request, if it is persistent, then by signals. */
  async stop(reason: string, isUrgent = false): Promise<void> {
    const { profile, stopStepMs = STOP_STEP_MS } = this.#options;
    const request = profile.lifecycle === "persistent" ? this.#shutDown(SHUTDOWN, stopStepMs) : {};
    await this.#process.stop(reason, { ...request, isUrgent });
    await this.ended;
  }

  /** Writes a last message, or nothing, and closes the input. The process has this long to end before it gets signals. */
  shutDown(message: string, waitMs: number): Promise<ProcessReport> {
    return this.#process.stop("it was asked to shut down", this.#shutDown(message, waitMs));
  }

  #shutDown(message: string, askMs: number): StopOptions {
    const ask = (): void => {
      if (message !== "") void this.#process.write(message);
      this.#process.closeInput();
    };
    return { ask, askMs };
  }

  async #exitTurn(): Promise<number> {
    const report = await this.ended;
    const { end } = report;
    if (end.type !== "exit" || end.exitCode !== 0) throw this.#failed(errorOf(report));
    return this.endReports();
  }

  async #messageTurn(): Promise<number> {
    const { timeoutMs } = this.#options.profile;
    const turnEnd = this.#turnEnd.promise;
    const timer =
      timeoutMs === undefined
        ? undefined
        : setTimeout(() => this.#break(`its turn took longer than ${timeoutMs} ms`), timeoutMs);
    try {
      const first = await Promise.race([turnEnd, this.ended]);
      if ("broken" in first) {
        await this.stop(first.broken);
        throw this.#failed(first.broken);
      }
      if (!("message" in first)) throw this.#failed(this.#endedWithin(first));
      const { error } = first.message;
      if (error !== undefined && error !== null)
        throw this.#failed(typeof error === "string" ? error : JSON.stringify(error));
      await this.#reportInline(first.message);
      return await this.endReports();
    } finally {
      clearTimeout(timer);
    }
  }

  /** An executor may write its result into the message that completes the turn. */
  async #reportInline(message: Message): Promise<void> {
    const { result, result_text = typeof result === "string" ? result : undefined } = message;
    const { result_data = typeof result === "object" && result !== null ? result : undefined } = message;
    if (result_text === undefined && result_data === undefined) return;
    const event = { event_type: "result", result_text, result_data };
    await this.#target.reports.add({ type: "event", event });
  }

  #receive(message: Message): void {
    if (message.type === TOO_LONG) return this.#break("one of its messages was longer than a megabyte");
    if (message.type !== "turn_complete") return; // A message of a later protocol.
    const { turn_id: id } = message;
    // An executor that knows no ids sends none.
    if (id === undefined || id === null || id === this.#turnId || id === Number(this.#turnId))
      this.#turnEnd.resolve({ message });
  }

  #break(why: string): void {
    this.#turnEnd.resolve({ broken: why });
  }

  #endedWithin(report: ProcessReport): string {
    const half = this.#lines.rest === "" ? "" : "; its last message has no end";
    return `it ended before it completed its turn: ${errorOf(report)}${half}`;
  }

  #failed(why: string): NonRetryableError {
    return new NonRetryableError(`executor ${this.#options.profile.name}: ${why}`);
  }
}

/** Marks the processes of a session's executor, for whichever process looks for them. */
export function tagOf(sessionId: string): string {
  return `executor:${sessionId}`;
}

interface Parts {
  readonly process: SupervisedProcess;
  readonly gateway: RunGateway;
  readonly lines: MessageLines;
  readonly target: ReportTarget & { reports: TurnReports };
  received(receiver: (message: Message) => void): void;
}

function environmentOf(
  environment: Environment,
  secrets: Environment,
  gateway: RunGateway,
  sessionId: string,
): Record<string, string> {
  return scrubEnvironment(environment, secrets, gateway.env, {
    AGENT_ORCHESTRATOR_API_URL: gateway.url,
    AGENT_SESSION_ID: sessionId,
    AGENT_SESSION_NAME: sessionId,
  });
}

/** The error of a process that did not end with exit code 0: its own text, and the exact cause of its end. */
function errorOf({ end, stdout, stderr, isCut }: ProcessReport): string {
  const [error, output] = [stderr.trim(), stdout.trim()];
  const text = error === "" ? (output === "" ? "" : `(stdout) ${output}`) : error;
  const cause = end.type === "exit" ? `Process exited with code ${end.exitCode}` : describeProcessEnd(end);
  const mark = isCut || text.length > ERROR_CHARS ? "; only the end of its output is shown" : "";
  return text === "" ? cause : `${text.slice(-ERROR_CHARS)} (${cause}${mark})`;
}
