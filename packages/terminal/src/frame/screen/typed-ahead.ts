// `TypedAhead`: which lines of a terminal were typed before a question was on the screen.
//
//   - A terminal keeps a line until it is read, which may be long after it was typed. A question can be answered
//     only after a look at the input that found nothing more.
//   - Nothing is read while a line is being stored. Such a pause is no look.

import type { Readable } from "node:stream";
import { setImmediate, setTimeout as delay } from "node:timers/promises";

const LOOK_MS = 10;
export const TYPED_AHEAD = "this was typed before the question stood there: read it, and type again";

export class TypedAhead<Question> {
  readonly #input: Readable;
  #isOpen = false;
  #chunks = 0;
  /** The question that stood there before anything that was not read yet. */
  #answerable: Question | undefined;
  #ofChunk: Question | undefined;

  constructor(input: Readable) {
    this.#input = input;
  }

  /** The input is read from now on, by its only other listener, which pauses it while it stores a line. */
  open(): void {
    this.#isOpen = true;
    this.#input.prependListener("data", this.#onData);
  }

  close(): void {
    this.#isOpen = false;
    this.#input.off("data", this.#onData);
  }

  /** The question is on the screen, as the last one. */
  async shown(question: Question | undefined): Promise<void> {
    this.#answerable = undefined;
    if (question === undefined || !this.#isOpen) return;
    let before = -1;
    while (before !== this.#chunks || this.#input.isPaused()) {
      if (this.#input.isPaused()) await delay(LOOK_MS, undefined, { ref: false });
      before = this.#chunks;
      // The second one comes after a whole look of Node at its inputs.
      await setImmediate();
      await setImmediate();
      if (!this.#isOpen) return;
    }
    this.#answerable = question;
  }

  /** Whether a line that is read from now on can be an answer to the question. */
  isReady(question: Question): boolean {
    return this.#answerable === question;
  }

  /** Whether the line that was read last can be an answer to the question. */
  isAfter(question: Question): boolean {
    return this.#ofChunk === question;
  }

  readonly #onData = (): void => {
    this.#chunks++;
    this.#ofChunk = this.#answerable;
  };
}
