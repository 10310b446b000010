// `Member`: a member of a fleet as a process. `sightings` finds the processes that members started.
//
//   - Each process has the harness's pid in its environment, and the next harness ends those of a dead one.
//     On a system without /proc no process is found, so processes that tasks left running are not noticed.
//   - A member's output goes to a file, which does not depend on the harness.

import { spawn, type ChildProcess } from "node:child_process";
import { closeSync, openSync, readFileSync, statSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { endProcess, isAlive, listed } from "./network.ts";
import { HARNESS, MARK, monotonicMs, type Sighting } from "./observed.ts";

const READY_MS = 60_000;
const LOOK_EVERY_MS = 20;

export interface MemberOptions {
  readonly name: string;
  readonly command: readonly [string, ...string[]];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** The file with its output, over all its lives. */
  readonly output: string;
  /** The text in its output when it is ready. */
  readonly ready: string;
}

export class Member {
  readonly name: string;
  readonly #options: MemberOptions;
  /** When it was started, each time. */
  readonly starts: number[] = [];
  #child: ChildProcess | undefined;
  /** The position in the output at which its present life begins. */
  #from = 0;

  constructor(options: MemberOptions) {
    this.name = options.name;
    this.#options = options;
  }

  get pid(): number | undefined {
    return this.isRunning ? this.#child?.pid : undefined;
  }

  get isRunning(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  get isReady(): boolean {
    return this.isRunning && this.said.includes(this.#options.ready);
  }

  /** Its output since its last start. */
  get said(): string {
    return readFileSync(this.#options.output).subarray(this.#from).toString();
  }

  start(more: Readonly<Record<string, string>> = {}): void {
    const { command, cwd, env, output } = this.#options;
    this.starts.push(monotonicMs());
    const file = openSync(output, "a");
    this.#from = statSync(output).size;
    const [program, ...words] = command;
    this.#child = spawn(program, words, {
      cwd,
      env: {
        PATH: process.env["PATH"] ?? "",
        LANG: "C.UTF-8",
        [HARNESS]: String(process.pid),
        ...env,
        ...more,
      },
      stdio: ["ignore", file, file],
    });
    closeSync(file);
  }

  /** @throws Error when it ends before. */
  async ready(): Promise<void> {
    const until = monotonicMs() + READY_MS;
    while (!this.isReady) {
      if (!this.isRunning) throw new Error(`${this.name} ended: ${this.said}`);
      if (monotonicMs() > until) throw new Error(`${this.name} does not begin: ${this.said}`);
      await sleep(LOOK_EVERY_MS);
    }
  }

  /** A process signal to it alone. */
  signal(signal: NodeJS.Signals): void {
    if (this.isRunning) this.#child?.kill(signal);
  }

  /** This life of it. */
  async ended(): Promise<void> {
    const { pid } = this;
    const isOver = (): boolean => pid === undefined || this.pid !== pid;
    while (!isOver()) await sleep(LOOK_EVERY_MS);
  }
}

/** Processes that tasks of this harness have started and that are alive now. */
export function sightings(): readonly Sighting[] {
  const at = monotonicMs();
  const ours = new Set(
    processesWith(HARNESS).flatMap(({ pid, value }) => (Number(value) === process.pid ? [pid] : [])),
  );
  return processesWith(MARK).flatMap(({ pid, value }) => {
    const [runner = "", runnerPid, sessionId = ""] = value.split(" ");
    return ours.has(pid) ? [{ at, pid, runner, runnerPid: Number(runnerPid), sessionId }] : [];
  });
}

export function sweepProcesses(): void {
  for (const { pid, value } of processesWith(HARNESS))
    if (pid !== process.pid && (Number(value) === process.pid || !isAlive(Number(value)))) endProcess(pid);
}

function processesWith(name: string): { readonly pid: number; readonly value: string }[] {
  const found: { pid: number; value: string }[] = [];
  for (const entry of listed("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    let text: string;
    try {
      text = readFileSync(`/proc/${entry}/environ`, "latin1");
    } catch {
      continue; // Another user's, or gone.
    }
    const value = text.split("\0").find((variable) => variable.startsWith(`${name}=`));
    if (value !== undefined) found.push({ pid: Number(entry), value: value.slice(name.length + 1) });
  }
  return found;
}
