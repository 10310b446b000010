// `KillableStack`: a local stack of its own user, started by its command, killed and looked at from outside.
//
//   - Its home folder is its own. Every process of the stack and of its agents has that folder as HOME, which
//     finds all of them (`processes`).
//   - The command is started with the secret on its standard input, never in an argument or the environment.
//   - Core files are allowed, so that the search of the folder finds what a crash would write.

import { spawn } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { endProcess, listed } from "../network.ts";
import { EFFECTS_FOLDER, RUNNER_NAME } from "../observed.ts";
import { SECRET } from "./agents.ts";

export const COMPONENTS = ["runner", "coordinator", "supervisor"] as const;
export type Component = (typeof COMPONENTS)[number];

export interface Finished {
  readonly code: number | null;
  /** Standard output and standard error. */
  readonly said: string;
}

/** The part of the stack's state file that is read here. */
export interface StackState {
  readonly status: string;
  readonly supervisor: { readonly pid: number };
  readonly url?: string;
  readonly processes: readonly {
    readonly component: Component;
    readonly status: string;
    readonly pid?: number;
  }[];
}

export interface FoundProcess {
  readonly pid: number;
  readonly parent: number;
  /** Clock ticks since the boot of the machine. */
  readonly startedAt: number;
  readonly command: string;
}

/** Each file of the stack's project, and where it comes from. */
const FILES: Readonly<Record<string, URL>> = {
  "agents.ts": new URL("../agents.ts", import.meta.url),
  "tasks.ts": new URL("../tasks.ts", import.meta.url),
  "observed.ts": new URL("../observed.ts", import.meta.url),
  "stack/agents.ts": new URL("agents.ts", import.meta.url),
  "stack/tree-agent.ts": new URL("tree-agent.ts", import.meta.url),
  "stack/tree-executor.ts": new URL("tree-executor.ts", import.meta.url),
};
const AGENTS = ["agents.ts", "stack/agents.ts", "stack/tree-agent.ts"];
const TASKS = "tasks.ts";
const LOOK_EVERY_MS = 10;
/** A start that takes longer hangs. */
const START_MS = 120_000;

export class KillableStack {
  readonly folder: string;
  readonly #launcher: string;
  readonly #secret: string;
  #port = "0";

  /** @param launcher the file of the `holdfast` command. */
  constructor(folder: string, launcher: string, secret: string) {
    this.folder = folder;
    this.#launcher = launcher;
    this.#secret = secret;
    for (const name of ["home", "effects", "project/profiles"])
      mkdirSync(join(folder, name), { recursive: true });
    for (const [name, url] of Object.entries(FILES))
      cpSync(fileURLToPath(url), join(folder, "project", name));
    const command = [process.execPath, "--no-warnings", join(folder, "project/stack/tree-executor.ts")];
    writeFileSync(
      join(folder, "project/profiles/tree.json"),
      JSON.stringify({ command, conversation_ttl_seconds: 0 }),
    );
  }

  get database(): string {
    return join(this.folder, "home/.local/share/holdfast/coordinator.db");
  }

  /** The token by which the coordinator is called. Only after a start. */
  get adminToken(): string {
    return readFileSync(join(this.folder, "home/.local/share/holdfast/admin-token"), "utf8").trim();
  }

  /** `holdfast local start`, on the port of the first start. */
  async start(): Promise<Finished> {
    const files = [...AGENTS.flatMap((file) => ["--agents", file]), "--tasks", TASKS];
    const words = ["local", "start", ...files, "--port", this.#port, "--secret-stdin", SECRET];
    const finished = await this.command(words, `${this.#secret}\n`);
    const url = this.state?.url;
    if (finished.code === 0 && url !== undefined) this.#port = new URL(url).port;
    return finished;
  }

  /** A command of the user, to its end. */
  command(words: readonly string[], input = ""): Promise<Finished> {
    const shell = ["-c", 'ulimit -c unlimited; exec "$@"', "sh"];
    const child = spawn("sh", [...shell, process.execPath, this.#launcher, ...words], {
      cwd: join(this.folder, "project"),
      env: {
        PATH: process.env["PATH"],
        HOME: join(this.folder, "home"),
        LANG: "C.UTF-8",
        NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"],
        [EFFECTS_FOLDER]: join(this.folder, "effects"),
        [RUNNER_NAME]: "local",
      },
    });
    child.stdin.on("error", () => {});
    child.stdin.end(input);
    let said = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text: string) => (said += text));
    return new Promise((resolve, reject) => {
      const tooLong = setTimeout(() => {
        child.kill("SIGKILL");
        reject(new Error(`holdfast ${words.join(" ")} does not end: ${said}`));
      }, START_MS);
      child.on("error", reject);
      child.on("close", (code) => {
        clearTimeout(tooLong);
        resolve({ code, said });
      });
    });
  }

  /** The last state that the supervisor wrote; `undefined` before the first start. */
  get state(): StackState | undefined {
    try {
      const path = join(this.folder, "home/.local/share/holdfast/local/stack.json");
      return JSON.parse(readFileSync(path, "utf8")) as StackState;
    } catch {
      return undefined;
    }
  }

  /** The living process of a component, whatever it does at the moment. */
  pidOf(component: Component): number | undefined {
    const { state } = this;
    const pid =
      component === "supervisor"
        ? state?.supervisor.pid
        : state?.processes.find((one) => one.component === component && one.status !== "draining")?.pid;
    return pid !== undefined && this.#isOurs(pid) && found(pid) !== undefined ? pid : undefined;
  }

  get isReady(): boolean {
    const { state } = this;
    if (state?.status !== "running" || this.pidOf("supervisor") === undefined) return false;
    return state.processes.every(({ status, pid }) => status === "ready" && found(pid ?? 0) !== undefined);
  }

  /** The supervisor has stopped without being asked: it gave up, or was killed. */
  get isDown(): boolean {
    return this.pidOf("supervisor") === undefined;
  }

  /** @returns whether the stack is ready; it is not when it went down. */
  async ready(): Promise<boolean> {
    for (const until = performance.now() + START_MS; performance.now() < until; await sleep(LOOK_EVERY_MS)) {
      if (this.isReady) return true;
      if (this.isDown) return false;
    }
    throw new Error(`the stack does not become ready: ${JSON.stringify(this.state)}`);
  }

  /** Kills the process of a component, and waits for its end. @returns its pid, or `undefined` when it was not there. */
  async kill(component: Component): Promise<number | undefined> {
    const pid = this.pidOf(component);
    if (pid === undefined) return undefined;
    endProcess(pid);
    while (found(pid) !== undefined) await sleep(LOOK_EVERY_MS);
    return pid;
  }

  /** Without zombies. */
  get processes(): readonly FoundProcess[] {
    const pids = listed("/proc").filter((name) => /^\d+$/.test(name));
    return pids.flatMap((name) => (this.#isOurs(Number(name)) ? (found(Number(name)) ?? []) : []));
  }

  /** Processes that a component which is gone has started, or an agent of such a one. */
  get orphans(): readonly FoundProcess[] {
    const { state } = this;
    const known = new Set([state?.supervisor.pid, ...(state?.processes.map(({ pid }) => pid) ?? [])]);
    const runners = state?.processes.filter(({ component }) => component === "runner") ?? [];
    const oldest = Math.min(...runners.map(({ pid }) => found(pid ?? 0)?.startedAt ?? Infinity));
    return this.processes.filter(({ pid, startedAt }) => !known.has(pid) && startedAt < oldest);
  }

  /** Processes that carry a tag, as those of an executor do (`executor:SESSION`). */
  withTag(tag: string): readonly FoundProcess[] {
    return this.processes.filter(({ pid }) =>
      `\0${textOf(`/proc/${pid}/environ`)}`.includes(`\0HOLDFAST_TAG=${tag}\0`),
    );
  }

  /** Ends everything by force. */
  close(): void {
    for (let left = this.processes; left.length > 0; left = this.processes)
      for (const { pid } of left) endProcess(pid);
  }

  #isOurs(pid: number): boolean {
    return `\0${textOf(`/proc/${pid}/environ`)}`.includes(`\0HOME=${join(this.folder, "home")}\0`);
  }
}

function found(pid: number): FoundProcess | undefined {
  const status = textOf(`/proc/${pid}/stat`);
  // pid (name) state parent …, and the name may hold spaces and parentheses. The start is field 22.
  const fields = status.slice(status.lastIndexOf(")") + 2).split(" ");
  const [state = "Z", parent] = fields;
  if (status === "" || "ZX".includes(state)) return undefined;
  const command = textOf(`/proc/${pid}/cmdline`).replaceAll("\0", " ").trim();
  return { pid, parent: Number(parent), startedAt: Number(fields[19]), command };
}

/** Empty for a process that has ended. */
function textOf(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}
