// `/healthz` of a coordinator whose storage cannot be written.

import { UnavailableError, type AgentStorage } from "@holdfast/core";
import { MemoryStorage, storageWith, TestClock } from "@holdfast/testkit/test-runtime";
import { afterEach, expect, test } from "vitest";
import { openFleet, type Fleet } from "../testing/fleet.ts";

let fleet: Fleet | undefined;
afterEach(() => fleet?.close());

function openFull() {
  const inner = new MemoryStorage();
  const state = { isFull: false, writes: 0 };
  const commit: AgentStorage["commit"] = (changes, now) => {
    state.writes++;
    const full = new UnavailableError("storage_full", "no space left on /secret/path");
    return state.isFull ? Promise.reject(full) : inner.commit(changes, now);
  };
  return { state, storage: storageWith(inner, { commit }) };
}

const health = async () => {
  const answer = await fetch(`${fleet!.url}/healthz`);
  return { status: answer.status, body: (await answer.json()) as { code?: string; detail?: string } };
};

test("a coordinator that cannot write answers 503 with the reason, and recovers without a restart", async () => {
  const { state, storage } = openFull();
  const clock = new TestClock();
  fleet = await openFleet({ storage, clock });
  expect((await health()).status).toBe(200);
  state.isFull = true;
  expect((await fleet.admin.post("/v1/sessions", { agent: "greeter" })).status).toBe(503);
  expect(await health()).toMatchObject({ status: 503, body: { code: "storage_full" } });
  expect((await health()).body.detail).toContain("full");
  expect(JSON.stringify(await health())).not.toContain("secret");
  state.isFull = false;
  expect((await health()).status).toBe(503);
  await clock.advance(2_000);
  expect((await health()).status).toBe(200);
  expect(fleet.log.filter((line) => line.includes("/healthz"))).toEqual([]);
});

test("where nothing was written for a while it tries, and no more often than it must", async () => {
  const { state, storage } = openFull();
  const clock = new TestClock();
  fleet = await openFleet({ storage, clock });
  await clock.advance(29_000);
  const before = state.writes;
  for (let i = 0; i < 5; i++) expect((await health()).status).toBe(200);
  expect(state.writes).toBe(before);
  state.isFull = true;
  await clock.advance(1_000);
  const idle = state.writes;
  for (let i = 0; i < 5; i++) expect((await health()).status).toBe(503);
  expect(state.writes).toBe(idle + 1);
});
