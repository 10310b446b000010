// ST15, ST16 and ST17: cancelling, and that the end is the end.

import type { SessionStatus } from "@holdfast/core";
import { expect, test } from "vitest";
import {
  cancelling,
  checkpointing,
  ENDINGS,
  INVALID,
  PATCH_TO,
  signalling,
  STARTED,
  type Fixture,
} from "./fixture.ts";

const OPEN = [
  "submitted",
  "working",
  "waiting",
  "input_required",
  "paused",
] as const satisfies readonly SessionStatus[];

export function endConformance(fixture: Fixture): void {
  for (const status of ENDINGS) {
    test(`ST15: a session that is ${status} takes no batch, not even of its claimer`, async () => {
      const claimant = await fixture.createIn(status);
      const before = await fixture.everything("ses-1");
      const parts = { records: [STARTED, checkpointing("{}")], entries: [{ content: "1" }] };
      expect(await claimant.commit(parts, 9)).toMatchObject({ status: "invalid", endedAs: status });
      expect(await claimant.commit({ session: { status: "working" } }, 9)).toEqual(INVALID);
      expect(await claimant.commit({ session: PATCH_TO[status] }, 9)).toEqual(INVALID);
      expect(await fixture.everything("ses-1")).toEqual(before);
    });

    test(`ST15: a session that is ${status} is cancelled neither gracefully nor hard`, async () => {
      await fixture.createIn(status);
      const before = await fixture.everything("ses-1");
      for (const mode of ["graceful", "hard"] as const) {
        expect(await fixture.apply(cancelling("ses-1", { mode }), 9)).toEqual({
          status: "ended",
          sessionStatus: status,
        });
      }
      await fixture.storage.due({ now: 1_000_000, limit: 10 });
      expect(await fixture.everything("ses-1")).toEqual(before);
    });
  }

  test("ST15: a session that ended says when, and stands on nothing", async () => {
    const claimant = await fixture.createClaimed();
    await claimant.commit(
      { session: { status: "waiting", waits: [{ type: "timer", id: 0, at: 90 }], wakeAt: 90 } },
      2,
    );
    await claimant.commit(
      { records: [{ type: "complete" }], session: { status: "completed", output: '"done"' } },
      7,
    );
    const session = await fixture.session("ses-1");
    expect(session).toMatchObject({
      status: "completed",
      output: '"done"',
      endedAt: 7,
      updatedAt: 7,
      waits: [],
    });
    expect(session).not.toHaveProperty("wakeAt");
  });

  test("ST15: the error of a session that failed is kept with its causes", async () => {
    const claimant = await fixture.createClaimed();
    const error = {
      name: "Error",
      message: "a\u0000b",
      code: "task_failed",
      cause: { name: "E", message: "deeper" },
    };
    await claimant.commit({ records: [{ type: "fail" }], session: { status: "failed", error } });
    expect((await fixture.session("ses-1")).error).toEqual(error);
  });

  // The agent finished while the cancel was on its way. Only one can be true, and the person who cancelled
  // was told first.
  test("ST16: a session whose cancel was acknowledged does not become completed", async () => {
    const claimant = await fixture.createIn("working");
    await fixture.apply(cancelling("ses-1"));
    expect(await claimant.commit({ records: [{ type: "complete" }], session: PATCH_TO.completed })).toEqual(
      INVALID,
    );
    expect(await fixture.session("ses-1")).toMatchObject({ status: "cancelling", nextSeq: 0 });
  });

  test("ST16: a pause after the cancel does not wash it off", async () => {
    const claimant = await fixture.createIn("working");
    await fixture.apply(cancelling("ses-1"));
    await claimant.commit({ session: PATCH_TO.paused });
    expect(await claimant.commit({ session: PATCH_TO.completed })).toEqual(INVALID);
    await fixture.apply({ type: "resume_session", sessionId: "ses-1" });
    expect((await fixture.session("ses-1")).status).toBe("cancelling");
    expect(await claimant.commit({ session: PATCH_TO.completed })).toEqual(INVALID);
  });

  for (const status of ["failed", "cancelled"] as const) {
    test(`ST16: a session whose cancel was acknowledged may become ${status}, with what it leaves`, async () => {
      const claimant = await fixture.createIn("working");
      await fixture.apply(cancelling("ses-1", { reason: "enough" }), 1);
      const result = await claimant.commit({ session: { ...PATCH_TO[status], output: '"half"' } }, 5);
      expect(result).toMatchObject({ status: "committed" });
      expect(await fixture.session("ses-1")).toMatchObject({
        status,
        output: '"half"',
        endedAt: 5,
        cancel: { mode: "graceful", reason: "enough" },
      });
    });
  }

  // Its batch was on its way when the cancel was stored. Its work must not be lost. But it went to sleep
  // without the cancel. If its waits were kept and its process died now, nothing would wake it before the
  // deadline.
  const exhausted = { payer: "ses-1", limit: "maxSteps", used: 1, max: 1, then: "park" } as const;
  const paused = { status: "paused", error: { name: "Error", message: "paused" } } as const;
  for (const [says, patch] of [
    ["working", PATCH_TO.working],
    ["waiting", PATCH_TO.waiting],
    ["input_required", PATCH_TO.input_required],
    ["paused by its mistake", { ...paused, pauseReason: "agent_fault" }],
    ["paused for a usage limit", { ...paused, pauseReason: "quota", quota: { pool: "m", resumesAt: 9_000 } }],
    ["paused for a budget", { ...paused, pauseReason: "budget_exceeded", exhausted }],
  ] as const) {
    test(`ST16: a batch that says ${says}, made before its agent heard of the cancel, is committed and leaves it due`, async () => {
      const claimant = await fixture.createIn("working");
      await fixture.apply(cancelling("ses-1"));
      const session = { ...patch, wakeAt: 5_000 };
      expect(await claimant.commit({ records: [STARTED], entries: [{ content: "1" }], session })).toEqual({
        status: "committed",
        inbox: 1,
      });
      const row = await fixture.session("ses-1");
      expect(row).toMatchObject({ status: "cancelling", nextSeq: 2, entryCount: 1, waits: [] });
      for (const none of ["wakeAt", "error", "pauseReason", "exhausted", "quota"])
        expect(row).not.toHaveProperty(none);
      await claimant.release();
      expect((await fixture.storage.due({ now: 2, limit: 10 })).sessionIds).toEqual(["ses-1"]);
    });
  }

  test("ST16: an agent that has heard of its cancel waits for what its clean-up waits for", async () => {
    const claimant = await fixture.createIn("working");
    await fixture.apply(cancelling("ses-1"));
    const waits = [{ type: "timer", id: 3, at: 500 }] as const;
    await claimant.commit({ session: { status: "cancelling", waits, wakeAt: 500 } });
    expect(await fixture.session("ses-1")).toMatchObject({ status: "cancelling", waits, wakeAt: 500 });
    await claimant.release();
    expect(await fixture.storage.due({ now: 499, limit: 10 })).toEqual({
      sessionIds: [],
      schedules: [],
      nextAt: 500,
    });
    expect((await fixture.storage.due({ now: 500, limit: 10 })).sessionIds).toEqual(["ses-1"]);
  });

  for (const status of [...OPEN, "cancelling"] as const) {
    test(`ST17: a hard cancel ends a session that is ${status} at once`, async () => {
      await fixture.createIn(status);
      const request = cancelling("ses-1", { mode: "hard", reason: "enough" });
      expect(await fixture.apply(request, 8)).toEqual({ status: "requested", sessionStatus: "cancelled" });
      const session = await fixture.session("ses-1");
      expect(session).toMatchObject({
        status: "cancelled",
        endedAt: 8,
        waits: [],
        cancel: { mode: "hard", reason: "enough" },
      });
      expect(session).not.toHaveProperty("pauseReason");
      expect(session).not.toHaveProperty("wakeAt");
    });
  }

  test("ST17: after a hard cancel the claimer's batches change nothing any more", async () => {
    const claimant = await fixture.createIn("working");
    await fixture.apply(cancelling("ses-1", { mode: "hard" }));
    const before = await fixture.everything("ses-1");
    const late = await claimant.commit({ records: [STARTED], session: PATCH_TO.completed });
    expect(["invalid", "fenced"]).toContain(late.status);
    expect(await fixture.everything("ses-1")).toEqual(before);
  });

  for (const status of OPEN) {
    test(`ST17: a graceful cancel makes a session that is ${status} cancelling, with a deadline, and due`, async () => {
      const claimant = await fixture.createIn(status);
      await claimant.release();
      const request = cancelling("ses-1", { graceMs: 100, reason: "enough" });
      expect(await fixture.apply(request, 8)).toEqual({ status: "requested", sessionStatus: "cancelling" });
      const session = await fixture.session("ses-1");
      expect(session).toMatchObject({
        status: "cancelling",
        waits: [],
        updatedAt: 8,
        cancel: { mode: "graceful", deadlineAt: 108, reason: "enough" },
      });
      expect(session).not.toHaveProperty("pauseReason");
      expect(session).not.toHaveProperty("endedAt");
      expect(await fixture.storage.due({ now: 8, limit: 10 })).toEqual({
        sessionIds: ["ses-1"],
        schedules: [],
        nextAt: 108,
      });
    });
  }

  // Someone who cancels again and again must not move the end further and further away.
  test("ST17: a second graceful cancel changes nothing", async () => {
    await fixture.createIn("waiting");
    await fixture.apply(cancelling("ses-1", { graceMs: 100 }), 1);
    const before = await fixture.everything("ses-1");
    for (const graceMs of [0, 100, 10_000]) {
      const again = cancelling("ses-1", { graceMs, reason: "other" });
      expect(await fixture.apply(again, 50)).toEqual({ status: "requested", sessionStatus: "cancelling" });
    }
    expect(await fixture.everything("ses-1")).toEqual(before);
  });

  test("ST17: `due` ends a session whose time is up, not before, and without its agent", async () => {
    const claimant = await fixture.createIn("working");
    await fixture.apply(cancelling("ses-1", { graceMs: 100 }), 1);

    expect(await fixture.storage.due({ now: 100, limit: 10 })).toEqual({
      sessionIds: [],
      schedules: [],
      nextAt: 101,
    });
    expect((await fixture.session("ses-1")).status).toBe("cancelling");

    expect(await fixture.storage.due({ now: 101, limit: 10 })).toEqual({ sessionIds: [], schedules: [] });
    expect(await fixture.session("ses-1")).toMatchObject({ status: "cancelled", endedAt: 101, waits: [] });
    expect(await claimant.commit({ records: [STARTED] }, 102)).toEqual(INVALID);
  });

  test("ST17: a pause does not stop the deadline", async () => {
    const claimant = await fixture.createIn("working");
    await fixture.apply(cancelling("ses-1", { graceMs: 100 }), 1);
    await claimant.commit({ session: PATCH_TO.paused });
    await claimant.release();
    expect(await fixture.storage.due({ now: 2, limit: 10 })).toEqual({
      sessionIds: [],
      schedules: [],
      nextAt: 101,
    });
    await fixture.storage.due({ now: 101, limit: 10 });
    const session = await fixture.session("ses-1");
    expect(session.status).toBe("cancelled");
    expect(session).not.toHaveProperty("pauseReason");
  });

  test("ST17: `due` ends every session whose time is up, however few it is asked for", async () => {
    for (const n of [1, 2, 3]) {
      await fixture.createIn("waiting", `ses-${n}`);
      await fixture.apply(cancelling(`ses-${n}`, { graceMs: 10 }), 0);
    }
    expect(await fixture.storage.due({ now: 10, limit: 1 })).toEqual({ sessionIds: [], schedules: [] });
    for (const n of [1, 2, 3]) expect((await fixture.session(`ses-${n}`)).status).toBe("cancelled");
  });

  test("ST17: a deadline that no integer holds never comes, and keeps nothing from being looked for", async () => {
    await fixture.createIn("waiting");
    await fixture.apply(cancelling("ses-1", { graceMs: Number.MAX_SAFE_INTEGER }), 1_000);
    expect(await fixture.storage.due({ now: 1_000, limit: 10 })).toEqual({ sessionIds: [], schedules: [] });
  });

  test("ST17: an agent that ends in time is not overtaken by its deadline", async () => {
    const claimant = await fixture.createIn("working");
    await fixture.apply(cancelling("ses-1", { graceMs: 100 }), 1);
    await claimant.commit({ session: { ...PATCH_TO.failed } }, 50);
    await fixture.storage.due({ now: 200, limit: 10 });
    expect(await fixture.session("ses-1")).toMatchObject({ status: "failed", endedAt: 50 });
  });

  test("ST17: signals still reach a session that is being cancelled", async () => {
    await fixture.createIn("cancelling");
    expect(await fixture.apply(signalling("ses-1", "sig-1"))).toMatchObject({ status: "stored" });
  });
}
