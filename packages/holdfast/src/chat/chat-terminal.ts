// `ChatTerminal`: lines that a person types, and text around them.
//
// On a terminal a line can be edited, and text that arrives in between does not destroy it. Elsewhere lines
// are read as they come, and nothing is drawn.

import { createInterface, type Interface } from "node:readline";
import { Writable } from "node:stream";
import type { Io } from "@holdfast/terminal/frame/command";

export interface ChatListener {
  line(text: string): void;
  /** There are no more lines. */
  end(): void;
  /** Ctrl-C on the terminal. */
  interrupt(): void;
}

export class ChatTerminal {
  readonly #io: Io;
  readonly #lines: Interface;
  readonly isTyped: boolean;
  #prompt: string | undefined;
  #isClosed = false;

  constructor(io: Io, listener: ChatListener) {
    this.#io = io;
    this.isTyped = io.stdin.isTTY === true && !io.isJson;
    const output = new Writable({
      write: (chunk: Buffer, _encoding, written) => {
        io.write(chunk.toString());
        written();
      },
    });
    Object.assign(output, { columns: io.notes.columns });
    this.#lines = this.isTyped
      ? createInterface({ input: io.stdin, output, terminal: true, historySize: 200 })
      : createInterface({ input: io.stdin, crlfDelay: Infinity });
    this.#lines.on("line", (line) => {
      this.#prompt = undefined;
      listener.line(line);
    });
    this.#lines.on("SIGINT", () => listener.interrupt());
    this.#lines.on("close", () => {
      if (!this.#isClosed) listener.end();
    });
  }

  /** Invites a person to type. */
  prompt(mark: string): void {
    if (!this.isTyped || this.#isClosed) return;
    this.#prompt = mark;
    this.#lines.setPrompt(mark);
    this.#lines.prompt(true);
  }

  /** A line of text above what is being typed. */
  say(line: string): void {
    const isTyping =
      this.isTyped && !this.#isClosed && (this.#prompt !== undefined || this.#lines.line !== "");
    if (isTyping) this.#io.write("\r\u001b[K\n\u001b[1A");
    this.#io.note(line);
    if (isTyping) this.#lines.prompt(true);
  }

  /** A piece of a stream. */
  write(text: string): void {
    this.#io.write(text);
  }

  close(): void {
    this.#isClosed = true;
    this.#lines.close();
  }
}
