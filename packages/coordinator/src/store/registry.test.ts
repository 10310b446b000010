// Registry: a runner that is silent is removed, however often its coordinators are restarted.

import { MemoryStorage, TestClock } from "@holdfast/testkit/test-runtime";
import { beforeEach, describe, expect, test } from "vitest";
import { Registry, type StoredRunner } from "./registry.ts";

const MINUTE_MS = 60_000;
const SWEEP_MS = 5_000;

let clock: TestClock;
let storage: MemoryStorage;
beforeEach(async () => {
  clock = new TestClock();
  storage = new MemoryStorage();
  await open().change("rnr_1", undefined, () => ({ ...RUNNER, seenAt: clock.now() }));
});

const open = (): Registry => new Registry({ storage, clock });

/** Sweep for a while. @returns the runners that were removed. */
async function live(registry: Registry, ms: number): Promise<string[]> {
  const removed: string[] = [];
  for (let passed = 0; passed < ms; passed += SWEEP_MS) {
    await clock.advance(SWEEP_MS);
    removed.push(...(await registry.sweep()));
  }
  return removed;
}

const stored = async (): Promise<StoredRunner | undefined> => open().findFresh("rnr_1");

describe("the silence of a runner", () => {
  test("a runner is removed although no coordinator lives for ten minutes", async () => {
    const removed: string[] = [];
    let runs = 0;
    for (; runs < 9 && removed.length === 0; runs++) removed.push(...(await live(open(), 3 * MINUTE_MS)));
    expect(removed).toEqual(["rnr_1"]);
    expect(runs).toBeGreaterThan(3); // Not before ten minutes.
    expect(await stored()).toBeUndefined();
  });

  test("a silence counts once where several coordinators see it", async () => {
    const registries = [open(), open()];
    for (let passed = 0; passed < 9 * MINUTE_MS; passed += SWEEP_MS) {
      await clock.advance(SWEEP_MS);
      for (const registry of registries) expect(await registry.sweep()).toEqual([]);
    }
    expect((await stored())?.silence?.ms).toBeLessThanOrEqual(9 * MINUTE_MS);
  });

  test("a count begins from zero when the runner is heard of", async () => {
    await live(open(), 8 * MINUTE_MS);
    await open().change("rnr_1", undefined, (runner) => runner && { ...runner, seenAt: clock.now() });
    expect(await live(open(), 9 * MINUTE_MS)).toEqual([]);
    expect(await live(open(), 3 * MINUTE_MS)).toEqual(["rnr_1"]);
  });

  test("time without a coordinator does not count", async () => {
    await live(open(), 2 * MINUTE_MS);
    await clock.advance(60 * MINUTE_MS);
    expect(await live(open(), 5 * MINUTE_MS)).toEqual([]);
  });

  test("a count is written about once a minute", async () => {
    const registry = open();
    let writes = 0;
    const { commit } = storage;
    storage.commit = (...args) => (writes++, commit.apply(storage, args));
    await live(registry, 5 * MINUTE_MS + SWEEP_MS);
    expect(writes).toBeGreaterThanOrEqual(4);
    expect(writes).toBeLessThanOrEqual(5);
  });
});

test("a change that leaves a runner as it is writes nothing", async () => {
  const registry = open();
  storage.commit = () => Promise.reject(new Error("a write"));
  expect(await registry.change("rnr_1", undefined, (runner) => runner)).toMatchObject({ runnerId: "rnr_1" });
  expect(await registry.change("rnr_2", undefined, (runner) => runner)).toBeUndefined();
});

const RUNNER: Omit<StoredRunner, "seenAt"> = {
  runnerId: "rnr_1",
  tokenId: "tok_1",
  hostname: "host",
  project: "project",
  labels: {},
  agents: [],
  taskKinds: [],
  maxRuns: 1,
  registeredAt: 0,
};
