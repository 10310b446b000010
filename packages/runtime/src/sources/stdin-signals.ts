// `stdinSignals`: a source of signals from a stream of lines, such as standard input.
//
// A line is a signal as JSON, `{"name": "go", "payload": {"version": 2}}`, or plain text, which is the
// payload of a signal named `input`. A line that begins with a brace and is no signal is refused, because it
// is a typing error far more often than a text.
//
//   - Lines are stored one after another, in their order. Nothing is read while a line is being stored, so a
//     fast writer waits.
//   - The end of the stream ends nothing but the source. A last line needs no line break.
//   - A line is held in memory whole, so there is a limit to it; a longer one is refused and passed over.

import type { Readable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import {
  defined,
  findPayloadProblem,
  type IncomingSignal,
  LIMITS,
  type SignalReceipt,
  type SignalSink,
  type SignalSource,
} from "@holdfast/core";

/** The meaning of a line: a signal, nothing, or the reason for refusing it. */
export type LineMeaning =
  | { readonly type: "signal"; readonly signal: Omit<IncomingSignal, "sessionId"> }
  | { readonly type: "nothing" }
  | { readonly type: "refused"; readonly reason: string };

/** Options of `stdinSignals`. */
export interface StdinSignalsOptions {
  /** The stream, which is read in the flowing mode. It must have no other reader. */
  readonly input: Readable;
  /** All signals go to this session. */
  readonly sessionId: string;
  /** Gives the meaning of a line instead of `readSignalLine`. Must not throw. */
  readonly interpret?: (line: string) => LineMeaning | Promise<LineMeaning>;
  /** Called for each signal after it was sent. Must not throw. */
  readonly onReceipt?: (signal: IncomingSignal, receipt: SignalReceipt) => void;
  /** Called for each line that is no signal, and for a stream that broke. Must not throw. */
  readonly onRefused?: (reason: string) => void;
  /** Characters of one line. */
  readonly lineChars?: number;
}

/** Longer than any accepted payload, so that the payload's own limit is reported. */
const LINE_CHARS = LIMITS.payloadChars * 2;

/** A source that reads a stream until its end or until it is closed. Give it to one runtime. */
export function stdinSignals(options: StdinSignalsOptions): SignalSource {
  return { open: (sink) => Promise.resolve(new Reading(options, sink)) };
}

/** The default meaning of a line. */
export function readSignalLine(line: string): LineMeaning {
  const text = line.trim();
  if (text === "") return { type: "nothing" };
  if (!text.startsWith("{")) return { type: "signal", signal: { name: "input", payload: line } };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return refused(`is no JSON (${(error as Error).message})`);
  }
  const problem = findPayloadProblem(text, { start: 0, end: text.length });
  if (problem !== undefined) return refused(problem.message);
  const { name, payload, dedupKey, ...others } = value as Record<string, unknown>;
  const [unknown] = Object.keys(others);
  if (typeof name !== "string" || name === "") return refused(`has no "name"`);
  if (unknown !== undefined) return refused(`has "${unknown}", which means nothing`);
  if (dedupKey !== undefined && typeof dedupKey !== "string")
    return refused(`has a "dedupKey" that is no text`);
  return { type: "signal", signal: { name, payload, ...defined({ dedupKey }) } };
}

function refused(why: string): LineMeaning {
  const shape = `{"name": "go", "payload": {}}`;
  return {
    type: "refused",
    reason: `a line that begins with a brace must be a signal such as ${shape}, and this one ${why}`,
  };
}

class Reading {
  readonly #options: StdinSignalsOptions;
  readonly #sink: SignalSink;
  readonly #decoder = new StringDecoder("utf8");
  readonly #limit: number;
  /** The lines that are being stored. A paused stream may still end, and its last line comes after them. */
  #storing: Promise<void> = Promise.resolve();
  #rest = "";
  #skipping = false;
  #closed = false;

  constructor(options: StdinSignalsOptions, sink: SignalSink) {
    this.#options = options;
    this.#sink = sink;
    this.#limit = options.lineChars ?? LINE_CHARS;
    options.input.on("data", this.#onData).on("end", this.#onEnd).on("error", this.#onError);
  }

  close(): Promise<void> {
    this.#closed = true;
    const { input } = this.#options;
    input.off("data", this.#onData).off("end", this.#onEnd);
    input.pause(); // Otherwise an idle terminal would keep the process alive.
    return Promise.resolve();
  }

  readonly #onData = (chunk: Uint8Array | string): void => {
    const { input } = this.#options;
    input.pause(); // A line is stored before the next one is read.
    const lines = this.#split(typeof chunk === "string" ? chunk : this.#decoder.write(Buffer.from(chunk)));
    this.#storing = this.#handOver(lines);
    void this.#storing.then(() => void (this.#closed || input.resume()));
  };

  readonly #onEnd = (): void => {
    const last = this.#rest + this.#decoder.end();
    this.#rest = "";
    if (!this.#skipping && last !== "") void this.#storing.then(() => this.#handOver([last]));
  };

  /** This listener is never removed: an error of a stream without a listener would end the process. */
  readonly #onError = (error: Error): void => {
    if (!this.#closed) this.#options.onRefused?.(`the input broke off: ${error.message}`);
  };

  async #handOver(lines: readonly (string | undefined)[]): Promise<void> {
    const { sessionId, interpret = readSignalLine, onReceipt, onRefused } = this.#options;
    for (const line of lines) {
      if (this.#closed) return;
      const meaning = line === undefined ? tooLong(this.#limit) : await interpret(line);
      if (meaning.type === "refused") onRefused?.(meaning.reason);
      if (meaning.type !== "signal") continue;
      const signal: IncomingSignal = { ...meaning.signal, sessionId };
      const receipt = await this.#sink(signal);
      onReceipt?.(signal, receipt);
    }
  }

  /** The lines that end in this text; `undefined` for one that is too long. */
  #split(text: string): (string | undefined)[] {
    const lines: (string | undefined)[] = [];
    const [first = "", ...others] = text.split("\n");
    this.#rest += first;
    for (const next of others) {
      if (!this.#skipping)
        lines.push(this.#rest.length > this.#limit ? undefined : this.#rest.replace(/\r$/, ""));
      this.#skipping = false;
      this.#rest = next;
    }
    if (this.#rest.length > this.#limit) {
      if (!this.#skipping) lines.push(undefined);
      this.#skipping = true;
    }
    if (this.#skipping) this.#rest = "";
    return lines;
  }
}

function tooLong(limit: number): LineMeaning {
  return { type: "refused", reason: `a line has more than ${limit} characters` };
}
