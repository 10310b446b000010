// `IpcOutput`: what a runner writes to its host, one message a line.
//
//   ipc-output-1. A host that reads slowly delays the messages, and never the sessions. A sender of events
//       waits for room, and reads no further in the journal meanwhile.
//   - A message that is not durable is left out while there is no room, because nobody could wait for it.
//   - A host that reads no more loses nothing that is stored. `closed` resolves, and later messages are
//     dropped.

import { MIB } from "@holdfast/core";
import type { Io } from "@holdfast/terminal/frame/command";
import { jsonLine } from "@holdfast/terminal/frame/plain-text";
import type { IpcMessage } from "./ipc-messages.ts";

/** Characters that wait before a sender has to wait as well. */
const ROOM_CHARS = MIB;
const PIECE_CHARS = 64 * 1024;

export class IpcOutput {
  /** Resolves when the host reads no more, or everything is written after `end`. */
  readonly closed: Promise<void>;
  #lines: string[] = [];
  #chars = 0;
  #isOver = false;
  #more = Promise.withResolvers<void>();
  #room = Promise.withResolvers<void>();

  constructor(io: Pick<Io, "stream">) {
    this.closed = io.stream(this.#pieces()).then(() => {
      this.#isOver = true;
      this.#room.resolve();
    });
  }

  /** Resolves when there is room for another message. Never rejects. */
  async send(message: IpcMessage): Promise<void> {
    this.#add(message);
    while (!this.#isOver && this.#chars > ROOM_CHARS) await this.#room.promise;
  }

  /** Sends a message that may be left out. */
  offer(message: IpcMessage): void {
    if (this.#chars <= ROOM_CHARS) this.#add(message);
  }

  /** Writes the last message. Resolves when everything is written, or nobody reads any more. */
  async end(message: IpcMessage): Promise<void> {
    this.#add(message);
    this.#isOver = true;
    this.#more.resolve();
    await this.closed;
  }

  #add(message: IpcMessage): void {
    if (this.#isOver) return;
    const line = `${jsonLine(message)}\n`;
    this.#lines.push(line);
    this.#chars += line.length;
    this.#more.resolve();
  }

  async *#pieces(): AsyncGenerator<string> {
    for (;;) {
      if (this.#lines.length === 0) {
        if (this.#isOver) return;
        this.#more = Promise.withResolvers();
        await this.#more.promise;
        continue;
      }
      let piece = "";
      let taken = 0;
      while (taken < this.#lines.length && piece.length < PIECE_CHARS) piece += this.#lines[taken++]!;
      this.#lines = this.#lines.slice(taken);
      yield piece;
      this.#chars -= piece.length;
      this.#room.resolve();
      this.#room = Promise.withResolvers();
    }
  }
}
