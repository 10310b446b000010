// Dispatch where answers and notices get lost: nothing is given twice, nothing is forgotten.

import type { AgentStorage } from "@holdfast/core";
import { countingRandom, MemoryStorage, storageWith, TestClock, turns } from "@holdfast/testkit/test-runtime";
import { expect, test } from "vitest";
import { Dispatcher } from "./dispatcher.ts";
import { Registry, type StoredRunner } from "./registry.ts";

const RUNNER: StoredRunner = {
  runnerId: "r1",
  tokenId: "t1",
  hostname: "h",
  project: "",
  labels: {},
  taskKinds: [],
  agents: [{ name: "agent" }],
  maxRuns: 9,
  registeredAt: 0,
  seenAt: 0,
};

test("W1: a poll that is asked again gets what it got, and nothing besides", async () => {
  const { poll, create } = await open();
  await create("s1");
  const first = await poll("p1");
  await create("s2");
  expect((await poll("p1")).claims).toEqual(first.claims);
  expect(first.claims.map(({ sessionId }) => sessionId)).toEqual(["s1"]);
});

test("W1: and nothing that was given back meanwhile", async () => {
  const { poll, create, clock } = await open();
  await create("s1");
  expect((await poll("p1")).claims).toHaveLength(1);
  await clock.advance(2_000);
  expect((await poll("p1")).claims).toEqual([]);
});

// Its runner reached another coordinator of the same storage.
test.each([
  ["something", [{ type: "started", seq: 0, at: 0 }]],
  ["a batch without records", []], // Such as one that only pays for what starts with it.
] as const)("D2: a claim under which %s was committed is not given back", async (_, records) => {
  const { poll, create, clock, storage } = await open();
  await create("s1");
  const [claim] = (await poll("p1")).claims;
  await clock.advance(1);
  const batch = { firstSeq: 0, records, entries: [], consumed: [] };
  await storage.commit(
    [{ type: "commit_batch", sessionId: "s1", token: claim!.token, ...batch }],
    clock.now(),
  );
  await clock.advance(2_000);
  const taken = { sessionId: "s1", owner: "r2", now: clock.now(), leaseMs: 1 };
  expect(await storage.claim(taken)).toEqual({ status: "busy", owner: "r1" });
});

test("D2: a claim that storage took long for is not told", async () => {
  const { poll, create, clock } = await open({ loadMs: 2_000 });
  await create("s1");
  const answer = poll("p1", 3_000);
  await clock.advance(3_000);
  expect((await answer).claims).toEqual([]);
});

test("D5: what nobody was told of is found while somebody waits", async () => {
  const { poll, create, clock } = await open();
  const answer = poll("p1", 10_000);
  await turns(20);
  await create("s1");
  await clock.advance(1_000);
  expect((await answer).claims.map(({ sessionId }) => sessionId)).toEqual(["s1"]);
});

async function open({ loadMs = 0 } = {}) {
  const clock = new TestClock();
  const storage = new MemoryStorage();
  const slow: AgentStorage = storageWith(storage, {
    async load(sessionId) {
      const snapshot = await storage.load(sessionId);
      if (loadMs > 0) await new Promise<void>((resolve) => clock.setTimer(resolve, loadMs));
      return snapshot;
    },
  });
  const registry = new Registry({ storage: slow, clock });
  await registry.change(RUNNER.runnerId, undefined, () => RUNNER);
  const dispatcher = new Dispatcher({
    storage: slow,
    commit: (changes) => slow.commit(changes, clock.now()),
    clock,
    registry,
    random: countingRandom(),
    leaseMs: 15_000,
    warn: () => {},
    claimed: () => {},
  });
  return {
    clock,
    storage,
    poll: (pollId: string, waitMs = 0) =>
      dispatcher.poll(
        { runnerId: "r1", pollId, ackCommandIds: [], free: 1, agents: [], taskKinds: [], waitMs },
        RUNNER,
      ),
    create: (sessionId: string) => storage.commit([creation(sessionId)], clock.now()),
  };
}

function creation(sessionId: string) {
  const agent = { name: "agent", version: "1" };
  return { type: "create_session", sessionId, agent, input: "null", seed: 1, flags: 0, format: 1 } as const;
}
