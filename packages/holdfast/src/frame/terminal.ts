// The world of a command, made of a process's streams.
//
//   terminal-1. Standard output holds results only, so that it can be piped; everything else goes to standard error.
//   terminal-2. A reader that went away (`| head`) is no error: what is still written is dropped.
//   terminal-3. Colours and marks are for terminals that want them (NO_COLOR, TERM=dumb, the locale); without them the
//       same lines.

import { basename, delimiter, dirname, relative, resolve } from "node:path";
import { isatty } from "node:tty";
import { HoldfastError } from "@holdfast/core";
import { layeredEnvironment, type OwnKeys } from "@holdfast/system";
import picocolors from "picocolors";
import { STOP_EXIT, type Io, type Look, type StopSignal, type Symbols } from "./command.ts";
import { asCalled, errorJson, errorText, shownError } from "./command-error.ts";
import { coloured, jsonLine, plain, quoted } from "./plain-text.ts";

export interface Terminal {
  /** The world of one command. */
  io(options: {
    readonly isJson: boolean;
    readonly debug: boolean;
    readonly db: string | undefined;
    readonly url: string | undefined;
  }): Io;
  /** Text for standard output that is no result: help and the version. */
  print(text: string): void;
  /** Usage for a call that said nothing. */
  printError(text: string): void;
  /** The text that a command wants shown if the process must end without warning. */
  readonly lastWords: string | undefined;
  /** A person asked for the end at once. */
  readonly isStopped: boolean;
  /** Wait until everything is written. */
  drained(): Promise<void>;
}

export function processTerminal(keys: OwnKeys): Terminal {
  const { stdout, stderr } = process;
  const supplied = new Map<string, string>();
  const env = layeredEnvironment(process.env, supplied);
  let isOutputClosed = false;
  const closes = (error: NodeJS.ErrnoException): void => {
    if (error.code !== "EPIPE" && error.code !== "EIO") throw outputError(error);
    isOutputClosed = true; // terminal-2.
  };
  stdout.on("error", closes);
  stderr.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE" && error.code !== "EIO") throw error;
  });
  const notes = lookOf(stderr, env);
  const results = lookOf(stdout, env);
  // terminal-1. Also what an agent writes past the console.
  let writeResult = stdout.write.bind(stdout) as (text: string, written?: () => void) => boolean;
  stdout.write = stderr.write.bind(stderr);
  const print = (text: string): void => {
    if (!isOutputClosed) writeResult(text);
  };
  const printError = (text: string): void => void stderr.write(text);
  const called = calledAs(env, process.argv[1], process.cwd());
  let atLineStart = true;
  let lastWords: string | undefined;
  let isStopped = false;

  return {
    print,
    printError,
    get lastWords() {
      return lastWords;
    },
    get isStopped() {
      return isStopped;
    },
    io: ({ isJson, debug, db, url }) => ({
      isJson,
      cwd: process.cwd(),
      env,
      keys,
      stdin: process.stdin,
      notes,
      results,
      terminalSize() {
        const { columns, rows } = stderr;
        return isatty(stderr.fd) && columns > 0 && rows > 0 ? { columns, rows } : undefined;
      },
      get isOutputClosed() {
        return isOutputClosed;
      },
      result(value, text) {
        if (isJson) print(`${jsonLine(value)}\n`);
        // On a terminal an agent's text is shown, elsewhere it is data.
        else if (text !== "") print(stdout.isTTY ? `${plain(text)}\n` : `${text}\n`);
      },
      show(value, text) {
        if (isJson) print(`${jsonLine(value)}\n`);
        else if (text !== "") print(`${coloured(text)}\n`);
      },
      async stream(pieces) {
        for await (const piece of pieces) {
          if (isOutputClosed) return;
          await new Promise<void>((written) => writeResult(piece, () => written()));
        }
      },
      note(line) {
        if (isJson) return;
        printError(atLineStart ? `${coloured(line)}\n` : `\n${coloured(line)}\n`);
        atLineStart = true;
      },
      write(text) {
        if (isJson || text === "") return;
        printError(text);
        atLineStart = text.endsWith("\n");
      },
      complain(error) {
        const shown = asCalled(shownError(error), called);
        const text = isJson ? errorJson(shown, debug) : paintError(errorText(shown, debug), notes.paint.red);
        printError(atLineStart || isJson ? `${text}\n` : `\n${text}\n`);
        atLineStart = true;
        return shown.exitCode;
      },
      lastWords(text) {
        lastWords = text;
      },
      supply(secrets) {
        for (const [name, value] of secrets) supplied.set(name, value);
      },
      filterOutput(filter) {
        const [result, note] = [writeResult, stderr.write.bind(stderr) as Write];
        writeResult = (text, written) => result(filter(text), written);
        const write: Write = (chunk, ...rest) => note(filtered(chunk, filter), ...rest);
        stderr.write = write;
        stdout.write = stderr.write.bind(stderr); // terminal-1.
      },
      call: (commandLine, where = whereFlags({ db, url })) =>
        [called, commandLine, where].filter(Boolean).join(" "),
      onStop(listener) {
        const signals = Object.keys(STOP_EXIT) as StopSignal[];
        const listeners = signals.map((signal) => [signal, () => listener(signal)] as const);
        for (const [signal, handler] of listeners) process.on(signal, handler);
        return () => {
          for (const [signal, handler] of listeners) process.off(signal, handler);
        };
      },
      stopNow(signal) {
        isStopped = true;
        process.exit(STOP_EXIT[signal]);
      },
    }),
    async drained() {
      await new Promise<void>((turned) => setImmediate(turned)); // A file or a device says only after its turn that it took nothing.
      if (stdout.writableLength > 0) await new Promise<void>((written) => writeResult("", written));
      if (stderr.writableLength > 0) await new Promise<void>((written) => stderr.write("", () => written()));
    },
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

const ASCII: Symbols = {
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

/** terminal-3. https://no-color.org: present and not empty, whatever its value. */
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
