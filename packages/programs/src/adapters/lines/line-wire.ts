// `LineWire`: the output of a program that speaks JSON lines.
//
//   - No output grows without a limit, and keys are replaced in every line before a dialogue sees it.
//   - A line that holds no JSON object changes nothing. The first one is kept for errors.

import { MIB } from "@holdfast/core";
import { OutputLines, type Redactor } from "@holdfast/system";

import { parseFields, type Fields } from "../../session/fields.ts";

/** One message, which may hold a picture. */
const LINE_CHARS = 16 * MIB;
const GARBAGE_CHARS = 300;

/** The output of a process, which may come before its turn does. */
export class LineWire {
  readonly redactor: Redactor;
  /** Called with each line, for the turn at work. */
  onLine: ((line: string) => void) | undefined;
  broken: string | undefined;
  garbage: string | undefined;
  readonly #lines = new OutputLines(LINE_CHARS);
  readonly #waiting: Fields[] = [];
  #reader: { message(message: Fields): void; broken(): void } | undefined;

  constructor(redactor: Redactor, onLine?: (line: string) => void) {
    this.redactor = redactor;
    this.onLine = onLine;
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
    this.onLine?.(line);
    const message = parseFields(line);
    if (message === undefined) {
      if (line.trim() !== "") this.garbage ??= line.slice(0, GARBAGE_CHARS);
      return;
    }
    if (this.#reader === undefined) this.#waiting.push(message);
    else this.#reader.message(message);
  }
}
