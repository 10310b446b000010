// One turn of a program that speaks JSON lines (`LineTurn`). The meaning of the lines is with its
// `LineDialogue`, the process with its `LineProgram`.
//
//   - When the dialogue ends the turn, the input of the process is closed, and signals follow. After an answer
//     the process may be kept for the next turn instead.
//   - An answer with messages behind it ends no turn. Their order is kept here and not in the queue of the
//     program, because not every program says when it begins with one.
//   - An abort asks by the protocol and closes the input. Then come SIGTERM and SIGKILL for the tree and for
//     what carries its tag.

import { clearTimeout, setTimeout } from "node:timers";
import { describeProcessEnd } from "@holdfast/system";
import { type ProcessReport } from "@holdfast/system/processes";

import { AgentTurn, TOO_MANY_EVENTS } from "../../session/program/agent-turn.ts";
import type {
  Delivery,
  ExternalEnd,
  ExternalEvent,
  PermissionAnswer,
  Queueing,
} from "../../session/external-agent-protocol.ts";
import type { LineProgram, ServedTurn } from "./line-program.ts";

export const ERROR_CHARS = 1_000;
/** From a request to interrupt to the end of the input. Some programs drop the request when their input ends. */
const INTERRUPT_MS = 500;

export class LineTurn extends AgentTurn implements ServedTurn {
  readonly ended: Promise<ExternalEnd>;
  readonly #program: LineProgram;
  readonly #interruptMs: number;
  readonly #keep: (() => void) | undefined;
  readonly #settle: (end: ExternalEnd) => void;
  readonly #followUps: string[] = [];
  /** Messages to the turn of which the program has not said whether it takes them. */
  #steering = 0;
  #end: ExternalEnd | undefined;
  #isAborted = false;
  #isKept = false;

  /**
   * Begins the turn.
   *
   * @param prompt with `isCommand` of a program that has carried out other turns; the dialogue of a new one has its prompt.
   * @param keep takes the program after an answer. Without it the program ends with its turn.
   */
  constructor(
    program: LineProgram,
    {
      prompt,
      isCommand,
      keep,
      interruptMs = INTERRUPT_MS,
    }: {
      readonly prompt?: string;
      readonly isCommand?: true;
      readonly keep?: (() => void) | undefined;
      readonly interruptMs?: number | undefined;
    } = {},
  ) {
    super();
    this.#program = program;
    this.#keep = keep;
    this.#interruptMs = interruptMs;
    const { promise, resolve } = Promise.withResolvers<ExternalEnd>();
    this.ended = promise;
    this.#settle = resolve;
    if (prompt === undefined) program.begin(this);
    else program.continue(this, prompt, isCommand);
  }

  get left(): Promise<unknown> | undefined {
    return this.#isKept ? this.#program.ended : undefined;
  }

  get isOver(): boolean {
    return this.#end !== undefined;
  }

  emit(event: ExternalEvent): void {
    if (!this.give(event)) this.#program.wire.break(TOO_MANY_EVENTS);
  }

  end(end: ExternalEnd): void {
    if (this.#end !== undefined) return;
    const { dialogue } = this.#program;
    const text = end.type === "answered" && !this.#isAborted ? this.#followUps.shift() : undefined;
    if (text !== undefined) {
      this.give({ type: "follow_up", text });
      return dialogue.next?.(text);
    }
    // Some programs report an abort that was asked for as an error.
    this.#end = this.#isAborted && end.type === "error" ? { type: "aborted" } : end;
    if (this.#canBeKept(end)) {
      this.#isKept = true;
      this.#program.wait();
      this.#keep?.();
      return this.#settle(end);
    }
    // Another session than ours may already work.
    void this.#program.leave("its turn is over", end.type === "unknown_session");
  }

  gone(report: ProcessReport): void {
    const end = this.#endOf(report);
    this.#settle(end.type === "aborted" || end.type === "died" ? { ...end, process: report.end } : end);
  }

  override async steer(text: string): Promise<Delivery> {
    if (this.#isDone) return "rejected";
    this.#steering++;
    const taken = this.#program.dialogue.steer(text).finally(() => this.#steering--);
    return Promise.race([taken, this.ended.then((): Delivery => "rejected")]);
  }

  override followUp(text: string): Promise<Queueing> {
    if (this.#isDone || this.#isAborted || this.#program.dialogue.next === undefined)
      return Promise.resolve("rejected");
    this.#followUps.push(text);
    return Promise.resolve("queued");
  }

  override answerPermission(requestId: string, answer: PermissionAnswer): Promise<boolean> {
    return Promise.resolve(!this.#isDone && this.#program.dialogue.answer(requestId, answer));
  }

  abort(isUrgent = false): Promise<ExternalEnd> {
    if (this.#isKept) return this.ended; // The process is that of another turn.
    this.#isAborted = true;
    const { process, dialogue, limits } = this.#program;
    const ask = (): void => {
      dialogue.interrupt();
      const close = setTimeout(() => process.closeInput(), this.#interruptMs);
      void process.ended.then(() => clearTimeout(close));
    };
    void process.stop("its turn was aborted", { ask, ...limits, isUrgent });
    return this.ended;
  }

  get #isDone(): boolean {
    return this.isOver || this.#program.wire.broken !== undefined;
  }

  /** A message that the program has not read yet would be a request of its own. */
  #canBeKept(end: ExternalEnd): boolean {
    if (this.#keep === undefined || this.#isAborted || end.type !== "answered") return false;
    const { dialogue, wire } = this.#program;
    return dialogue.next !== undefined && this.#steering === 0 && wire.broken === undefined;
  }

  #endOf(report: ProcessReport): ExternalEnd {
    const { broken } = this.#program.wire;
    if (broken !== undefined) return { type: "broken", message: broken };
    if (this.#end !== undefined) return this.#end;
    if (this.#isAborted) return { type: "aborted" };
    return { type: "died", message: this.#whyDied(report), hasStarted: this.#program.dialogue.hasStarted };
  }

  /** Why the process ended before its turn did: its end, and the last of what it wrote for people. */
  #whyDied({ end, stderr }: ProcessReport): string {
    const { redactor, garbage } = this.#program.wire;
    const said = redactor.text(stderr).trim().slice(-ERROR_CHARS);
    const wrote = garbage === undefined ? "" : `it wrote a line that is no JSON: ${JSON.stringify(garbage)}`;
    return [describeProcessEnd(end), said, wrote].filter((text) => text !== "").join(": ");
  }
}
