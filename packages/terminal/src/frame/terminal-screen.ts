// `TerminalScreen`: a whole terminal that is drawn again on each change, and the keys that a person presses.
//
//   - The terminal is as it was when the screen is closed, however the process ends (`holdTerminal`).
//   - Text of agents cannot steer the terminal: everything that is drawn keeps its colours only.
//   - Nothing is written while nothing has changed.

import { emitKeypressEvents } from "node:readline";
import { clearTimeout, setTimeout } from "node:timers";
import { stripVTControlCharacters } from "node:util";
import { STOP_EXIT, type Io, type StopSignal } from "./command.ts";
import { holdTerminal, setRawMode } from "./screen/held-terminal.ts";
import { COLOUR, coloured } from "./plain-text.ts";

/** A key as Node names it. `text` is what it types. */
export interface Key {
  readonly name: string;
  readonly text: string;
}

export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

/** Whether a person sits at the terminal that this command reads and writes. */
export function isAtTerminal(io: Io): boolean {
  const isShown = Number.isFinite(io.results.columns) && io.terminalSize() !== undefined;
  return !io.isJson && io.stdin.isTTY === true && isShown && io.env["TERM"] !== "dumb";
}

const ENTER = "\u001b[?1049h\u001b[?25l\u001b[?7l";
const LEAVE = "\u001b[?7h\u001b[?25h\u001b[?1049l";

export class TerminalScreen {
  readonly #io: Io;
  readonly #release: () => void;
  readonly #endHold: () => void;
  readonly #keys: Key[] = [];
  #isAwaited: (() => void) | undefined;
  #drawn = "";
  #stopped: StopSignal | undefined;

  constructor(io: Io) {
    this.#io = io;
    this.#release = io.onStop((signal) => {
      this.#stopped ??= signal;
      this.#isAwaited?.();
    });
    emitKeypressEvents(io.stdin);
    process.on("SIGWINCH", this.wake);
    const { stdin } = io;
    this.#endHold = holdTerminal(io, LEAVE);
    setRawMode(io, true);
    stdin.on("keypress", this.#onKey);
    stdin.resume();
    io.write(ENTER);
  }

  /** The exit code of the signal that asked for the end. */
  get stopExit(): number | undefined {
    return this.#stopped === undefined ? undefined : STOP_EXIT[this.#stopped];
  }

  get size(): TerminalSize {
    return this.#io.terminalSize() ?? { columns: 80, rows: 24 };
  }

  /** Draws the lines from the top. Lines that do not fit are left out. */
  draw(lines: readonly string[]): void {
    const { columns, rows } = this.size;
    const shown = lines.slice(0, rows).map((line) => cutColoured(coloured(line), columns));
    // Erased before it is written: behind a line as wide as the terminal its last character would be erased.
    const rest = shown.length < rows ? "\r\n\u001b[J" : "";
    const text = `\u001b[H${shown.map((line) => `\u001b[K${line}\u001b[0m`).join("\r\n")}${rest}`;
    const key = `${columns} ${rows} ${text}`;
    if (key === this.#drawn) return;
    this.#drawn = key;
    this.#io.write(text);
  }

  /** Whether a key was pressed that nobody has taken. */
  get hasKey(): boolean {
    return this.#keys.length > 0;
  }

  /** The next key; `undefined` when none came in time, or after `wake`, or when a signal asked for the end. */
  async key(withinMs?: number): Promise<Key | undefined> {
    if (this.#keys.length === 0 && this.#stopped === undefined) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#isAwaited = resolve;
      const timer = withinMs === undefined ? undefined : setTimeout(resolve, withinMs);
      await promise;
      clearTimeout(timer);
      this.#isAwaited = undefined;
    }
    return this.#stopped === undefined ? this.#keys.shift() : undefined;
  }

  /** Ends a wait for a key, because there is something else to show. */
  readonly wake = (): void => this.#isAwaited?.();

  close(): void {
    process.off("SIGWINCH", this.wake);
    this.#io.stdin.off("keypress", this.#onKey);
    this.#io.stdin.pause();
    this.#endHold();
    this.#release();
  }

  readonly #onKey = (text: string | undefined, key: { readonly name?: string; readonly ctrl?: boolean }) => {
    if (key.ctrl === true && key.name === "c") this.#stopped ??= "SIGINT";
    else if (key.ctrl !== true || key.name === "d")
      this.#keys.push({ name: key.ctrl === true ? "end" : (key.name ?? text ?? ""), text: text ?? "" });
    this.#isAwaited?.();
  };
}

/** Draws on the whole terminal while `work` runs. */
export async function withScreen<T>(io: Io, work: (screen: TerminalScreen) => Promise<T>): Promise<T> {
  const screen = new TerminalScreen(io);
  try {
    return await work(screen);
  } finally {
    screen.close();
  }
}

/** A line cut to a number of characters, of which colours are none. */
export function cutColoured(line: string, charsMax: number): string {
  if (stripVTControlCharacters(line).length <= charsMax) return line;
  let left = charsMax;
  return line
    .split(COLOUR)
    .map((part, at) => {
      if (at % 2 === 1) return part;
      const shown = part.slice(0, left);
      left -= shown.length;
      return shown;
    })
    .join("");
}

/** A typed line after one more key: characters are added, and Backspace takes the last one away. */
export function typed(line: string, { name, text }: Key): string {
  if (name === "backspace") return Array.from(line).slice(0, -1).join("");
  return /^[^\p{Cc}]+$/u.test(text) ? line + text : line;
}
