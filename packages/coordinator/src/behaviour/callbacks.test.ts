// Callbacks of sessions that are started through the API.

import { CHILD_ENDED } from "@holdfast/core";
import { TestClock } from "@holdfast/testkit/test-runtime";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openFleet, type Fleet } from "../testing/fleet.ts";

let fleet: Fleet;
beforeEach(async () => {
  fleet = await openFleet();
});
afterEach(() => fleet.close());

test("a session that was started with a callback notifies its parent by one name, and a queued task has none", async () => {
  const ada = await fleet.user("ada");
  const runner = await fleet.runner();
  const parentId = await ada.start();
  const childId = await ada.start({ invocation: "async_callback", parentSessionId: parentId });
  const { claims } = await runner.poll();
  const claim = claims.find(({ sessionId }) => sessionId === childId)!;
  await runner.say(claim, { status: "paused", waits: [], pauseReason: "by_user" });
  await ada.post(`/v1/sessions/${childId}/cancel`, { mode: "hard" });
  const named = (await fleet.storage.reader.pendingSignals(parentId)).filter(
    ({ name }) => name === CHILD_ENDED,
  );
  expect(named.map(({ payload }) => JSON.parse(payload ?? "null"))).toEqual([
    { child: childId, event: { type: "cancelled", reason: null } },
  ]);
  expect(await fleet.storage.reader.pendingSignals(parentId)).toHaveLength(2);
  const task = {
    type: "create_session",
    sessionId: "ses_task",
    agent: { name: "task:shell", version: "1" },
  } as const;
  const queued = { ...task, input: "1", seed: 1, flags: 0, format: 1, placement: { owner: "ada" } };
  await fleet.storage.commit([queued], Date.now());
  const below = { agent: "greeter", invocation: "async_callback", parentSessionId: "ses_task" };
  const refused = await ada.post("/v1/sessions", below);
  expect([refused.status, refused.body.detail]).toEqual([
    422,
    "session ses_task is a queued task, and no conversation",
  ]);
});

test.each(["sync", "async_poll"])(
  "a session of the mode %s that names a parent is its child, and outlives it",
  async (invocation) => {
    const ada = await fleet.user("ada");
    const parentId = await ada.start();
    const start = { agent: "greeter", invocation, waitMs: 0, sessionId: "below", parentSessionId: parentId };
    expect((await ada.post("/v1/sessions", start)).body).toMatchObject({
      parentSessionId: parentId,
      depth: 1,
    });
    const other = { ...start, invocation: "async_callback" };
    expect((await ada.post("/v1/sessions", other)).body.code).toBe("session_exists");
    const runner = await fleet.runner();
    const { claims } = await runner.poll();
    const claim = claims.find(({ sessionId }) => sessionId === parentId)!;
    await runner.complete(claim);
    expect((await ada.get("/v1/sessions/below")).body.status).not.toMatch(/cancel/);
    const late = await ada.post("/v1/sessions", { ...start, sessionId: "late" });
    expect([late.status, late.body.detail]).toEqual([
      409,
      `session ${parentId} has ended (completed): it can have no child`,
    ]);
  },
);

test("a child that no runner matches, and one that another runner ends after its runner was lost, call back", async () => {
  await fleet.close();
  const clock = new TestClock();
  fleet = await openFleet({ clock });
  const ada = await fleet.user("ada");
  const runner = await fleet.runner();
  const parentId = await ada.start();
  const { claims: own } = await runner.poll();
  await runner.say(own[0]!, { status: "waiting", waits: [{ type: "signal", id: 0, name: CHILD_ENDED }] });
  await runner.release(own[0]!);
  const below = { invocation: "async_callback", parentSessionId: parentId };
  const unmatched = await ada.start({ ...below, demands: { gpu: "a100" } });
  const lost = await ada.start(below);
  const { claims } = await runner.poll();
  const claim = claims.find(({ sessionId }) => sessionId === lost)!;
  await runner.say(claim, { status: "working", waits: [] });
  const ends = async () =>
    (await fleet.storage.reader.pendingSignals(parentId))
      .filter(({ name }) => name === CHILD_ENDED)
      .map(
        ({ payload }) => JSON.parse(payload!) as { child: string; event: { type: string; error?: object } },
      );
  await clock.advance(60_000); // Its runner says nothing any more.
  expect(await ends()).toEqual([]);
  const other = await fleet.runner({ hostname: "other" });
  const again = (await other.poll()).claims.find(({ sessionId }) => sessionId === lost)!;
  await other.complete(again);
  expect(await ends()).toMatchObject([{ child: lost, event: { type: "completed" } }]);
  await clock.advance(5 * 60_000);
  expect(await ends()).toMatchObject([
    { child: lost },
    { child: unmatched, event: { type: "failed", error: { code: "no_matching_runner" } } },
  ]);
});
