// Trials: which sessions are run alone, and what counts as a loss on trial.

import { type CreateSession, SUSPECT_LOSSES } from "@holdfast/core";
import { gate, storageWith, TestClock } from "@holdfast/testkit/test-runtime";
import { beforeEach, expect, test } from "vitest";
import { GroupCommitter } from "../loop/group-committer.ts";
import { Timers } from "../loop/timers.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { UnbegunTasks } from "../tasks/unbegun-tasks.ts";
import { Claims } from "./claims.ts";
import { Trials } from "./trials.ts";

const LEASE_MS = 1_000;

let memory: MemoryStorage;
let clock: TestClock;
let live: string[];
beforeEach(() => {
  memory = new MemoryStorage();
  clock = new TestClock();
  live = [];
});

function creating(sessionId: string): CreateSession {
  const agent = { name: "any", version: "1" };
  return { type: "create_session", sessionId, agent, input: undefined, seed: 1, flags: 0, format: 1 };
}

/** A session that so many holders have lost in a row. */
async function lost(sessionId: string, losses: number): Promise<string> {
  await memory.commit([creating(sessionId)], clock.now());
  for (let i = 0; i < losses; i++) {
    await memory.claim({ sessionId, owner: `dead ${i}`, now: clock.now(), leaseMs: LEASE_MS });
    clock.jump(LEASE_MS);
  }
  return sessionId;
}

async function lossesOf(sessionId: string): Promise<number> {
  clock.jump(LEASE_MS);
  const claim = await memory.claim({ sessionId, owner: "looker", now: clock.now(), leaseMs: LEASE_MS });
  return claim.status === "claimed" ? claim.losses : Number.NaN;
}

function trialsOver(storage: MemoryStorage, isDispatched = false): Trials {
  const committer = new GroupCommitter(storage, clock);
  const terms = () => ({ owner: "here", leaseMs: LEASE_MS });
  return new Trials({
    storage,
    committer,
    claims: new Claims({ storage, committer, clock, terms, unbegun: new UnbegunTasks() }),
    clock,
    timers: new Timers(clock),
    lossesMax: 5,
    isDispatched,
    live: () => live,
    inSession: () => false,
    warn: () => {},
  });
}

/** Claims a session and runs it: what was done with it. */
async function tried(trials: Trials, sessionId: string): Promise<string> {
  const claim = await trials.claim(sessionId);
  if (claim.status !== "claimed") return claim.status;
  let what = "";
  await trials.run(sessionId, claim, {
    drive: async () => {
      live.push(sessionId);
      what = "driven";
    },
    park: async () => void (what = "parked"),
  });
  return what;
}

const turn = () => new Promise((resolve) => setTimeout(resolve));

test("trials-1: a suspect that is claimed beside another one waits without a claim until the other has committed", async () => {
  await lost("a", SUSPECT_LOSSES);
  await lost("b", SUSPECT_LOSSES);
  const asked = gate();
  const storage = storageWith(memory, {
    async claim(query) {
      const claim = await memory.claim(query);
      await asked.opened; // Both are asked for before either is answered.
      return claim;
    },
  }) as MemoryStorage;
  const trials = trialsOver(storage);
  const done: string[] = [];
  const both = ["a", "b"].map((id) => tried(trials, id).then((what) => done.push(`${id} ${what}`)));
  asked.open();
  await turn();
  expect(done).toEqual(["a driven"]);
  expect(await memory.heldClaims({ now: clock.now(), limit: 10 })).toMatchObject([{ sessionId: "a" }]);
  trials.over("a");
  await Promise.all(both);
  expect(done).toEqual(["a driven", "b driven"]);
  // Neither count was reset: the next loss is one on trial.
  expect([await lossesOf("a"), await lossesOf("b")]).toEqual([SUSPECT_LOSSES + 1, SUSPECT_LOSSES + 1]);
});

test("trials-1: a session that is no suspect begins after the trial too", async () => {
  await lost("suspect", SUSPECT_LOSSES);
  await lost("innocent", 0);
  const trials = trialsOver(memory);
  expect(await tried(trials, "suspect")).toBe("driven");
  const later = tried(trials, "innocent");
  await turn();
  expect(live).toEqual(["suspect"]);
  trials.over("suspect");
  expect(await later).toBe("driven");
});

test("trials-2: a suspect that was lost five times on trial is parked, and no trial is left", async () => {
  const trials = trialsOver(memory);
  expect(await tried(trials, await lost("nearly", SUSPECT_LOSSES + 4))).toBe("driven");
  trials.over("nearly");
  live = [];
  expect(await tried(trials, await lost("poison", SUSPECT_LOSSES + 5))).toBe("parked");
  expect(trials.isTrying).toBe(false);
});

test("trials-3: a suspect that gets company is pardoned before it runs, and one that passed is no company", async () => {
  await lost("busy", 0);
  const trials = trialsOver(memory);
  expect(await tried(trials, "busy")).toBe("driven");
  expect(await tried(trials, await lost("pardoned", SUSPECT_LOSSES))).toBe("driven");
  expect(trials.isTrying).toBe(false);
  expect(await lossesOf("pardoned")).toBe(1);

  live = [];
  expect(await tried(trials, await lost("passed", SUSPECT_LOSSES))).toBe("driven");
  trials.over("passed");
  expect(await tried(trials, await lost("next", SUSPECT_LOSSES))).toBe("driven");
  expect(await lossesOf("next")).toBe(SUSPECT_LOSSES + 1);
});

test("a runner of a fleet tries nothing itself: its coordinator counts", async () => {
  const trials = trialsOver(memory, true);
  expect(await tried(trials, await lost("suspect", SUSPECT_LOSSES + 9))).toBe("driven");
  expect(trials.isTrying).toBe(false);
});
