// `TrialRunners`: the processes in which a runner has sessions tried that were lost repeatedly (runner-8).
//
//   trial-runners-1. Each is the runner's own command again, with one more option. It runs one suspect at a
//       time, and ends when it has had none for `IDLE_MS`.
//   - When it has ended, everything that it had started is ended first. The coordinator is told after that,
//     and counts a loss of the session that it held.
//   - At most `TRIALS_MAX` run at once. A suspect that finds none waits, or is pardoned by the coordinator.
//   - It gets its token and the secrets by a channel, and ends with this process.

import { randomUUID } from "node:crypto";
import { toError } from "@holdfast/core";
import type { RunnerOptions, WantedTrial } from "@holdfast/runner";
import { namesOfSecrets } from "@holdfast/system";
import { endExecution, EXECUTION_MARKER } from "@holdfast/system/processes";
import type { Io } from "@holdfast/terminal/frame/command";
import { plainLine } from "@holdfast/terminal/frame/plain-text";
import { StackChild } from "../../stack/process/stack-child.ts";

const TRIALS_MAX = 4;
/** trial-runners-1. */
export const IDLE_MS = 30_000;
const LINE_CHARS = 1_000;

export interface TrialRunnersOptions {
  readonly io: Io;
  readonly url: RunnerOptions["url"];
  readonly secrets: ReadonlyMap<string, string>;
  /** Must not reject. */
  readonly ended: (runnerId: string) => Promise<void>;
}

export class TrialRunners {
  readonly #options: TrialRunnersOptions;
  readonly #marker = `${process.env[EXECUTION_MARKER] ?? randomUUID()}/trials`;
  readonly #living = new Map<StackChild, Promise<void>>();
  #started = 0;
  #isClosed = false;

  constructor(options: TrialRunnersOptions) {
    this.#options = options;
  }

  /** Starts one more, if there is room. */
  start({ sessionId, token }: WantedTrial): void {
    if (this.#isClosed || this.#living.size >= TRIALS_MAX) return;
    const { io } = this.#options;
    io.note(
      `${io.notes.symbols.again} Session ${sessionId} was lost repeatedly; it is tried in a process of its own`,
    );
    const ids: string[] = [];
    const child = this.#spawn(ids);
    this.#living.set(
      child,
      child.ended.then(() => this.#cleanUp(child, ids)),
    );
    this.#begin(child, token).catch((error: unknown) => {
      child.kill();
      if (this.#isClosed) return;
      const why = plainLine(toError(error).message, LINE_CHARS);
      io.note(`${io.notes.symbols.warn} The process for the trial did not start: ${why}`);
    });
  }

  /** Newer code replaces the code of this runner, and theirs. */
  supersede(): void {
    this.#isClosed = true;
    for (const child of this.#living.keys()) child.order({ type: "supersede" });
  }

  /** Resolves when all have ended. No other one starts. */
  async drained(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#living.values());
  }

  /** Ends all of them. */
  async stop(graceMs: number): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#living.keys()].map((child) => child.stop(graceMs)));
    await this.drained();
  }

  /** How many run. */
  get running(): number {
    return this.#living.size;
  }

  /** Tells all once more to stop. */
  hurry(): void {
    for (const child of this.#living.keys()) child.terminate();
  }

  #spawn(ids: string[]): StackChild {
    const { io } = this.#options;
    const marker = `${this.#marker}/${++this.#started}`;
    const { HOLDFAST_TOKEN: _, ...env } = process.env; // It has a token of its own.
    const child: StackChild = new StackChild({
      component: "runner",
      argv: [process.execPath, ...process.execArgv, ...process.argv.slice(1), "--for-trials"],
      cwd: io.cwd,
      env: { ...env, [EXECUTION_MARKER]: marker },
      marker,
      log: (line) => io.note(`[trial ${child.pid ?? ""}] ${line}`),
      onReport: (report) => {
        if (report.type === "registered") ids.push(report.runnerId);
      },
    });
    return child;
  }

  async #begin(child: StackChild, token: string): Promise<void> {
    const { url, secrets } = this.#options;
    const names = namesOfSecrets((await child.reported("loaded")).secrets);
    const wanted = [...secrets].filter(([name]) => names.includes(name));
    child.order({ type: "hand_over", url, token, secrets: Object.fromEntries(wanted) });
    await child.reported("started");
    child.order({ type: "begin" });
  }

  async #cleanUp(child: StackChild, ids: readonly string[]): Promise<void> {
    await endExecution(child.marker);
    this.#living.delete(child);
    for (const runnerId of ids) await this.#options.ended(runnerId);
  }
}
