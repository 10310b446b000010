// `holdTerminal`: the terminal while a command reads single keys, or draws on all of it. It is as it was
// before, however the command ends.
//
//   - An error, a call of process.exit and the signals that end a process give it back at once.
//   - After SIGKILL nothing of the process can do that. A file of the user's data folder says what was changed,
//     and the next command on the same terminal changes it back (`restoreTerminal`).

import { spawnSync } from "node:child_process";
import { readFileSync, readlinkSync, rmSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import { isatty } from "node:tty";
import { dataFolder, makePrivateFolder, replacePrivate, replaceProcess } from "@holdfast/system";
import type { Io } from "../command.ts";

/** A terminal that a killed command has left. */
interface Mark {
  readonly pid: number;
  /** When that process began: a number of a process is given again. */
  readonly begun: string;
  /** The settings before, as `stty` reads them. */
  readonly settings: string;
  /** The text that takes back what was written. */
  readonly leave: string;
}

/** The signals that end a process and that nothing else of ours listens to. */
const DEADLY = ["SIGQUIT", "SIGABRT", "SIGALRM", "SIGXCPU", "SIGUSR2"] as const;

/**
 * @param leave the text that takes back what the command writes to the terminal.
 * @returns gives the terminal back. Calling it twice changes nothing more.
 */
export function holdTerminal(io: Pick<Io, "env" | "stdin">, leave: string): () => void {
  const path = markPath(io);
  const settings = stty("-g");
  if (path !== undefined && settings !== undefined) {
    const mark: Mark = { pid: process.pid, begun: beginOf(process.pid) ?? "", settings, leave };
    // Without a data folder it is given back by this process alone.
    unlessRefused(() => {
      makePrivateFolder(dirname(path));
      replacePrivate(path, JSON.stringify(mark));
    });
  }
  let isHeld = true;
  const release = (): void => {
    if (!isHeld) return;
    isHeld = false;
    process.off("exit", release);
    for (const signal of DEADLY) process.off(signal, die);
    setRawMode(io, false);
    write(leave);
    if (path !== undefined) rmSync(path, { force: true });
  };
  const die = (signal: NodeJS.Signals): void => {
    release();
    process.kill(process.pid, signal);
  };
  process.on("exit", release);
  for (const signal of DEADLY) process.on(signal, die);
  return release;
}

/** Gives a terminal back that a killed command has left as it was. */
export function restoreTerminal(io: Pick<Io, "env" | "keys">): void {
  const path = markPath(io);
  if (path === undefined) return;
  unlessRefused(() => {
    const { pid, begun, settings, leave } = JSON.parse(readFileSync(path, "utf8")) as Mark;
    if (beginOf(pid) === begun) return;
    rmSync(path, { force: true });
    stty(settings);
    write(leave);
    // Node gives a terminal back as it was at the start of its process, so the process starts again.
    replaceProcess(io.keys.handed);
  });
}

export function setRawMode({ stdin }: Pick<Io, "stdin">, isRaw: boolean): void {
  if ("setRawMode" in stdin && typeof stdin.setRawMode === "function") stdin.setRawMode(isRaw);
}

/** The file for the terminal of this process; `undefined` where there is none, or it has no name. */
function markPath({ env }: Pick<Io, "env">): string | undefined {
  if (!isatty(0) || !isatty(2)) return undefined;
  try {
    const name = readlinkSync("/proc/self/fd/0");
    return join(dataFolder({ env }), "terminals", name.replaceAll("/", "-"));
  } catch {
    return undefined;
  }
}

/** When a process began; `undefined` when there is none of this number. */
function beginOf(pid: number): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8")
      .replace(/^.*\) /s, "")
      .split(" ")[19];
  } catch {
    return undefined;
  }
}

function stty(...words: readonly string[]): string | undefined {
  const { status, stdout } = spawnSync("stty", words, {
    stdio: ["inherit", "pipe", "ignore"],
    encoding: "utf8",
  });
  return status === 0 ? stdout.trim() : undefined;
}

/** At once: at the end of a process nothing else is written. */
function write(text: string): void {
  unlessRefused(() => writeSync(2, text));
}

function unlessRefused(work: () => void): void {
  try {
    work();
  } catch {
    // The terminal or the folder is gone.
  }
}
