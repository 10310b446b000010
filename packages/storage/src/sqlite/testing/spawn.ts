// Start, watch and kill `process.ts`.

import { spawn, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

export const PROCESS_FILE = fileURLToPath(new URL("process.ts", import.meta.url));

export interface Watched {
  readonly pid: number;
  /** The lines that it has printed so far. */
  readonly lines: readonly string[];
  /** Resolves when it has said so many lines, or has ended. */
  said(count: number): Promise<void>;
  kill(): Promise<void>;
  /** Write a line to its stdin. @returns what it answers, after the line; `undefined` when it has ended. */
  ask(line: string): Promise<string | undefined>;
  /** Resolves when it has ended. */
  readonly ended: Promise<void>;
  /** End its stdin, and wait for it to end. */
  finish(): Promise<void>;
}

export function startProcess(
  mode: "hold" | "own" | "share" | "commit" | "die",
  path: string,
  count?: number,
): Watched {
  const args = [PROCESS_FILE, mode, path, ...(count === undefined ? [] : [String(count)])];
  return watch(spawn(process.execPath, ["--no-warnings", ...args], { stdio: ["pipe", "pipe", "inherit"] }));
}

function watch(child: ChildProcessByStdio<Writable, Readable, null>): Watched {
  const lines: string[] = [];
  const waiters = new Set<() => void>();
  const wake = () => waiters.forEach((waiter) => waiter());
  let isOver = false;
  // `close`, not `exit`: only then is everything read that it said.
  const closed = once(child, "close").then(() => {
    isOver = true;
    wake();
  });
  const until = (isReached: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      const check = () => {
        if (!isReached() && !isOver) return;
        waiters.delete(check);
        resolve();
      };
      waiters.add(check);
      check();
    });
  createInterface({ input: child.stdout }).on("line", (line) => {
    lines.push(line);
    wake();
  });
  const kill = async () => {
    child.kill("SIGKILL");
    await closed;
  };
  child.stdin.on("error", () => undefined); // It was killed.
  onTestFinished(kill);
  return {
    pid: child.pid!,
    lines,
    kill,
    ask: async (line) => {
      const from = lines.length;
      child.stdin.write(`${line}\n`);
      const find = () => lines.slice(from).find((said) => said.startsWith(`${line}: `));
      await until(() => find() !== undefined);
      return find()?.slice(line.length + 2);
    },
    ended: closed,
    said: (count) => until(() => lines.length >= count),
    finish: async () => {
      child.stdin.end();
      await closed;
    },
  };
}
