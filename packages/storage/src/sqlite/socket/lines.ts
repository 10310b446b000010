// LineSplitter: bytes into lines, with a limit.

const NEWLINE = 0x0a;

/** Cuts a stream of bytes into lines; remembers the unfinished one. */
export class LineSplitter {
  readonly #bytesMax: number;
  #parts: Buffer[] = [];
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** The lines these bytes complete, or `too_long`: then the stream is of no more use. */
  push(chunk: Buffer): string[] | "too_long" {
    const lines: string[] = [];
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      const last = chunk.subarray(from, end);
      if (this.#bytes + last.length > this.#bytesMax) return "too_long";
      lines.push(
        this.#parts.length === 0 ? last.toString() : Buffer.concat([...this.#parts, last]).toString(),
      );
      this.#parts = [];
      this.#bytes = 0;
      from = end + 1;
    }
    if (from < chunk.length) {
      this.#parts.push(chunk.subarray(from));
      this.#bytes += chunk.length - from;
    }
    return this.#bytes > this.#bytesMax ? "too_long" : lines;
  }
}
