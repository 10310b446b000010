// `BenchStack`: a local stack that the bench starts as users do, by the bundled command, in a home folder of
// its own.

import { execFile } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { installCommand } from "../scripts/installed-command.ts";
import { nowMs } from "./measure.ts";

interface StackState {
  readonly url: string;
  readonly supervisor: { readonly pid: number };
  readonly processes: readonly { readonly component: string; readonly pid?: number }[];
}

/** A request that does not reach the coordinator before this is an error. */
const CALL_MS = 60_000;

export class BenchStack {
  readonly #folder: string;
  readonly #command: string;
  readonly home: string;

  private constructor(folder: string, command: string, agents: string) {
    this.#folder = folder;
    this.#command = command;
    this.home = join(folder, "home");
    mkdirSync(this.home);
    writeFileSync(join(folder, "agents.mjs"), agents);
  }

  /** @param agents the source of its file of agents. */
  static async make(folder: string, agents: string): Promise<BenchStack> {
    return new BenchStack(folder, join(await installCommand(), "holdfast"), agents);
  }

  async holdfast(...args: readonly string[]): Promise<void> {
    const { PATH, NODE_COMPILE_CACHE } = process.env;
    const env = { PATH, NODE_COMPILE_CACHE, HOME: this.home, LANG: "C.UTF-8" };
    await promisify(execFile)(process.execPath, [this.#command, ...args], { cwd: this.#folder, env });
  }

  /** @returns how long the command took. */
  async start(...options: readonly string[]): Promise<number> {
    const startedAt = nowMs();
    await this.holdfast("local", "start", "--agents", "agents.mjs", "--port", "0", ...options);
    return nowMs() - startedAt;
  }

  stop(): Promise<void> {
    return this.holdfast("local", "stop");
  }

  /** A request to `/v1/sessions` and below, with a body as a POST. @returns the answer's JSON. */
  async sessions<T>(path = "", body?: object): Promise<T> {
    const token = readFileSync(join(this.home, ".local/share/holdfast/admin-token"), "utf8").trim();
    const answer = await fetch(`${this.#state().url}/v1/sessions${path}`, {
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      signal: AbortSignal.timeout(CALL_MS),
      ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
    });
    if (!answer.ok) throw new Error(`the coordinator answered ${answer.status}: ${await answer.text()}`);
    return (await answer.json()) as T;
  }

  /** `undefined` while it is started again. */
  pidOf(component: "supervisor" | "runner"): number | undefined {
    const { supervisor, processes } = this.#state();
    return component === "supervisor"
      ? supervisor.pid
      : processes.find((one) => one.component === component)?.pid;
  }

  #state(): StackState {
    const path = join(this.home, ".local/share/holdfast/local/stack.json");
    return JSON.parse(readFileSync(path, "utf8")) as StackState;
  }
}

/** The environments of all processes of this user, by their ids. A zombie has none. */
export function* environments(): Generator<readonly [pid: string, environment: string]> {
  for (const pid of readdirSync("/proc")) {
    try {
      yield [pid, `\0${readFileSync(`/proc/${pid}/environ`, "latin1")}`];
    } catch {
      // It is no process, or has just ended.
    }
  }
}
