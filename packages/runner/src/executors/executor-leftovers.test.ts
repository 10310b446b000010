// P1, P6: what runs of executors leave on the machine, and in the process that supervises them. The orphans campaign makes more runs.

import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { openWorld, type World } from "../testing/executor-world.ts";

const WAIT = { timeout: 20_000, interval: 20 };
/** Runs of each kind: those that end, and those that are cancelled. */
const RUNS = Number(process.env["HOLDFAST_RUNS"] ?? 4) / 2;
const LOOKS_MAX = 500;

let world: World;
beforeEach(async () => void (world = await openWorld()));
afterEach(() => world.close());

// The counts come from /proc, which only Linux has.
test.runIf(process.platform === "linux")(
  "P1, P6: runs that fail or are cancelled leave no process, descriptor, timer, listener or zombie behind",
  { timeout: 60_000 + RUNS * 10_000 },
  async () => {
    const script = `test "$1" = --schema && exit 1
      setsid sleep 1000 > /dev/null 2>&1 &
      case "$(cat)" in *stay*) exec sleep 1000;; esac
      exit 3`;
    const others = childrenOf(process.pid).length; // Tests that ran before in this worker may have left one for later tests.
    const { runtime, agent, host } = world.open(await world.shell(script));
    const runs = async (): Promise<void> => {
      for (let run = 0; run < RUNS; run++) {
        await expect((await runtime.start(agent, "end")).result()).rejects.toThrow("code 3");
        const stays = await runtime.start(agent, "stay");
        await vi.waitUntil(() => childrenOf(process.pid).length > others, WAIT);
        await stays.cancel({ hard: true });
        expect((await stays.settled()).status).toBe("cancelled");
        await vi.waitUntil(() => childrenOf(process.pid).length === others, WAIT);
      }
    };
    await runs(); // The first runs open what is kept on purpose, as the pool of threads.
    const before = await heldAtRest();
    await runs();
    expect(await heldAtRest()).toEqual(before);
    expect(workingIn(world.folder)).toEqual([]);
    await host.close();
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
