// `Terminal`: the world of a command, made of a process's streams.
//
//   - Standard output holds results only, so that it can be piped; everything else goes to standard error.
//   - A reader that went away (`| head`) is no error: what is still written is dropped.
//   - Colours and marks are for terminals that want them (NO_COLOR, TERM=dumb, the locale); without them the
//     same lines.

import { basename, delimiter, dirname, relative, resolve } from "node:path";
import { clearInterval, setImmediate, setInterval } from "node:timers";
import { isatty } from "node:tty";
import { HoldfastError, shortIds } from "@holdfast/core";
import { layeredEnvironment, type OwnKeys } from "@holdfast/system";
import picocolors from "picocolors";
import { STOP_EXIT, type Io, type Look, type StopSignal, type Symbols } from "./command.ts";
import { asCalled, errorJson, errorText, shownError } from "./command-error.ts";
import { COLOUR, coloured, jsonLine, plain, quoted } from "./plain-text.ts";

export class Terminal {
  readonly #keys: OwnKeys;
  readonly #supplied = new Map<string, string>();
  readonly #env = layeredEnvironment(process.env, this.#supplied);
  readonly #notes = lookOf(process.stderr, this.#env);
  readonly #results = lookOf(process.stdout, this.#env);
  readonly #output = new Output();
  readonly #called = calledAs(this.#env, process.argv[1], process.cwd());
  #lastWords: string | undefined;
  #isStopped = false;

  constructor(keys: OwnKeys) {
    this.#keys = keys;
  }

  /** Text for standard output that is no result: help and the version. */
  print(text: string): void {
    this.#output.print(text);
  }

  /** Usage for a call that said nothing. */
  printError(text: string): void {
    this.#output.printError(text);
  }

  /** The text that a command wants shown if the process must end without warning. */
  get lastWords(): string | undefined {
    return this.#lastWords;
  }

  /** A person asked for the end at once. */
  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Wait until everything is written. */
  drained(): Promise<void> {
    return this.#output.drained();
  }

  /** The world of one command. */
  io({ isJson, debug, db, url }: IoOptions): Io {
    const output = this.#output;
    return {
      isJson,
      cwd: process.cwd(),
      env: this.#env,
      keys: this.#keys,
      stdin: process.stdin,
      notes: this.#notes,
      results: this.#results,
      terminalSize: sizeOfTerminal,
      get isOutputClosed() {
        return output.isClosed;
      },
      result(value, text) {
        if (isJson) output.print(`${jsonLine(value)}\n`);
        // On a terminal an agent's text is shown, elsewhere it is data.
        else if (text !== "") output.print(process.stdout.isTTY ? `${plain(text)}\n` : `${text}\n`);
      },
      show(value, text) {
        if (isJson) output.print(`${jsonLine(value)}\n`);
        else if (text !== "") output.print(`${coloured(text)}\n`);
      },
      stream: (pieces) => output.stream(pieces),
      note: (line) => {
        if (!isJson) output.printLine(coloured(shortened(line, this.#notes)));
      },
      status(line) {
        if (!isJson) output.status(line);
      },
      write(text) {
        if (!isJson && text !== "") output.printPiece(text);
      },
      complain: (error) => this.#complain(error, isJson, debug),
      lastWords: (text) => {
        this.#lastWords = text;
      },
      supply: (secrets) => {
        for (const [name, value] of secrets) this.#supplied.set(name, value);
      },
      filterOutput: (filter) => output.filter(filter),
      hides: (text) => output.filtered(text) !== text,
      call: (commandLine, where = whereFlags({ db, url })) =>
        [this.#called, commandLine, where].filter(Boolean).join(" "),
      onStop: listenForStop,
      stopNow: (signal) => {
        this.#isStopped = true;
        process.exit(STOP_EXIT[signal]);
      },
    };
  }

  #complain(error: unknown, isJson: boolean, debug: boolean): number {
    const shown = asCalled(shownError(error), this.#called);
    if (isJson) this.#output.printJsonError(errorJson(shown, debug));
    else this.#output.printLine(paintError(errorText(shown, debug), this.#notes.paint.red));
    return shown.exitCode;
  }
}

interface IoOptions {
  readonly isJson: boolean;
  readonly debug: boolean;
  readonly db: string | undefined;
  readonly url: string | undefined;
}

/** Standard output and standard error of this process. */
class Output {
  readonly #stdout = process.stdout;
  readonly #stderr = process.stderr;
  #writeResult = this.#stdout.write.bind(this.#stdout) as (text: string, written?: () => void) => boolean;
  #isClosed = false;
  #atLineStart = true;
  readonly #statusLine = new StatusLine(this.#stderr);

  constructor() {
    this.#stdout.on("error", (error: NodeJS.ErrnoException) => {
      if (!isGone(error)) throw outputError(error);
      this.#isClosed = true; // A reader that went away, as `head` does, is no error.
    });
    this.#stderr.on("error", (error: NodeJS.ErrnoException) => {
      if (!isGone(error)) throw error;
    });
    // Also what an agent writes past the console.
    this.#stdout.write = this.#stderr.write.bind(this.#stderr);
  }

  /** Whether nobody reads standard output any more. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  print(text: string): void {
    this.#statusLine.hide();
    if (!this.#isClosed) this.#writeResult(text);
  }

  status(line: (() => string) | undefined): void {
    this.#statusLine.show(line);
  }

  async stream(pieces: AsyncIterable<string>): Promise<void> {
    for await (const piece of pieces) {
      if (this.#isClosed) return;
      await new Promise<void>((written) => this.#writeResult(piece, () => written()));
    }
  }

  printError(text: string): void {
    this.#stderr.write(text);
  }

  /** A line on standard error, after the end of a line that was begun. */
  printLine(line: string): void {
    this.printError(this.#atLineStart ? `${line}\n` : `\n${line}\n`);
    this.#atLineStart = true;
  }

  /** A piece of a line on standard error. */
  printPiece(text: string): void {
    this.printError(text);
    this.#atLineStart = text.endsWith("\n");
  }

  /** An error for programs. */
  printJsonError(json: string): void {
    this.printError(`${json}\n`);
    this.#atLineStart = true;
  }

  filter(filter: (text: string) => string): void {
    const before = this.#statusLine.filter;
    this.#statusLine.filter = (text) => filter(before(text));
    const [result, note] = [this.#writeResult, this.#stderr.write.bind(this.#stderr) as Write];
    this.#writeResult = (text, written) => result(filter(text), written);
    const write: Write = (chunk, ...rest) => note(filtered(chunk, filter), ...rest);
    this.#stderr.write = write;
    this.#stdout.write = this.#stderr.write.bind(this.#stderr);
  }

  /** A text as it would be written. */
  filtered(text: string): string {
    return this.#statusLine.filter(text);
  }

  async drained(): Promise<void> {
    await new Promise<void>((turned) => setImmediate(turned)); // A file or a device says only after its turn that it took nothing.
    if (this.#stdout.writableLength > 0) await new Promise<void>((written) => this.#writeResult("", written));
    if (this.#stderr.writableLength > 0)
      await new Promise<void>((written) => this.#stderr.write("", () => written()));
  }
}

const STATUS_MS = 120;
const HIDE = "\r\u001b[K";

/** A line below everything else that goes to a terminal, drawn again and again. */
class StatusLine {
  readonly #stream: NodeJS.WriteStream & { readonly fd: number };
  readonly #write: Write;
  #line: (() => string) | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** The text that is drawn now. */
  #drawn = "";
  /** Hides secrets. */
  filter: (text: string) => string = (text) => text;
  /** Text that was begun stands where the line would be. */
  #isAtLineStart = true;

  constructor(stream: NodeJS.WriteStream & { readonly fd: number }) {
    this.#stream = stream;
    this.#write = stream.write.bind(stream) as Write;
    if (!isatty(stream.fd)) return;
    // Everything that is written there takes the place of the line, also what an agent writes past the console.
    const write: Write = (chunk, ...rest) => {
      const text = typeof chunk === "string" ? chunk : Buffer.from(chunk).toString();
      if (text !== "") this.#isAtLineStart = text.endsWith("\n");
      if (this.#drawn === "" || text !== chunk) {
        this.hide();
        return this.#write(chunk, ...rest);
      }
      this.#drawn = "";
      return this.#write(`${HIDE}${text}`, ...rest); // Each call writes to the terminal at once.
    };
    stream.write = write;
  }

  show(line: (() => string) | undefined): void {
    if (!isatty(this.#stream.fd)) return;
    this.#line = line;
    if (line === undefined) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      this.hide();
    } else {
      this.#timer ??= setInterval(() => this.#draw(), STATUS_MS).unref();
      this.#draw();
    }
  }

  hide(): void {
    if (this.#drawn === "") return;
    this.#drawn = "";
    this.#write(HIDE);
  }

  #draw(): void {
    const line = this.#isAtLineStart ? this.filter(coloured(this.#line?.() ?? "").replaceAll("\n", " ")) : "";
    if (line === this.#drawn) return;
    if (line === "") return this.hide();
    this.#drawn = line;
    this.#write(`\r${line}\u001b[K`);
  }
}

const WHOLE_ID = /(?<![\w/.=-])ses_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![\w/-])/g;

/** A note with the ids of its sessions as a person types them. Programs, paths and branches have whole ones. */
function shortened(line: string, { columns }: Look): string {
  if (columns === Infinity) return line;
  const parts = line.split(COLOUR);
  const short = shortIds(parts.flatMap((part) => part.match(WHOLE_ID) ?? []));
  return parts.map((part) => part.replaceAll(WHOLE_ID, (id) => short.get(id) ?? id)).join("");
}

/** Whether an output has lost its reader. */
function isGone({ code }: NodeJS.ErrnoException): boolean {
  return code === "EPIPE" || code === "EIO";
}

function sizeOfTerminal(): { readonly columns: number; readonly rows: number } | undefined {
  const { fd, columns, rows } = process.stderr;
  return isatty(fd) && columns > 0 && rows > 0 ? { columns, rows } : undefined;
}

function listenForStop(listener: (signal: StopSignal) => void): () => void {
  const signals = Object.keys(STOP_EXIT) as StopSignal[];
  const listeners = signals.map((signal) => [signal, () => listener(signal)] as const);
  for (const [signal, handler] of listeners) process.on(signal, handler);
  return () => {
    for (const [signal, handler] of listeners) process.off(signal, handler);
  };
}

type Write = (chunk: string | Uint8Array, ...rest: unknown[]) => boolean;

/** Bytes stay as they are unless their text is changed. */
function filtered(chunk: string | Uint8Array, filter: (text: string) => string): string | Uint8Array {
  const text = typeof chunk === "string" ? chunk : Buffer.from(chunk).toString();
  const left = filter(text);
  return left === text ? chunk : left;
}

/** The error for an output whose disk is full or whose reader is gone. */
function outputError(error: NodeJS.ErrnoException): HoldfastError {
  const isFull = error.code === "ENOSPC" || error.code === "EDQUOT";
  return new HoldfastError(
    isFull ? "storage_full" : "storage_unavailable",
    `standard output cannot be written: ${error.code ?? error.message}`,
    {
      fix: isFull ? "free space on the disk that it is written to" : "write the output to another place",
      cause: error,
    },
  );
}

function lookOf(stream: NodeJS.WriteStream & { readonly fd: number }, env: Environment): Look {
  const isTerminal = isatty(stream.fd);
  return {
    paint: picocolors.createColors(wantsColour(isTerminal, env)),
    symbols: showsUnicode(env) ? UNICODE : ASCII,
    columns: columnsOf(isTerminal, env["COLUMNS"], stream.columns),
  };
}

type Environment = Readonly<Record<string, string | undefined>>;

const UNICODE: Symbols = {
  begin: "▸",
  done: "✓",
  failed: "✗",
  again: "↻",
  wait: "…",
  ask: "?",
  arrived: "←",
  warn: "!",
  cut: "…",
};

/** The marks of a terminal without Unicode. */
export const ASCII: Symbols = {
  begin: ">",
  done: "+",
  failed: "x",
  again: "~",
  wait: "-",
  ask: "?",
  arrived: "<",
  warn: "!",
  cut: "...",
};

/** Https://no-color.org: present and not empty, whatever its value. */
function wantsColour(isTerminal: boolean, env: Environment): boolean {
  if ((env["NO_COLOR"] ?? "") !== "") return false;
  if ((env["FORCE_COLOR"] ?? "") !== "" && env["FORCE_COLOR"] !== "0") return true;
  return isTerminal && env["TERM"] !== "dumb";
}

function showsUnicode(env: Environment): boolean {
  const locale = [env["LC_ALL"], env["LC_CTYPE"], env["LANG"]].find(
    (value) => value !== undefined && value !== "",
  );
  return process.platform !== "linux" ? locale !== "C" && locale !== "POSIX" : /utf-?8/i.test(locale ?? "");
}

/** Lines are cut for terminals only: a file has room. */
function columnsOf(isTerminal: boolean, wished: string | undefined, width: number | undefined): number {
  if (!isTerminal) return Infinity;
  const columns = Number(wished) > 0 ? Number(wished) : (width ?? 0);
  return columns > 0 ? Math.max(20, columns) : 80;
}

function paintError(text: string, red: (text: string) => string): string {
  return text.replace(/^error\[\w+\]/, (mark) => red(mark));
}

/** As it has to be typed again from here: through npx, from the PATH, or as the file that it is. */
export function calledAs(env: Environment, file: string | undefined, cwd: string): string {
  if (env["npm_command"] === "exec" || env["npm_lifecycle_event"] === "npx") return "npx holdfast";
  if (file === undefined) return "holdfast";
  const isFile = /\.[cm]?js$/.test(file);
  const folders = (env["PATH"] ?? "").split(delimiter);
  if (!isFile && folders.some((folder) => folder !== "" && resolve(folder) === dirname(file)))
    return basename(file);
  const path = relative(cwd, file);
  const shown = path.startsWith("..") ? file : `./${path}`;
  return isFile ? `node ${quoted(shown)}` : quoted(shown);
}

/** As this call was told where sessions are. */
function whereFlags(flags: { readonly db: string | undefined; readonly url: string | undefined }): string {
  const given = Object.entries(flags).filter((flag): flag is [string, string] => flag[1] !== undefined);
  return given.map(([name, value]) => `--${name} ${quoted(value)}`).join(" ");
}
