// local-stack: the memory of an idle local stack, the time of a start, and how soon sessions continue after a
// kill.
//
// It starts the bundled command, as users do, in a home folder of its own. A session writes a line for each
// step, so a gap between two lines is the time in which nothing was done.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Measured } from "../line.ts";
import { median, nowMs, until } from "../measure.ts";
import { BenchStack, environments } from "../stack.ts";
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

export const localStack: Workload = {
  id: "local-stack",
  title: "the local stack: memory, start, and work after a kill",
  refuses: (storage) => (storage === "sqlite" ? undefined : "the local stack has its own database"),
  run: async function* ({ folder, repeats, isQuick }) {
    yield* await withFolder(folder, async (place) => {
      const ledger = new Ledger(join(place, "ledger"));
      const stack = await BenchStack.make(place, agent(ledger.path));
      return measure(stack, ledger, isQuick ? 1 : repeats, isQuick ? 0 : IDLE_MS);
    });
  },
};

async function measure(
  stack: BenchStack,
  ledger: Ledger,
  repeats: number,
  idleMs: number,
): Promise<Measured[]> {
  const starts: number[] = [];
  try {
    for (let i = 0; i < repeats; i++) {
      if (i > 0) await stack.stop();
      starts.push(await stack.start());
    }
    await delay(idleMs);
    const idleMb = memoryMb(stack);
    await stack.sessions("", { agent: "steps", input: null });
    await until("the session works", () => ledger.worker() !== undefined, WAIT_MS);
    const [afterRunner, afterSupervisor]: [number[], number[]] = [[], []];
    for (let i = 0; i < repeats; i++) {
      afterRunner.push(await ledger.gapAfter(() => process.kill(stack.pidOf("runner")!, "SIGKILL")));
      afterSupervisor.push(
        await ledger.gapAfter(async () => {
          process.kill(stack.pidOf("supervisor")!, "SIGKILL");
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
    await stack.stop();
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

/** The memory of all its processes, each shared page counted once. */
function memoryMb({ home }: BenchStack): number {
  let kb = 0;
  for (const [pid, environment] of environments()) {
    if (!environment.includes(`\0HOME=${home}\0`)) continue;
    try {
      kb += Number(/^Pss: +(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "latin1"))?.[1]);
    } catch {
      // It has just ended.
    }
  }
  return kb / 1024;
}

/** The file of the session that works all the time: the process of each step. */
class Ledger {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** The process that did the last step. */
  worker(): string | undefined {
    return existsSync(this.path) ? readFileSync(this.path, "utf8").trimEnd().split("\n").at(-1) : undefined;
  }

  /** @returns the time from the kill until another process does the session's next step. */
  async gapAfter(kill: () => unknown): Promise<number> {
    const before = this.worker();
    const startedAt = nowMs();
    await kill();
    await until("another process works", () => this.worker() !== before, WAIT_MS);
    return nowMs() - startedAt;
  }
}
