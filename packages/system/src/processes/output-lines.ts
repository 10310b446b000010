// `OutputLines`: the lines of a program's output, split at line feeds alone. A line beyond the limit ends the
// reading: that line and everything after it are dropped (`isTooLong`).
//
// JSON may contain U+2028, which other splitters take for the end of a line.

export class OutputLines {
  readonly #charsMax: number;
  #pieces: string[] = [];
  #chars = 0;
  #isTooLong = false;

  constructor(charsMax: number) {
    this.#charsMax = charsMax;
  }

  /** The beginning of a line that no line feed has followed. */
  get rest(): string {
    return this.#pieces.join("");
  }

  /** A line was longer than the limit. It is dropped, and so is everything that follows. */
  get isTooLong(): boolean {
    return this.#isTooLong;
  }

  /** The lines that are complete now, in their order. */
  push(text: string): readonly string[] {
    const lines: string[] = [];
    let from = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", from)) {
      this.#keep(text.slice(from, end));
      if (this.#isTooLong) return lines;
      lines.push(this.rest);
      this.#pieces = [];
      this.#chars = 0;
      from = end + 1;
    }
    this.#keep(text.slice(from));
    return lines;
  }

  #keep(piece: string): void {
    this.#chars += piece.length;
    if (this.#chars > this.#charsMax) this.#isTooLong = true;
    if (this.#isTooLong) this.#pieces = [];
    else if (piece !== "") this.#pieces.push(piece);
  }
}
