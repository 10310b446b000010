// local-stack: the memory of an idle local stack, the time of a start, and how soon sessions continue after a kill.
//
// It starts the bundled command, as users do, in a home folder of its own. A session writes a line for each step, so a gap
// between two lines is the time in which nothing was done.

import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { setTimeout as delay } from "node:timers/promises";
import { installCommand } from "../../scripts/installed-command.ts";
import type { Measured } from "../line.ts";
import { median, nowMs, until } from "../measure.ts";
import { withFolder } from "../storages.ts";
import type { Workload } from "../workload.ts";

const MEMORY_GOAL_MB = 150;
const TIME_GOAL_MS = 3_000;
/** Without work for so long, a stack is idle. */
const IDLE_MS = 5_000;
const STEP_MS = 20;
const WAIT_MS = 60_000;

const agent = (ledger: string): string => `import { appendFileSync } from "node:fs";
import { defineAgent } from "holdfast";
export default defineAgent({ name: "steps", run: async (ctx) => {
  for (;;) {
    await ctx.run("step", async () => {
      appendFileSync(${JSON.stringify(ledger)}, process.pid + "\\n");
      await new Promise((done) => setTimeout(done, ${STEP_MS}));
    });
  }
} });
`;

interface StackState {
  readonly supervisor: { readonly pid: number };
  readonly processes: readonly { readonly component: string; readonly pid?: number }[];
}

export const localStack: Workload = {
  id: "local-stack",
  title: "the local stack: memory, start, and work after a kill",
  refuses: (storage) => (storage === "sqlite" ? undefined : "the local stack has its own database"),
  run: async function* ({ folder, repeats, isQuick }) {
    const command = join(await installCommand(), "holdfast");
    const measured: Measured[] = await withFolder(folder, (place) =>
      measure(new Stack(place, command), isQuick ? 1 : repeats, isQuick ? 0 : IDLE_MS),
    );
    yield* measured;
  },
};

async function measure(stack: Stack, repeats: number, idleMs: number): Promise<Measured[]> {
  const starts: number[] = [];
  try {
    for (let i = 0; i < repeats; i++) {
      if (i > 0) await stack.holdfast("local", "stop");
      starts.push(await stack.start());
    }
    await delay(idleMs);
    const idleMb = stack.memoryMb();
    await stack.startSession();
    const [afterRunner, afterSupervisor]: [number[], number[]] = [[], []];
    for (let i = 0; i < repeats; i++) {
      afterRunner.push(await stack.gapAfter(() => process.kill(stack.pidOf("runner"), "SIGKILL")));
      afterSupervisor.push(
        await stack.gapAfter(async () => {
          process.kill(stack.pidOf("supervisor"), "SIGKILL");
          await stack.start();
        }),
      );
    }
    return [
      {
        variant: "idle, sum of PSS",
        unit: "MB",
        value: idleMb,
        goal: `<= ${MEMORY_GOAL_MB} MB`,
        isGoalMet: idleMb <= MEMORY_GOAL_MB,
      },
      timed("local start, until it is ready", starts),
      timed("killed runner, until the next step", afterRunner),
      timed("killed supervisor and a new start, until the next step", afterSupervisor),
    ];
  } finally {
    await stack.holdfast("local", "stop");
  }
}

function timed(variant: string, all: readonly number[]): Measured {
  const value = median(all);
  const most = Math.max(...all);
  return {
    variant,
    unit: "ms",
    value,
    goal: `<= ${TIME_GOAL_MS} ms`,
    isGoalMet: value <= TIME_GOAL_MS,
    more: { most },
  };
}

class Stack {
  readonly #folder: string;
  readonly #command: string;
  readonly #home: string;

  constructor(folder: string, command: string) {
    this.#folder = folder;
    this.#command = command;
    this.#home = join(folder, "home");
    mkdirSync(this.#home);
    writeFileSync(join(folder, "steps.mjs"), agent(join(folder, "ledger")));
  }

  async holdfast(...args: readonly string[]): Promise<void> {
    const { PATH, NODE_COMPILE_CACHE } = process.env;
    const env = { PATH, NODE_COMPILE_CACHE, HOME: this.#home, LANG: "C.UTF-8" };
    await promisify(execFile)(process.execPath, [this.#command, ...args], { cwd: this.#folder, env });
  }

  /** @returns how long the command took. */
  async start(): Promise<number> {
    const startedAt = nowMs();
    await this.holdfast("local", "start", "--agents", "steps.mjs", "--port", "0");
    return nowMs() - startedAt;
  }

  #state(): StackState & { readonly url: string } {
    const path = join(this.#home, ".local/share/holdfast/local/stack.json");
    return JSON.parse(readFileSync(path, "utf8")) as StackState & { readonly url: string };
  }

  /** Starts the session that works all the time. */
  async startSession(): Promise<void> {
    const token = readFileSync(join(this.#home, ".local/share/holdfast/admin-token"), "utf8").trim();
    const answer = await fetch(`${this.#state().url}/v1/sessions`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify({ agent: "steps", input: null }),
    });
    if (!answer.ok) throw new Error(`the session was not started: ${await answer.text()}`);
    await until("the session works", () => this.#worker() !== undefined, WAIT_MS);
  }

  pidOf(component: "supervisor" | "runner"): number {
    const { supervisor, processes } = this.#state();
    const pid =
      component === "supervisor" ? supervisor.pid : processes.find((one) => one.component === component)?.pid;
    if (pid === undefined) throw new Error(`the local stack has no ${component}`);
    return pid;
  }

  /** The memory of all its processes, each shared page counted once. */
  memoryMb(): number {
    const sizes = readdirSync("/proc").map((pid) => {
      try {
        if (!readFileSync(`/proc/${pid}/environ`, "latin1").includes(`HOME=${this.#home}\0`)) return 0;
        return Number(/^Pss: +(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "latin1"))?.[1]);
      } catch {
        return 0; // It is no process, or has just ended.
      }
    });
    return sizes.reduce((sum, size) => sum + size, 0) / 1024;
  }

  /** The process that did the last step. */
  #worker(): string | undefined {
    const ledger = join(this.#folder, "ledger");
    return existsSync(ledger) ? readFileSync(ledger, "utf8").trimEnd().split("\n").at(-1) : undefined;
  }

  /** @returns the time from the kill until another process does the session's next step. */
  async gapAfter(kill: () => unknown): Promise<number> {
    const before = this.#worker();
    const startedAt = nowMs();
    await kill();
    await until("another process works", () => this.#worker() !== before, WAIT_MS);
    return nowMs() - startedAt;
  }
}
