// The adapter for Claude Code (`ClaudeCode`): the user's own program, over its stream-json protocol.
//
//   - A process carries out one turn: the prompt goes in, the result comes out, its input is closed, it ends.
//   - A turn is aborted in steps: a request to interrupt, the end of its input, SIGTERM, SIGKILL to the whole
//     tree. A process that left its group is found by its environment (`process-tree.ts`).
//   - No output grows without a limit: lines, the queue of events before a subscriber comes, the text kept
//     for errors.
//   - Keys that the program knows are replaced in all that it writes.
//   - The program of the way back gets its token by a file (`way-back-file.ts`), and no command of the model
//     does. Its tools are allowed, because they do no more than the session permits.
//
// Without PID namespaces: the tools of the agent are the user's, and the program names sockets in /tmp by its
// process id.

import { randomUUID } from "node:crypto";
import { EventEmitter } from "node:events";
import {
  endTagged,
  OutputLines,
  ProcessSupervisor,
  Redactor,
  type Environment,
  type ProcessReport,
  type SupervisedProcess,
} from "@holdfast/system";

import { hostEnvironment } from "@holdfast/workspace";
import {
  CLAUDE_KEYS,
  CLAUDE_PROGRAM_KEYS,
  claudeEnvironment,
  claudeFolder,
  claudeKeys,
  claudeTraces,
  isAnthropicApi,
} from "./claude-environment.ts";
import { claudeCall } from "./claude-tools.ts";
import { ClaudeMessages, type UnanswerableRequest } from "./claude-messages.ts";
import { ClaudeOptions } from "./claude-options.ts";
import { claudeRecordedCalls } from "./claude-record.ts";
import { writeWayBack } from "./way-back-file.ts";
import { claudeAnswer } from "./claude-questions.ts";
import {
  AGENT_PROCESS,
  EventQueue,
  LINE_TOO_LONG,
  type StopLimits,
  TOO_MANY_EVENTS,
  whyDied,
  withProcess,
} from "../../session/program/agent-process.ts";
import type {
  AgentTraces,
  ChosenProgram,
  Delivery,
  ExternalAgent,
  ExternalAgentCapabilities,
  ExternalAgentProtocol,
  ExternalEnd,
  ExternalEvent,
  ExternalTurn,
  OwnFolders,
  PermissionAnswer,
  PermissionRequest,
  Queueing,
  RecordedCalls,
  RuledCall,
} from "../../session/external-agent-protocol.ts";
import {
  CHOSEN_FIELDS,
  chosenFolders,
  chosenProgram,
  findProgram,
  locateProgram,
} from "../../session/program/find-program.ts";
import { keyAccess, withGateway, withoutKeysOf, type KeyAccess } from "../../session/keys/program-keys.ts";
import type { Fields } from "../../session/fields.ts";
import type { WayBack } from "../../session/way-back/way-back.ts";
import { WAY_BACK } from "../../session/way-back/way-back-tools.ts";

const PROGRAM = {
  name: "claude",
  title: "Claude Code",
  versionMin: "2.0.0",
  install: "npm install -g @anthropic-ai/claude-code",
};

/** From the result of the turn to the end of the process. */
const EXIT_MS = 10_000;
/** Options of `new ClaudeCode`. */
export interface ClaudeCodeOptions {
  /** The environment of this process by default. */
  readonly environment?: Environment;
  /** The folder in which the program is asked for its version. */
  readonly folder: string;
  readonly stopLimits?: StopLimits | undefined;
}

/** The adapter for Claude Code. */
export class ClaudeCode implements ExternalAgentProtocol {
  readonly name = "claude-code";
  readonly keys = CLAUDE_KEYS;
  readonly #environment: Environment;
  readonly #folder: string;
  readonly #supervisor: ProcessSupervisor;
  readonly #options: ClaudeOptions;
  readonly #stopLimits: StopLimits;

  constructor({ environment = hostEnvironment, folder, stopLimits = AGENT_PROCESS }: ClaudeCodeOptions) {
    this.#environment = environment;
    this.#folder = folder;
    this.#supervisor = new ProcessSupervisor({ environment, namespaces: "never" });
    this.#options = new ClaudeOptions(this.#supervisor);
    this.#stopLimits = stopLimits;
  }

  capabilities(chosen?: ChosenProgram): ExternalAgentCapabilities {
    const isPriced = isAnthropicApi(claudeEnvironment(this.#environment, chosen));
    return {
      steer: "inject",
      followUp: "queue",
      resume: "id",
      usage: "message",
      model: true,
      ...(isPriced ? { pricePrefix: "anthropic/" } : {}),
      takesEditedInput: true,
      profileFields: ["settings", "mcpServers", ...CHOSEN_FIELDS],
      signIn: "run `claude` and enter /login, or set ANTHROPIC_API_KEY",
    };
  }

  find(chosen?: ChosenProgram): Promise<{ readonly program: string; readonly version: string }> {
    const names = [...this.keys, ...(chosen?.keys ?? [])];
    const environment = withoutKeysOf(claudeEnvironment(this.#environment, chosen), names);
    return findProgram(chosenProgram(PROGRAM, chosen), this.#supervisor, environment, this.#folder);
  }

  locate(chosen?: ChosenProgram): string {
    return locateProgram(chosenProgram(PROGRAM, chosen), claudeEnvironment(this.#environment), this.#folder);
  }

  start(turn: ExternalTurn): Promise<ExternalAgent> {
    return this.#begin(turn, ["--session-id", turn.intent.agentSessionId]);
  }

  sendMessage(turn: ExternalTurn): Promise<ExternalAgent> {
    return this.resume(turn);
  }

  resume(turn: ExternalTurn): Promise<ExternalAgent> {
    return this.#begin(turn, ["--resume", turn.intent.agentSessionId]);
  }

  ruledCall(call: Pick<PermissionRequest, "tool" | "input">, folder: string): RuledCall {
    return claudeCall(call, folder);
  }

  ownFolders(chosen?: ChosenProgram): OwnFolders | undefined {
    return chosenFolders({ written: [claudeFolder(this.#environment)], read: [] }, chosen);
  }

  keyAccess(chosen?: ChosenProgram): KeyAccess {
    return keyAccess({ keys: this.keys, programKeys: CLAUDE_PROGRAM_KEYS }, this.#environment, chosen);
  }

  recordedCalls(lines: readonly Fields[], from: number, chosen?: ChosenProgram): RecordedCalls {
    return claudeRecordedCalls(
      lines.slice(from),
      isAnthropicApi(claudeEnvironment(this.#environment, chosen)),
    );
  }

  traces({ intent }: Pick<ExternalTurn, "intent">): AgentTraces {
    return claudeTraces(this.#environment, intent);
  }

  async endLost(tag: string): Promise<void> {
    await endTagged(tag);
  }

  async #begin(
    {
      intent,
      prompt,
      tag,
      wayBack,
      gateway,
      costMicroUsdMax,
      onLine,
      enclose = (argv) => argv,
    }: ExternalTurn,
    session: readonly string[],
  ): Promise<ExternalAgent> {
    const own = claudeEnvironment(this.#environment, intent.profile);
    const environment = withGateway(own, gateway);
    const keys = claudeKeys(this.#environment, intent.profile);
    const tokens = [wayBack, gateway].flatMap((one) => one?.token ?? []);
    const output = new ClaudeOutput(new Redactor([...keys, ...tokens]), {
      sessionId: intent.agentSessionId,
      isPriced: isAnthropicApi(own),
    });
    if (onLine !== undefined) output.changes.on("line", onLine);
    const place = { env: environment, cwd: intent.folder };
    const budget = await this.#options.budget(intent.program, costMicroUsdMax, place);
    const file = wayBack === undefined ? undefined : writeWayBack(wayBack);
    const argv = [
      intent.program,
      "-p",
      "--input-format",
      "stream-json",
      "--output-format",
      "stream-json",
      "--verbose",
      "--include-partial-messages",
      "--permission-mode",
      intent.permissionMode,
      "--permission-prompt-tool",
      "stdio",
      ...(intent.model === null ? [] : ["--model", intent.model]),
      ...(wayBack === undefined || file === undefined ? [] : wayBackArguments(wayBack, file.path)),
      ...profileArguments(intent.profile),
      ...budget,
      ...session,
    ] as const;
    const process = await this.#supervisor.start({
      argv: enclose(argv, environment, file === undefined ? [] : [file.path]),
      cwd: intent.folder,
      env: environment,
      input: userMessage(prompt, randomUUID()),
      keepsInputOpen: true,
      needsOutput: true,
      outputBytes: AGENT_PROCESS.outputBytes,
      killGraceMs: AGENT_PROCESS.graceMs,
      tag,
      onOutput: (stream, text) => {
        if (stream === "stdout") output.push(text);
      },
    });
    if (file !== undefined) {
      // The program has read its settings before it says that it begins.
      output.changes.on("line", (line) => {
        if (/"subtype":\s*"init"/.test(line)) file.remove();
      });
      void process.ended.then(() => file.remove());
    }
    return new ClaudeTurn(process, output, this.#stopLimits);
  }
}

/** The output of one process: its events, and what decides that the turn is over. */
class ClaudeOutput {
  /** Emits `over` when the turn has its result or its output cannot be used. */
  readonly changes = new EventEmitter<{ over: []; line: [string] }>();
  readonly messages: ClaudeMessages;
  readonly redactor: Redactor;
  broken: string | undefined;
  readonly events = new EventQueue();
  readonly #lines = new OutputLines(AGENT_PROCESS.lineChars);

  constructor(redactor: Redactor, session: ConstructorParameters<typeof ClaudeMessages>[1]) {
    this.redactor = redactor;
    this.messages = new ClaudeMessages((event) => this.events.give(event), session);
  }

  get isOver(): boolean {
    return this.broken !== undefined || this.messages.end !== undefined;
  }

  push(text: string): void {
    if (this.broken !== undefined) return;
    for (const line of this.#lines.push(text)) {
      const redacted = this.redactor.text(line);
      this.messages.line(redacted);
      this.changes.emit("line", redacted);
    }
    if (this.#lines.isTooLong) this.broken = LINE_TOO_LONG;
    if (this.events.isOverflowing) this.broken = TOO_MANY_EVENTS;
    if (this.isOver) this.changes.emit("over");
  }
}

class ClaudeTurn implements ExternalAgent {
  readonly ended: Promise<ExternalEnd>;
  readonly #process: SupervisedProcess;
  readonly #output: ClaudeOutput;
  readonly #limits: StopLimits;
  readonly #followUps: string[] = [];
  #isAborted = false;
  #isFinished = false;

  constructor(process: SupervisedProcess, output: ClaudeOutput, limits: StopLimits) {
    this.#process = process;
    this.#output = output;
    this.#limits = limits;
    output.changes.on("line", () => {
      for (const request of output.messages.takeUnanswerable()) void this.#refuse(request);
    });
    output.changes.on("over", () => this.#over());
    if (output.isOver) this.#over();
    this.ended = process.ended.then((report) => withProcess(this.#endOf(report), report));
  }

  subscribe(subscriber: (event: ExternalEvent) => void): void {
    this.#output.events.subscribe(subscriber);
  }

  async steer(text: string): Promise<Delivery> {
    if (this.#output.isOver) return "rejected";
    const id = randomUUID();
    const taken = new Promise<boolean>((resolve) => {
      this.#output.changes.on("line", (line) => {
        if (line.includes(id) && /"state":\s*"(started|completed)"/.test(line)) resolve(true);
      });
      void this.ended.then(() => resolve(false));
    });
    if (!(await this.#process.write(userMessage(text, id)))) return "rejected";
    return (await taken) ? "injected" : "rejected";
  }

  followUp(text: string): Promise<Queueing> {
    if (this.#output.isOver || this.#isAborted) return Promise.resolve("rejected");
    this.#followUps.push(text);
    return Promise.resolve("queued");
  }

  async answerPermission(requestId: string, answer: PermissionAnswer): Promise<boolean> {
    const request = this.#output.isOver ? undefined : this.#output.messages.takeRequest(requestId);
    if (request === undefined) return false;
    const response = claudeAnswer(request, answer);
    return this.#respond({ subtype: "success", request_id: requestId, response });
  }

  /** A request of a kind that this adapter does not know. */
  #refuse({ id, name }: UnanswerableRequest): Promise<boolean> {
    return this.#respond({
      subtype: "error",
      request_id: id,
      error: `Holdfast does not support the request ${name}`,
    });
  }

  #respond(response: object): Promise<boolean> {
    return this.#process.write(`${JSON.stringify({ type: "control_response", response })}\n`);
  }

  suspend(): Promise<ExternalEnd> {
    this.#process.closeInput(); // The program then ends its turn and exits.
    return this.ended;
  }

  abort(isUrgent = false): Promise<ExternalEnd> {
    this.#isAborted = true;
    const ask = (): void => {
      const request = { subtype: "interrupt", cancel_queued: true };
      void this.#process.write(
        `${JSON.stringify({ type: "control_request", request_id: randomUUID(), request })}\n`,
      );
      this.#process.closeInput();
    };
    void this.#process.stop("its turn was aborted", { ask, ...this.#limits, isUrgent });
    return this.ended;
  }

  /** An answer with messages behind it ends no turn: the program takes the next one on its input. */
  #over(): void {
    if (this.#isFinished) return;
    const { broken, messages, events } = this.#output;
    const isAnswered = broken === undefined && messages.end?.type === "answered" && !this.#isAborted;
    const text = isAnswered ? this.#followUps.shift() : undefined;
    if (text === undefined) {
      this.#isFinished = true;
      return this.#finish();
    }
    events.give({ type: "follow_up", text });
    messages.next();
    void this.#process.write(userMessage(text, randomUUID()));
  }

  #finish(): void {
    if (this.#output.broken !== undefined) {
      void this.#process.stop(this.#output.broken, { graceMs: 0 });
      return;
    }
    // Another session than ours may already work.
    if (this.#output.messages.end?.type === "unknown_session") {
      void this.#process.stop("it opened another session", this.#limits);
      return;
    }
    this.#process.closeInput();
    const timer = setTimeout(() => void this.#process.stop("it did not end after its turn"), EXIT_MS);
    void this.#process.ended.then(() => clearTimeout(timer));
  }

  #endOf(report: ProcessReport): ExternalEnd {
    const { messages, broken, redactor } = this.#output;
    if (broken !== undefined) return { type: "broken", message: broken };
    if (messages.end !== undefined) return messages.end;
    if (this.#isAborted) return { type: "aborted" };
    const message = whyDied(report, redactor, garbageText(messages.garbage));
    return { type: "died", message, hasStarted: messages.hasStarted };
  }
}

function profileArguments(profile: ExternalTurn["intent"]["profile"]): readonly string[] {
  const { settings = null, mcpFile = null } = profile ?? {};
  return [
    ...(settings === null ? [] : ["--settings", settings]),
    ...(mcpFile === null ? [] : ["--mcp-config", mcpFile]),
  ];
}

function garbageText(garbage: string | undefined): string {
  return garbage === undefined ? "" : `it wrote a line that is no JSON: ${JSON.stringify(garbage)}`;
}

function wayBackArguments({ tools }: WayBack, file: string): readonly string[] {
  return [
    "--mcp-config",
    file,
    "--allowedTools",
    tools.map(({ name }) => `mcp__${WAY_BACK}__${name}`).join(","),
  ];
}

/**
 * `client_composed` keeps the program from reading commands and names of files in a text that a machine may
 * have written.
 */
function userMessage(text: string, uuid: string): string {
  return `${JSON.stringify({ type: "user", uuid, client_composed: true, parent_tool_use_id: null, message: { role: "user", content: [{ type: "text", text }] } })}\n`;
}
