// `ChatTerminal`: lines that a person types, and text around them.
//
// On a terminal a line can be edited, and text that arrives in between does not destroy it. A line that ends
// with a backslash goes on in the next one. The lines of a pasted text are one message, where the terminal
// marks what is pasted (bracketed paste). Elsewhere lines are read as they come, and nothing is drawn.

import { createInterface, type Interface } from "node:readline";
import { Writable } from "node:stream";
import type { Io } from "@holdfast/terminal/frame/command";
import { holdTerminal } from "@holdfast/terminal/frame/screen/held-terminal";
import { TypedAhead } from "@holdfast/terminal/frame/screen/typed-ahead";
import { ChatHistory, HISTORY_LINES_MAX } from "./chat-history.ts";

const MARK_PASTES = "\u001b[?2004h";
const MARK_NO_PASTES = "\u001b[?2004l";
const PASTE_BEGINS = "\u001b[200~";
const PASTE_ENDS = "\u001b[201~";

export interface ChatListener {
  line(text: string): void;
  /** There are no more lines. */
  end(): void;
  /** Ctrl-C on the terminal. */
  interrupt(): void;
}

export class ChatTerminal {
  readonly #io: Io;
  readonly #history: ChatHistory;
  readonly #lines: Interface;
  readonly isTyped: boolean;
  /** Which lines can be an answer to a question that is on the screen. */
  readonly typedAhead: TypedAhead<object>;
  #prompt: string | undefined;
  #isClosed = false;
  #isPasting = false;
  /** The lines of a message that goes on. */
  #begun: string[] = [];
  readonly #release: () => void;

  constructor(io: Io, listener: ChatListener) {
    this.#io = io;
    this.#history = new ChatHistory(io);
    this.isTyped = io.stdin.isTTY === true && !io.isJson;
    const output = new Writable({
      write: (chunk: Buffer, _encoding, written) => {
        io.write(chunk.toString());
        written();
      },
    });
    Object.assign(output, { columns: io.notes.columns });
    const typing = { terminal: true, historySize: HISTORY_LINES_MAX, removeHistoryDuplicates: true };
    this.#lines = this.isTyped
      ? createInterface({ input: io.stdin, output, ...typing, history: [...this.#history.lines()] })
      : createInterface({ input: io.stdin, crlfDelay: Infinity });
    this.typedAhead = new TypedAhead(io.stdin);
    if (this.isTyped) this.typedAhead.open();
    this.#release = this.isTyped ? this.#hold() : () => {};
    this.#lines.on("line", (line) => {
      this.#prompt = undefined;
      if (this.isTyped) this.#typed(line, listener);
      else listener.line(line);
    });
    this.#lines.on("SIGINT", () => {
      this.#begun = [];
      this.#isPasting = false;
      listener.interrupt();
    });
    this.#lines.on("close", () => {
      if (this.#isClosed) return;
      if (this.#begun.length > 0) this.#finish(listener);
      listener.end();
    });
  }

  /** Hears where pasted text begins and ends. @returns gives the terminal back. */
  #hold(): () => void {
    const release = holdTerminal(this.#io, MARK_NO_PASTES);
    const onKey = (_text: unknown, { sequence }: { readonly sequence?: string }): void => {
      if (sequence === PASTE_BEGINS) this.#isPasting = true;
      if (sequence === PASTE_ENDS) this.#isPasting = false;
    };
    this.#io.stdin.on("keypress", onKey);
    return () => {
      this.#io.stdin.off("keypress", onKey);
      release();
    };
  }

  #typed(line: string, listener: ChatListener): void {
    const isContinued = line.endsWith("\\") && !this.#isPasting;
    this.#begun.push(isContinued ? line.slice(0, -1) : line);
    if (isContinued || this.#isPasting) this.prompt("");
    else this.#finish(listener);
  }

  #finish(listener: ChatListener): void {
    const text = this.#begun.join("\n");
    this.#begun = [];
    listener.line(text);
  }

  /** Keeps a typed message for the arrow keys of later conversations. */
  remember(message: string): void {
    if (this.isTyped) this.#history.add(message);
  }

  /** Invites a person to type. */
  prompt(mark: string): void {
    if (!this.isTyped || this.#isClosed) return;
    this.#prompt = mark;
    this.#lines.setPrompt(this.#begun.length === 0 ? mark : "... ");
    this.#io.write(MARK_PASTES); // Each time: a shell to which the chat was suspended takes it back.
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
    this.typedAhead.close();
    this.#lines.close();
    this.#release();
  }
}
