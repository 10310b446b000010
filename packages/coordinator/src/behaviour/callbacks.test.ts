// Callbacks of sessions that are started through the API.

import { CHILD_ENDED } from "@holdfast/core";
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
