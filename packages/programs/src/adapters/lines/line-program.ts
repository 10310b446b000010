// `LineProgram`: a program that speaks JSON lines, for one turn after the other (`LineTurn`).
//
//   - One process and one dialogue carry out all its turns. The first turn begins the dialogue, and each
//     later one gives it the next prompt.
//   - Between two turns the program only waits. A program that begins to work of itself is ended,
//     because no turn would count that work or answer its questions.

import type { ProcessReport, SupervisedProcess } from "@holdfast/system/processes";

import type { ExternalEnd, ExternalEvent } from "../../session/external-agent-protocol.ts";
import type { KeptProgram } from "../../session/program/kept-programs.ts";
import type { DialogueTurn, LineDialogue, MakeDialogue } from "./line-dialogue.ts";
import type { LineWire } from "./line-wire.ts";

/** How long the steps of an abort take. */
export interface StopLimits {
  /** From a request to end the turn to SIGTERM. */
  readonly askMs: number;
  /** From SIGTERM to SIGKILL. */
  readonly graceMs: number;
}

export const STOP_LIMITS: StopLimits = { askMs: 5_000, graceMs: 3_000 };
/** From the end of the last turn to SIGTERM: some programs do not end with their input. */
const EXIT_MS = 2_000;

/** The turn at work, as its program sees it. */
export interface ServedTurn {
  readonly isOver: boolean;
  emit(event: ExternalEvent): void;
  end(end: ExternalEnd): void;
  /** The process has ended. */
  gone(report: ProcessReport): void;
}

/** Events that are no work: they belong to the turn before. */
const AFTERMATH: readonly ExternalEvent["type"][] = ["usage", "notice"];

export class LineProgram implements KeptProgram {
  readonly process: SupervisedProcess;
  readonly wire: LineWire;
  readonly dialogue: LineDialogue;
  readonly limits: StopLimits;
  /** Turns are begun by it alone that would start it in the same way. */
  readonly launch: string;
  readonly #exitMs: number;
  #turn: ServedTurn | undefined;
  #opened: Extract<ExternalEvent, { readonly type: "session_started" }> | undefined;
  #report: ProcessReport | undefined;

  constructor(
    process: SupervisedProcess,
    wire: LineWire,
    {
      make,
      turn,
      limits = STOP_LIMITS,
      exitMs = EXIT_MS,
      launch = "",
    }: {
      readonly make: MakeDialogue;
      readonly turn: Omit<DialogueTurn, "send" | "emit" | "end">;
      readonly limits?: StopLimits | undefined;
      readonly exitMs?: number | undefined;
      readonly launch?: string;
    },
  ) {
    this.process = process;
    this.wire = wire;
    this.limits = limits;
    this.launch = launch;
    this.#exitMs = exitMs;
    this.dialogue = make({
      ...turn,
      send: (message) => void process.write(`${JSON.stringify(message)}\n`),
      emit: (event) => this.#emit(event),
      end: (end) => this.#turn?.end(end),
    });
    void process.ended.then((report) => {
      this.#report = report;
      this.dialogue.closed?.();
      this.#turn?.gone(report);
    });
  }

  get ended(): Promise<ProcessReport> {
    return this.process.ended;
  }

  /** Begins its first turn, which brings the prompt with the dialogue. */
  begin(turn: ServedTurn): void {
    this.#turn = turn;
    this.dialogue.begin();
    this.wire.read({
      message: (message) => {
        if (this.#turn?.isOver !== true) this.dialogue.message(message);
      },
      broken: () => void this.process.stop("it broke the protocol", { graceMs: 0 }),
    });
  }

  /** Begins another turn of the session. */
  continue(turn: ServedTurn, prompt: string, isCommand?: true): void {
    this.#turn = turn;
    if (this.#opened !== undefined) turn.emit(this.#opened);
    if (this.#report === undefined) this.dialogue.next?.(prompt, isCommand);
    else turn.gone(this.#report);
  }

  /** The turn is over, and the program waits for the next one. */
  wait(): void {
    this.#turn = undefined;
  }

  /** Closes its input; signals follow. */
  leave(reason: string, isAtOnce = false): Promise<ProcessReport> {
    this.process.closeInput(); // A stop that is under way waits for this.
    const askMs = isAtOnce ? 0 : this.#exitMs;
    return this.process.stop(reason, { ask: () => {}, askMs, graceMs: this.limits.graceMs });
  }

  stop(reason: string): Promise<ProcessReport> {
    return this.leave(reason);
  }

  #emit(event: ExternalEvent): void {
    if (event.type === "session_started") this.#opened = event;
    if (this.#turn !== undefined) this.#turn.emit(event);
    else if (!AFTERMATH.includes(event.type)) void this.leave("it works without a request", true);
  }
}
