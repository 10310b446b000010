// One turn of a program that speaks JSON lines (`LineTurn`). The meaning of the lines is with its
// `LineDialogue`.
//
//   - A process carries out one turn. When the dialogue ends the turn, the input of the process is closed,
//     and signals follow. An answer with messages behind it ends no turn. Their order is kept here and not in
//     the queue of the program, because not every program says when it begins with one.
//   - No output grows without a limit, and keys are replaced in every line before the dialogue sees it.
//   - A line that holds no JSON object changes nothing. The first one is kept for errors.
//   - An abort asks by the protocol and closes the input. Then come SIGTERM and SIGKILL for the tree and for
//     what carries its tag.

import { clearTimeout, setTimeout } from "node:timers";
import { MIB } from "@holdfast/core";
import {
  describeProcessEnd,
  OutputLines,
  type ProcessReport,
  type Redactor,
  type SupervisedProcess,
} from "@holdfast/system";

import { AgentTurn, TOO_MANY_EVENTS } from "../../session/program/agent-turn.ts";
import type {
  Delivery,
  ExternalEnd,
  PermissionAnswer,
  Queueing,
} from "../../session/external-agent-protocol.ts";
import { parseFields, type Fields } from "../../session/fields.ts";
import type { DialogueTurn, LineDialogue, MakeDialogue } from "./line-dialogue.ts";

/** How long the steps of an abort take. */
export interface StopLimits {
  /** From a request to end the turn to SIGTERM. */
  readonly askMs: number;
  /** From SIGTERM to SIGKILL. */
  readonly graceMs: number;
}

export const STOP_LIMITS: StopLimits = { askMs: 5_000, graceMs: 3_000 };
export const ERROR_CHARS = 1_000;
/** One message, which may hold a picture. */
const LINE_CHARS = 16 * MIB;
/** From the end of the turn to SIGTERM: some programs do not end with their input. */
const EXIT_MS = 2_000;
/** From a request to interrupt to the end of the input. Some programs drop the request when their input ends. */
const INTERRUPT_MS = 500;
const GARBAGE_CHARS = 300;

/** The output of a process, which may come before its turn does. */
export class LineWire {
  readonly redactor: Redactor;
  broken: string | undefined;
  garbage: string | undefined;
  readonly #lines = new OutputLines(LINE_CHARS);
  readonly #waiting: Fields[] = [];
  #reader: { message(message: Fields): void; broken(): void } | undefined;

  readonly #onLine: ((line: string) => void) | undefined;

  constructor(redactor: Redactor, onLine?: (line: string) => void) {
    this.redactor = redactor;
    this.#onLine = onLine;
  }

  push(text: string): void {
    if (this.broken !== undefined) return;
    for (const line of this.#lines.push(text)) this.#line(this.redactor.text(line));
    if (this.#lines.isTooLong) this.break(`it wrote a line of more than ${LINE_CHARS} characters`);
  }

  /** The reader gets every message, also those that came before. */
  read(reader: { message(message: Fields): void; broken(): void }): void {
    this.#reader = reader;
    for (const message of this.#waiting.splice(0)) reader.message(message);
    if (this.broken !== undefined) reader.broken();
  }

  break(why: string): void {
    this.broken ??= why;
    this.#reader?.broken();
  }

  #line(line: string): void {
    this.#onLine?.(line);
    const message = parseFields(line);
    if (message === undefined) {
      if (line.trim() !== "") this.garbage ??= line.slice(0, GARBAGE_CHARS);
      return;
    }
    if (this.#reader === undefined) this.#waiting.push(message);
    else this.#reader.message(message);
  }
}

export class LineTurn extends AgentTurn {
  readonly ended: Promise<ExternalEnd>;
  readonly #process: SupervisedProcess;
  readonly #wire: LineWire;
  readonly #limits: StopLimits;
  readonly #exitMs: number;
  readonly #interruptMs: number;
  readonly #dialogue: LineDialogue;
  readonly #followUps: string[] = [];
  #end: ExternalEnd | undefined;
  #isAborted = false;

  constructor(
    process: SupervisedProcess,
    wire: LineWire,
    {
      make,
      turn,
      limits = STOP_LIMITS,
      exitMs = EXIT_MS,
      interruptMs = INTERRUPT_MS,
    }: {
      readonly make: MakeDialogue;
      readonly turn: Omit<DialogueTurn, "send" | "emit" | "end">;
      readonly limits?: StopLimits | undefined;
      readonly exitMs?: number | undefined;
      readonly interruptMs?: number | undefined;
    },
  ) {
    super();
    this.#process = process;
    this.#wire = wire;
    this.#limits = limits;
    this.#exitMs = exitMs;
    this.#interruptMs = interruptMs;
    this.#dialogue = make({
      ...turn,
      send: (message) => void process.write(`${JSON.stringify(message)}\n`),
      emit: (event) => {
        if (!this.give(event)) wire.break(TOO_MANY_EVENTS);
      },
      end: (end) => this.#finish(end),
    });
    this.ended = process.ended.then((report) => {
      const end = this.#endOf(report);
      return end.type === "aborted" || end.type === "died" ? { ...end, process: report.end } : end;
    });
    this.#dialogue.begin();
    wire.read({
      message: (message) => {
        if (this.#end === undefined) this.#dialogue.message(message);
      },
      broken: () => void process.stop("it broke the protocol", { graceMs: 0 }),
    });
  }

  override async steer(text: string): Promise<Delivery> {
    if (this.#isOver) return "rejected";
    return Promise.race([this.#dialogue.steer(text), this.ended.then((): Delivery => "rejected")]);
  }

  override followUp(text: string): Promise<Queueing> {
    if (this.#isOver || this.#isAborted || this.#dialogue.next === undefined)
      return Promise.resolve("rejected");
    this.#followUps.push(text);
    return Promise.resolve("queued");
  }

  override answerPermission(requestId: string, answer: PermissionAnswer): Promise<boolean> {
    return Promise.resolve(!this.#isOver && this.#dialogue.answer(requestId, answer));
  }

  abort(isUrgent = false): Promise<ExternalEnd> {
    this.#isAborted = true;
    const ask = (): void => {
      this.#dialogue.interrupt();
      const close = setTimeout(() => this.#process.closeInput(), this.#interruptMs);
      void this.#process.ended.then(() => clearTimeout(close));
    };
    void this.#process.stop("its turn was aborted", { ask, ...this.#limits, isUrgent });
    return this.ended;
  }

  get #isOver(): boolean {
    return this.#end !== undefined || this.#wire.broken !== undefined;
  }

  #finish(end: ExternalEnd): void {
    if (this.#end !== undefined) return;
    const text = end.type === "answered" && !this.#isAborted ? this.#followUps.shift() : undefined;
    if (text !== undefined) {
      this.give({ type: "follow_up", text });
      return this.#dialogue.next?.(text);
    }
    // Some programs report an abort that was asked for as an error.
    this.#end = this.#isAborted && end.type === "error" ? { type: "aborted" } : end;
    this.#process.closeInput(); // An abort that is under way waits for this.
    // Another session than ours may already work.
    const askMs = end.type === "unknown_session" ? 0 : this.#exitMs;
    const { graceMs } = this.#limits;
    void this.#process.stop("its turn is over", { ask: () => {}, askMs, graceMs });
  }

  #endOf(report: ProcessReport): ExternalEnd {
    this.#dialogue.closed?.();
    const { broken } = this.#wire;
    if (broken !== undefined) return { type: "broken", message: broken };
    if (this.#end !== undefined) return this.#end;
    if (this.#isAborted) return { type: "aborted" };
    return { type: "died", message: this.#whyDied(report), hasStarted: this.#dialogue.hasStarted };
  }

  /** Why the process ended before its turn did: its end, and the last of what it wrote for people. */
  #whyDied({ end, stderr }: ProcessReport): string {
    const { redactor, garbage } = this.#wire;
    const said = redactor.text(stderr).trim().slice(-ERROR_CHARS);
    const wrote = garbage === undefined ? "" : `it wrote a line that is no JSON: ${JSON.stringify(garbage)}`;
    return [describeProcessEnd(end), said, wrote].filter((text) => text !== "").join(": ");
  }
}
