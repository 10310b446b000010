// P1, P6: what runs of executors leave on the machine, and in the process that supervises them. The orphans
// campaign makes more runs.

import { existsSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { openWorld, type World } from "../../testing/executor-world.ts";

const WAIT = { timeout: 30_000, interval: 20 };
/** Counted runs; the even ones fail, and the odd ones are cancelled. */
const RUNS = Number(process.env["HOLDFAST_RUNS"] ?? 8);
/** Runs at a time. Each run has processes and sessions of its own. */
const WIDTH = 8;
const LOOKS_MAX = 500;

let world: World;
beforeEach(async () => void (world = await openWorld()));
afterEach(() => world.close());

// The counts come from /proc, which only Linux has.
test.runIf(process.platform === "linux")(
  "P1, P6: runs that fail or are cancelled leave no process, descriptor, timer, listener or zombie behind",
  { timeout: 60_000 + RUNS * 5_000 },
  async () => {
    const script = `test "$1" = --schema && exit 1
      setsid sleep 1000 > /dev/null 2>&1 &
      read -r input
      case "$input" in *stay-*) name=\${input#*stay-}; : > "ready-\${name%%.*}"; exec sleep 1000;; esac
      exit 3`;
    // The guard of this process stays, which its first program starts. Tests that ran before may have started one.
    const atFirst = childrenOf(process.pid).length;
    const { runtime, agent, executor } = world.open(await world.shell(script));
    const run = async (name: string): Promise<void> => {
      const isCancelled = Number(name) % 2 === 1;
      const handle = await runtime.start(agent, isCancelled ? `stay-${name}.` : "end");
      if (!isCancelled) return expect(handle.result()).rejects.toThrow("code 3");
      await vi.waitUntil(() => existsSync(join(world.folder, `ready-${name}`)), WAIT);
      await handle.cancel({ hard: true });
      expect((await handle.settled()).status).toBe("cancelled");
    };
    await run("0");
    const others = (await heldAtRest()).children!;
    expect(others - atFirst).toBeLessThanOrEqual(1);
    const runs = async (count: number): Promise<void> => {
      for (let first = 0; first < count; first += WIDTH) {
        const names = Array.from({ length: Math.min(WIDTH, count - first) }, (_, n) => String(first + n));
        await Promise.all(names.map(run));
        await vi.waitUntil(() => childrenOf(process.pid).length === others, WAIT);
        expect(workingIn(world.folder)).toEqual([]);
        for (const name of names) rmSync(join(world.folder, `ready-${name}`), { force: true });
      }
    };
    await runs(WIDTH); // The first runs open what is kept on purpose, as the pool of threads.
    const before = await heldAtRest();
    await runs(RUNS);
    expect(await heldAtRest()).toEqual(before);
    await executor.close();
    await runtime.close();
  },
);

/** The counts, once nothing changes any more. The wait for it has no timer of its own, which would be counted. */
async function heldAtRest(): Promise<Readonly<Record<string, number>>> {
  let last = held();
  for (let looks = 0, same = 0; same < 5; looks++) {
    if (looks === LOOKS_MAX) throw new Error(`this never comes to rest: ${JSON.stringify(last)}`);
    await delay(20);
    const now = held();
    same = isDeepStrictEqual(now, last) ? same + 1 : 0;
    last = now;
  }
  return last;
}

/** Counts of this process. Something that it holds for a moment may be gone at the next look. */
function held(): Readonly<Record<string, number>> {
  const resources = process.getActiveResourcesInfo();
  return {
    descriptors: readdirSync("/proc/self/fd").length,
    servers: resources.filter((what) => what === "TCPServerWrap").length,
    pipes: resources.filter((what) => what === "PipeWrap").length,
    processes: resources.filter((what) => what === "ProcessWrap").length,
    timers: resources.filter((what) => what === "Timeout").length,
    listeners: process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0),
    children: childrenOf(process.pid).length,
  };
}

/** The processes whose current folder this is, with their commands. */
function workingIn(folder: string): readonly string[] {
  return readdirSync("/proc").flatMap((pid) => {
    try {
      const isThere = /^\d+$/.test(pid) && readlinkSync(`/proc/${pid}/cwd`) === folder;
      return isThere ? [`${pid} ${readFileSync(`/proc/${pid}/cmdline`, "latin1")}`] : [];
    } catch {
      return []; // It has just ended.
    }
  });
}

/** The children of a process, zombies included. */
function childrenOf(pid: number): readonly string[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, "latin1").split(" ").filter(Boolean),
  );
}
