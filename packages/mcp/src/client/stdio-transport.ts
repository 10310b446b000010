// `StdioTransport`: the messages of one MCP server over the standard input and output of its process.
//
// The transport of the SDK is not used, because it ends the server's process alone and limits neither lines
// without end nor floods. Here the supervisor of the runtime ends the whole process tree.
//
//   - A message, and all messages between two of ours, have limits of size. A server that exceeds one is
//     ended.
//   - A few lines that are no messages are dropped, and the first ones are kept for errors. A server that
//     prints more of them is ended.
//   - `whyClosed` names the first cause of the end, with the last lines of standard error.

import { deserializeMessage, type JSONRPCMessage, type Transport } from "@modelcontextprotocol/client";
import { describeProcessEnd, OutputLines } from "@holdfast/system";
import {
  type ProcessReport,
  type ProcessSupervisor,
  type SupervisedProcess,
} from "@holdfast/system/processes";

import { MCP_LIMITS } from "../protocol/limits.ts";
import { withTaskNoted } from "../protocol/server-tasks.ts";
import { ENDED } from "../protocol/call-errors.ts";

export interface StdioProgram {
  readonly argv: readonly [string, ...string[]];
  /** The whole environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Finds the process tree again after a crash of our process. */
  readonly tag: string;
}

const STDERR_CHARS = 2_000;
const STRAY_CHARS = 500;

export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: NonNullable<Transport["onmessage"]>;
  /** The SDK knows by these two names that a silent server is an older one, and not a network that is away. */
  readonly pid = null;
  readonly stderr = null;
  readonly #supervisor: ProcessSupervisor;
  readonly #program: StdioProgram;
  readonly #lines = new OutputLines(MCP_LIMITS.messageChars);
  #started: Promise<SupervisedProcess> | undefined;
  #report: ProcessReport | undefined;
  /** `isStopped`: we ended the process, perhaps in the moment in which it ended itself. */
  readonly #over = { isClosed: false, isStopped: false };
  #offence: string | undefined;
  #burstChars = 0;
  /** Lines that are no messages. */
  readonly #stray = { count: 0, text: "" };
  #errors = "";

  constructor(supervisor: ProcessSupervisor, program: StdioProgram) {
    this.#supervisor = supervisor;
    this.#program = program;
  }

  /** May be called twice: by the negotiation of the version, and by the connection after it. */
  async start(): Promise<void> {
    if (this.#started !== undefined) return void (await this.#started);
    this.#started = this.#supervisor.start({
      ...this.#program,
      keepsInputOpen: true,
      needsOutput: true,
      killGraceMs: MCP_LIMITS.endMs,
      outputBytes: 16 * 1024,
      onOutput: (stream, text) => {
        if (stream === "stdout") this.#receive(text);
        else this.#errors = `${this.#errors}${text}`.slice(-STDERR_CHARS);
      },
    });
    const { ended } = await this.#started;
    void ended.then((report) => {
      this.#report = report;
      this.#end();
    });
  }

  async send(message: JSONRPCMessage): Promise<void> {
    this.#burstChars = 0;
    const started = await this.#started;
    const isSent = started !== undefined && (await started.write(`${JSON.stringify(message)}\n`));
    if (!isSent) throw new Error("the server does not read its input any more");
  }

  async close(): Promise<void> {
    this.#over.isStopped = this.#report === undefined;
    const started = await this.#started;
    await started?.stop("it is no longer needed", {
      ask: () => started.closeInput(),
      askMs: MCP_LIMITS.endMs,
    });
    this.#end();
  }

  get isProcess(): boolean {
    return true;
  }

  get isClosed(): boolean {
    return this.#over.isClosed;
  }

  whyClosed(): string | undefined {
    if (this.#offence !== undefined) return `${ENDED}, ${this.#offence}`;
    if (this.#report === undefined) return undefined;
    return this.#over.isStopped
      ? `${ENDED} before it answered`
      : `${ENDED}, ${describeProcessEnd(this.#report.end)}`;
  }

  /** The output of the process that was no message, for errors. */
  printed(): string {
    const parts = [
      this.#stray.text === "" ? "" : `standard output: ${this.#stray.text.trim()}`,
      this.#errors.trim() === "" ? "" : `standard error: ${this.#errors.trim()}`,
    ];
    return parts.filter((part) => part !== "").join("; ");
  }

  #end(): void {
    if (this.#over.isClosed) return;
    this.#over.isClosed = true;
    this.onclose?.();
  }

  #receive(text: string): void {
    if (this.#offence !== undefined || this.#over.isClosed) return;
    this.#burstChars += text.length;
    if (this.#burstChars > MCP_LIMITS.burstChars)
      return this.#refuse(`it sent more than ${MCP_LIMITS.burstChars} characters at once`);
    for (const line of this.#lines.push(text)) this.#receiveLine(line);
    if (this.#lines.isTooLong)
      this.#refuse(`it sent a message of more than ${MCP_LIMITS.messageChars} characters`);
  }

  #receiveLine(line: string): void {
    if (line.trim() === "") return;
    let message: JSONRPCMessage;
    try {
      message = deserializeMessage(line);
    } catch {
      return this.#dropStray(line);
    }
    this.onmessage?.(withTaskNoted(message));
  }

  #dropStray(line: string): void {
    const stray = this.#stray;
    stray.count++;
    if (stray.text.length < STRAY_CHARS) stray.text = `${stray.text}\n${line}`.slice(0, STRAY_CHARS);
    if (stray.count > MCP_LIMITS.strayLines)
      this.#refuse(`it printed more than ${MCP_LIMITS.strayLines} lines that are no messages of MCP`);
  }

  #refuse(offence: string): void {
    if (this.#offence !== undefined) return;
    this.#offence = offence;
    void this.#started?.then((started) => started.stop(offence, { graceMs: 0 }));
  }
}
