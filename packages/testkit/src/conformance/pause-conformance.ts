// ST30 and ST31: standing still until a person says so, and not longer than one was given.

import { LIMITS } from "@holdfast/core";
import { expect, test } from "vitest";
import { listen } from "./arrival-listener.ts";
import {
  cancelling,
  creating,
  ENDINGS,
  INVALID,
  PATCH_TO,
  pausing,
  resuming,
  signalling,
  STARTED,
  type Fixture,
} from "./fixture.ts";

const OPEN = ["submitted", "working", "waiting", "input_required"] as const;

export function pauseConformance(fixture: Fixture): void {
  const due = (now: number) => fixture.storage.due({ now, limit: 10 });

  for (const status of OPEN) {
    test(`ST30: a session that is ${status} is paused by a person, is not due, and goes on when resumed`, async () => {
      const claimant = await fixture.createIn(status);
      const { waits } = await fixture.session("ses-1");
      await claimant.release();
      expect(await fixture.apply(pausing("ses-1"), 5)).toEqual({
        status: "requested",
        sessionStatus: "paused",
      });
      expect(await fixture.session("ses-1")).toMatchObject({
        status: "paused",
        pauseReason: "by_user",
        inbox: 1,
        updatedAt: 5,
      });
      expect(await due(1_000)).toEqual({ sessionIds: [], schedules: [] });
      expect(await fixture.apply(resuming("ses-1"), 6)).toEqual({
        status: "requested",
        sessionStatus: "working",
      });
      const session = await fixture.session("ses-1");
      // It can be answered before its agent stands again.
      expect(session).toMatchObject({ status: "working", waits, inbox: 2, updatedAt: 6 });
      expect(session).not.toHaveProperty("pauseReason");
      expect((await due(6)).sessionIds).toEqual(["ses-1"]);
    });
  }

  for (const status of ENDINGS) {
    test(`ST30: a session that is ${status} is neither paused nor resumed`, async () => {
      await fixture.createIn(status);
      const before = await fixture.everything("ses-1");
      const ended = { status: "ended", sessionStatus: status };
      expect(await fixture.apply(pausing("ses-1"))).toEqual(ended);
      expect(await fixture.apply(resuming("ses-1"))).toEqual(ended);
      expect(await fixture.everything("ses-1")).toEqual(before);
    });
  }

  test("ST30: pausing what is paused, and resuming what is not, changes nothing", async () => {
    const claimant = await fixture.createIn("working");
    const working = await fixture.everything("ses-1");
    expect(await fixture.apply(resuming("ses-1"), 9)).toEqual({
      status: "requested",
      sessionStatus: "working",
    });
    expect(await fixture.everything("ses-1")).toEqual(working);
    await claimant.commit({ session: { status: "paused", pauseReason: "poison" } });
    const paused = await fixture.everything("ses-1");
    expect(await fixture.apply(pausing("ses-1"), 9)).toEqual({
      status: "requested",
      sessionStatus: "paused",
    });
    expect(await fixture.everything("ses-1")).toEqual(paused);
    expect(await fixture.apply(pausing("ses-none"))).toEqual({ status: "not_found" });
    expect(await fixture.apply(resuming("ses-none"))).toEqual({ status: "not_found" });
  });

  // Its driver was in the middle of a step. The step counts, but the status that it gives does not.
  test("ST30: a batch made before its driver heard of the pause is kept, and the session stays paused", async () => {
    const claimant = await fixture.createIn("working");
    await fixture.apply(pausing("ses-1"));
    for (const status of ["working", "waiting", "input_required"] as const) {
      const session = { ...PATCH_TO[status], wakeAt: 50 };
      expect(await claimant.commit({ records: [STARTED], session })).toEqual({
        status: "committed",
        inbox: 1,
      });
      expect(await fixture.session("ses-1")).toMatchObject({ status: "paused", pauseReason: "by_user" });
    }
    await claimant.release();
    await fixture.apply(signalling("ses-1", "sig-1", { name: "answer:0" }));
    expect((await due(1_000)).sessionIds).toEqual([]);
    expect((await fixture.session("ses-1")).nextSeq).toBe(3);
  });

  for (const status of ENDINGS) {
    test(`ST30: a session that becomes ${status} while it is paused has ended`, async () => {
      const claimant = await fixture.createIn("working");
      await fixture.apply(pausing("ses-1"));
      expect(await claimant.commit({ session: PATCH_TO[status] })).toMatchObject({ status: "committed" });
      const session = await fixture.session("ses-1");
      expect(session.status).toBe(status);
      expect(session).not.toHaveProperty("pauseReason");
    });
  }

  test("ST30: a session that is being cancelled is not paused, and when it paused itself it is resumed to its end", async () => {
    const claimant = await fixture.createIn("cancelling");
    expect(await fixture.apply(pausing("ses-1"))).toEqual({
      status: "requested",
      sessionStatus: "cancelling",
    });
    const { waits = [] } = PATCH_TO.waiting;
    await claimant.commit({ session: { status: "paused", pauseReason: "nondeterminism", waits } });
    await fixture.apply(resuming("ses-1"));
    expect(await fixture.session("ses-1")).toMatchObject({ status: "cancelling", waits: [] });
    expect(await claimant.commit({ session: PATCH_TO.completed })).toEqual(INVALID);
  });

  test("ST30: listeners hear of a pause and of the end of it", async () => {
    await fixture.createIn("waiting");
    const listener = listen(fixture);
    await fixture.apply(pausing("ses-1"));
    await fixture.apply(pausing("ses-1"));
    await fixture.apply(resuming("ses-1"));
    expect(await listener.received(2)).toEqual([
      { sessionId: "ses-1", awaited: true },
      { sessionId: "ses-1", awaited: true },
    ]);
  });

  for (const status of [...OPEN, "paused"] as const) {
    test(`ST31: a session that is ${status} past its own deadline is cancelled for it`, async () => {
      const claimFor = { owner: "owner-1", leaseMs: Infinity };
      await fixture.apply(creating("ses-1", { deadlineAt: 100, claimFor }));
      const claimant = await fixture.claim("ses-1", "owner-1", 1, Infinity);
      if (status !== "submitted") await claimant.commit({ session: PATCH_TO[status] });
      expect(await due(99)).toEqual({ sessionIds: [], schedules: [], nextAt: 100 });
      const listener = listen(fixture);
      await due(100);
      expect(await fixture.session("ses-1")).toMatchObject({
        status: "cancelling",
        waits: [],
        inbox: 1,
        cancel: { mode: "graceful", cause: "deadline", deadlineAt: 100 + LIMITS.cancelGraceMs },
      });
      expect(await listener.received(1)).toEqual([{ sessionId: "ses-1", awaited: true }]);
      await claimant.release();
      expect(await due(101)).toEqual({
        sessionIds: ["ses-1"],
        schedules: [],
        nextAt: 100 + LIMITS.cancelGraceMs,
      });
      await due(100 + LIMITS.cancelGraceMs);
      expect((await fixture.session("ses-1")).status).toBe("cancelled");
    });
  }

  test("ST31: a cancel that came before it keeps its own deadline and cause", async () => {
    await fixture.apply(creating("ses-1", { deadlineAt: 100 }));
    await fixture.apply(cancelling("ses-1", { graceMs: 500 }), 50);
    await due(100);
    const { cancel, status } = await fixture.session("ses-1");
    expect(status).toBe("cancelling");
    expect(cancel).toEqual({ mode: "graceful", deadlineAt: 550 });
  });

  test("ST31: a session that has ended in time is not cancelled", async () => {
    const claimFor = { owner: "owner-1", leaseMs: Infinity };
    await fixture.apply(creating("ses-1", { deadlineAt: 100, claimFor }));
    const claimant = await fixture.claim("ses-1", "owner-1", 1, Infinity);
    await claimant.commit({ session: PATCH_TO.completed });
    expect(await due(1_000)).toEqual({ sessionIds: [], schedules: [] });
    expect((await fixture.session("ses-1")).status).toBe("completed");
  });

  test("ST31: its children are cancelled with it, and its parent is told that it ran out of time", async () => {
    const parent = await fixture.createClaimed("ses-parent");
    const child = await fixture.spawn(parent, "ses-child", { deadlineAt: 100 });
    await fixture.spawn(child, "ses-grandchild");
    await due(100);
    expect((await fixture.session("ses-grandchild")).cancel).toMatchObject({
      cause: "parent",
      deadlineAt: 100 + LIMITS.cancelGraceMs,
    });
    await due(100 + LIMITS.cancelGraceMs);
    expect(await fixture.sent("ses-parent")).toEqual([
      ["child:0", { type: "timed_out" }],
      ["child-end:0", { type: "timed_out" }],
    ]);
  });
}
