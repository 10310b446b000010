// The output of one command, kept up to a limit: its beginning and its end, because test runners say what
// failed last.

/** Collects the bytes of one stream. The pipe is always drained; what does not fit is counted and dropped. */
export class OutputCapture {
  readonly #headMax: number;
  readonly #tailMax: number;
  readonly #head: Buffer[] = [];
  readonly #tail: Buffer[] = [];
  #headBytes = 0;
  #tailBytes = 0;
  #total = 0;

  constructor(bytesMax: number) {
    this.#headMax = Math.ceil(bytesMax / 2);
    this.#tailMax = Math.floor(bytesMax / 2);
  }

  get bytes(): number {
    return this.#total;
  }

  get isCut(): boolean {
    return this.#total > this.#headBytes + this.#tailBytes;
  }

  push(chunk: Buffer): void {
    this.#total += chunk.length;
    const fits = Math.min(chunk.length, this.#headMax - this.#headBytes);
    if (fits > 0) {
      // Copied: a chunk is a window on a larger buffer, which it would keep alive.
      this.#head.push(Buffer.from(chunk.subarray(0, fits)));
      this.#headBytes += fits;
    }
    if (fits < chunk.length) this.#pushTail(Buffer.from(chunk.subarray(fits)));
  }

  /** As text; the place where something was dropped is marked in it. */
  text(): string {
    const head = Buffer.concat(this.#head);
    const tail = Buffer.concat(this.#tail);
    if (!this.isCut) return Buffer.concat([head, tail]).toString("utf8");
    const dropped = this.#total - head.length - tail.length;
    return `${cutAtCharacter(head)}\n[... ${dropped} bytes of output left out ...]\n${startAtCharacter(tail)}`;
  }

  #pushTail(chunk: Buffer): void {
    this.#tail.push(chunk);
    this.#tailBytes += chunk.length;
    while (this.#tailBytes > this.#tailMax) {
      const first = this.#tail[0];
      if (first === undefined) return;
      const excess = this.#tailBytes - this.#tailMax;
      if (first.length <= excess) {
        this.#tail.shift();
        this.#tailBytes -= first.length;
      } else {
        this.#tail[0] = first.subarray(excess);
        this.#tailBytes -= excess;
      }
    }
  }
}

/** Text without half a character at its end. A stream decoder keeps an incomplete sequence to itself. */
function cutAtCharacter(bytes: Buffer): string {
  return new TextDecoder().decode(bytes, { stream: true });
}

function startAtCharacter(bytes: Buffer): string {
  let start = 0;
  while (start < 3 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start += 1;
  return bytes.subarray(start).toString("utf8");
}
