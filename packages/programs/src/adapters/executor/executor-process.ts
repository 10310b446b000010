// One process of an executor and the run gateway that serves it: `ExecutorProcess`.
//
//   - The process gets the invocation on its standard input, the gateway's URL and the session's id in its
//     environment, and secrets only by declaration. It holds no token but that of its gateway, which adds the
//     keys of providers.
//   - A one-shot process takes one turn: exit code 0 completes the turn. A persistent process takes turns
//     until it is asked to shut down; the message `turn_complete` completes a turn.
//   - A turn ends once: by its completion, by the end of the process, or by a message that is none.
//   - After the end of the process nothing of its tree and its gateway is left.

import { clearTimeout, setTimeout } from "node:timers";
import { MIB } from "@holdfast/core";
import {
  namedProviders,
  startRunGateway,
  type NetworkPolicy,
  type RunGateway,
} from "@holdfast/runtime/gateway";
import {
  describeProcessEnd,
  OutputLines,
  Redactor,
  scrubEnvironment,
  type Environment,
} from "@holdfast/system";
import {
  type ProcessReport,
  type ProcessSupervisor,
  type StopOptions,
  type SupervisedProcess,
} from "@holdfast/system/processes";

import type { ExternalTurn } from "../../session/external-agent-protocol.ts";
import { fieldsOf, parseFields, textOrJson, type Fields } from "../../session/fields.ts";
import { childRoutes } from "./child-routes.ts";
import type { ExecutorProfile } from "./profile.ts";
import { reportRoutes, type ReportedResult, type ServedTurn } from "./report-routes.ts";

/** A line above this size is no message. */
const MESSAGE_CHARS_MAX = MIB;
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
  readonly supervisor: ProcessSupervisor;
  /** The environment from which PATH, HOME and their like are taken. */
  readonly environment: Environment;
  readonly cwd: string;
  /** Hosts that the executor may connect to. */
  readonly network: NetworkPolicy;
  /** How long a process may take to end after it was asked to, and again after SIGTERM. 5,000 milliseconds by default. */
  readonly stopStepMs?: number | undefined;
}

/** The end of a turn that its program completed. */
export interface CompletedTurn {
  /** The result in the message that completed the turn. */
  readonly inline?: ReportedResult;
  /** The standard output of a one-shot program. */
  readonly output?: string;
}

/** Why a turn failed. */
export class TurnFailure extends Error {}

/** The completion of a turn that an executor writes itself. */
type TurnEnd = { readonly message: Fields } | { readonly broken: string };

/** A process and its gateway, for the turn that it works on. */
interface Parts {
  readonly process: SupervisedProcess;
  readonly gateway: RunGateway;
  readonly lines: OutputLines;
  received(receiver: (message: Fields) => void): void;
}

export class ExecutorProcess {
  /** Settles when the process has ended and its gateway is closed. */
  readonly ended: Promise<ProcessReport>;
  readonly #options: ProcessOptions;
  readonly #process: SupervisedProcess;
  readonly #lines: OutputLines;
  readonly #served: { turn: ServedTurn };
  #turnEnd = Promise.withResolvers<TurnEnd>();
  #turnId: string;

  private constructor(options: ProcessOptions, parts: Parts, served: { turn: ServedTurn }, turnId: string) {
    this.#options = options;
    this.#process = parts.process;
    this.#lines = parts.lines;
    this.#served = served;
    this.#turnId = turnId;
    parts.received((message) => this.#receive(message));
    this.ended = parts.process.ended.then(async (report) => {
      await parts.gateway.close();
      return report;
    });
  }

  /**
   * Starts the process with its first turn; `finishTurn` waits for the end of that turn.
   *
   * @param invocation makes the object that the program reads, of the address of its gateway and its
   *   variables.
   */
  static async start(
    options: ProcessOptions,
    turn: Pick<ExternalTurn, "task" | "tag">,
    first: ServedTurn,
    invocation: (variables: Readonly<Record<string, string>>) => Readonly<Record<string, unknown>>,
  ): Promise<ExecutorProcess> {
    const { profile, supervisor, environment, cwd, network } = options;
    const { sessionId, taskId } = turn.task;
    const secrets = Object.fromEntries(profile.secrets.map((name) => [name, turn.task.secret(name)]));
    const served = { turn: first };
    const gateway = await startRunGateway({
      run: { sessionId, runId: taskId },
      routes: { ...reportRoutes(() => served.turn), ...childRoutes(() => served.turn) },
      redactor: new Redactor(Object.values(secrets)),
      providers: namedProviders(profile.providers, environment, (name) => turn.task.secret(name)),
      network,
    });
    const isPersistent = profile.lifecycle === "persistent";
    const env = scrubEnvironment(environment, secrets, gateway.env, {
      AGENT_ORCHESTRATOR_API_URL: gateway.url,
      AGENT_ORCHESTRATOR_MCP_URL: `${gateway.url}/mcp`,
      AGENT_SESSION_ID: sessionId,
      AGENT_SESSION_NAME: sessionId,
    });
    const lines = new OutputLines(MESSAGE_CHARS_MAX);
    let receive = (_message: Fields): void => {};
    const begin = (): Promise<SupervisedProcess> =>
      supervisor.start({
        argv: profile.command,
        cwd,
        env,
        input: `${JSON.stringify({ ...invocation(env), ...(isPersistent ? { turn_id: taskId } : {}) })}\n`,
        keepsInputOpen: isPersistent,
        needsOutput: isPersistent,
        outputBytes: OUTPUT_BYTES,
        killGraceMs: options.stopStepMs ?? STOP_STEP_MS,
        tag: turn.tag,
        onOutput: (stream, text) => {
          if (!isPersistent || stream !== "stdout") return;
          for (const line of lines.push(text)) receive(fieldsOf(parseFields(line)));
          if (lines.isTooLong) receive({ type: TOO_LONG });
        },
        ...(profile.timeoutMs === undefined || isPersistent ? {} : { timeoutMs: profile.timeoutMs }),
      });
    let process: SupervisedProcess;
    try {
      process = await begin();
    } catch (error) {
      await gateway.close();
      throw error;
    }
    const parts = { process, gateway, lines, received: (receiver: typeof receive) => (receive = receiver) };
    return new ExecutorProcess(options, parts, served, taskId);
  }

  /** Gives a persistent process its next turn. @returns false when the process does not read any more. */
  async nextTurn(next: ServedTurn, fields: Readonly<Record<string, unknown>>): Promise<boolean> {
    this.#turnEnd = Promise.withResolvers<TurnEnd>();
    this.#turnId = next.turn.task.taskId;
    this.#served.turn = next;
    return this.#process.write(`${JSON.stringify({ type: "turn", turn_id: this.#turnId, ...fields })}\n`);
  }

  /** Waits for the end of the turn. @throws TurnFailure when it failed. */
  finishTurn(): Promise<CompletedTurn> {
    return this.#options.profile.lifecycle === "persistent" ? this.#messageTurn() : this.#exitTurn();
  }

  /** Ends the process: by a request, if it is persistent, then by signals. */
  async stop(reason: string, isUrgent = false): Promise<ProcessReport> {
    const { profile, stopStepMs = STOP_STEP_MS } = this.#options;
    const request = profile.lifecycle === "persistent" ? this.#shutDown(SHUTDOWN, stopStepMs) : {};
    await this.#process.stop(reason, { ...request, isUrgent });
    return this.ended;
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

  async #exitTurn(): Promise<CompletedTurn> {
    const report = await this.ended;
    const { end } = report;
    if (end.type !== "exit" || end.exitCode !== 0) throw new TurnFailure(errorOf(report));
    return { output: report.stdout };
  }

  async #messageTurn(): Promise<CompletedTurn> {
    const { timeoutMs } = this.#options.profile;
    const turnEnd = this.#turnEnd.promise;
    const timer =
      timeoutMs === undefined
        ? undefined
        : setTimeout(() => this.#break(`its turn took longer than ${timeoutMs} ms`), timeoutMs);
    try {
      const first = await Promise.race([turnEnd, this.ended]);
      if ("broken" in first) throw new TurnFailure(first.broken);
      if (!("message" in first)) throw new TurnFailure(this.#endedWithin(first));
      const { error } = first.message;
      if (error !== undefined && error !== null) throw new TurnFailure(textOrJson(error));
      return inlineResult(first.message);
    } finally {
      clearTimeout(timer);
    }
  }

  #receive(message: Fields): void {
    if (message.type === TOO_LONG) return this.#break("one of its messages was longer than a megabyte");
    if (message.type !== "turn_complete") return; // A message of a later protocol.
    const { turn_id: id } = message;
    // An executor that knows no ids sends none.
    if (id === undefined || id === null || id === this.#turnId) this.#turnEnd.resolve({ message });
  }

  #break(why: string): void {
    this.#turnEnd.resolve({ broken: why });
  }

  #endedWithin(report: ProcessReport): string {
    const half = this.#lines.rest.trim() === "" ? "" : "; its last message has no end";
    return `it ended before it completed its turn: ${errorOf(report)}${half}`;
  }
}

/** An executor may write its result into the message that completes the turn. */
function inlineResult(message: Fields): CompletedTurn {
  const { result, result_text = typeof result === "string" ? result : undefined } = message;
  const { result_data = typeof result === "object" && result !== null ? result : undefined } = message;
  return result_text === undefined && result_data === undefined
    ? {}
    : { inline: { result_text, result_data } };
}

/** The error of a process that did not end with exit code 0: its own text, and the exact cause of its end. */
function errorOf({ end, stdout, stderr, isCut }: ProcessReport): string {
  const [error, output] = [stderr.trim(), stdout.trim()];
  const text = error === "" ? (output === "" ? "" : `(stdout) ${output}`) : error;
  const cause = end.type === "exit" ? `Process exited with code ${end.exitCode}` : describeProcessEnd(end);
  const mark = isCut || text.length > ERROR_CHARS ? "; only the end of its output is shown" : "";
  return text === "" ? cause : `${text.slice(-ERROR_CHARS)} (${cause}${mark})`;
}
