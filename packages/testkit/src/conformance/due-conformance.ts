// ST18: which sessions are to be run now, and when to ask again. Nothing is ever run that this does not name, and a session
// it forgets sleeps for ever.

import { expect, test } from "vitest";
import {
  cancelling,
  creating,
  ENDINGS,
  LEASE_MS,
  PATCH_TO,
  signalling,
  STARTED,
  type Fixture,
  type Parts,
} from "./fixture.ts";

export function dueConformance(fixture: Fixture): void {
  const due = (now: number, limit = 100) => fixture.storage.due({ now, limit });

  /** A session that was left by its claimer in this state. */
  async function leave(session: NonNullable<Parts["session"]>, sessionId = "ses-1"): Promise<void> {
    const claimant = await fixture.createClaimed(sessionId);
    expect(await claimant.commit({ session })).toMatchObject({ status: "committed" });
    await claimant.release();
  }

  test("ST18: a session that was just submitted is due", async () => {
    await fixture.apply(creating("ses-1"), 5);
    expect(await due(5)).toEqual({ sessionIds: ["ses-1"] });
  });

  test("ST18: nothing is due where there is nothing", async () => {
    expect(await due(1_000)).toEqual({ sessionIds: [] });
  });

  test("ST18: a working session that nobody works on is due", async () => {
    await leave(PATCH_TO.working);
    expect(await due(1)).toEqual({ sessionIds: ["ses-1"] });
  });

  test("ST18: a session that waits for a signal is due when it has arrived, and for no other", async () => {
    await leave(PATCH_TO.waiting);
    expect(await due(1)).toEqual({ sessionIds: [] });
    await fixture.apply(signalling("ses-1", "sig-1", { name: "other" }));
    expect(await due(1)).toEqual({ sessionIds: [] });
    await fixture.apply(signalling("ses-1", "sig-2", { name: "go" }));
    expect(await due(1)).toEqual({ sessionIds: ["ses-1"] });
  });

  // The signal was there first. Storing the wait must not make anyone wait for a second one.
  test("ST18: a session that begins to wait for a signal it already has is due at once", async () => {
    const claimant = await fixture.createClaimed();
    await fixture.apply(signalling("ses-1", "sig-1", { name: "go" }));
    await claimant.commit({ session: PATCH_TO.waiting });
    await claimant.release();
    expect(await due(1)).toEqual({ sessionIds: ["ses-1"] });
  });

  test("ST18: a session that consumed its signal and waits for the next is not due", async () => {
    const claimant = await fixture.createClaimed();
    await fixture.apply(signalling("ses-1", "sig-1", { name: "go" }));
    await fixture.apply(signalling("ses-1", "sig-2", { name: "other" }));
    await claimant.commit({ session: PATCH_TO.waiting });
    await claimant.commit({ records: [STARTED], consumed: ["sig-1"], session: PATCH_TO.waiting });
    await claimant.release();
    expect(await due(1)).toEqual({ sessionIds: [] });
  });

  test("ST18: a question is due when it was answered", async () => {
    await leave(PATCH_TO.input_required);
    expect(await due(1)).toEqual({ sessionIds: [] });
    await fixture.apply(signalling("ses-1", "sig-1", { name: "answer:0" }));
    expect(await due(1)).toEqual({ sessionIds: ["ses-1"] });
  });

  for (const status of ["waiting", "input_required"] as const) {
    test(`ST18: a session that is ${status} is due when its time has come, and says when that is`, async () => {
      await leave({ ...PATCH_TO[status], wakeAt: 500 });
      expect(await due(499)).toEqual({ sessionIds: [], nextAt: 500 });
      expect(await due(500)).toEqual({ sessionIds: ["ses-1"] });
      expect(await due(501)).toEqual({ sessionIds: ["ses-1"] });
    });
  }

  test("ST18: a wake-up that was taken back wakes nobody", async () => {
    const claimant = await fixture.createClaimed();
    await claimant.commit({ session: { ...PATCH_TO.waiting, wakeAt: 500 } });
    await claimant.commit({ session: PATCH_TO.waiting });
    await claimant.release();
    expect(await due(1_000)).toEqual({ sessionIds: [] });
  });

  // Only a person wakes what is paused: otherwise what is broken would be tried for ever.
  test("ST18: a paused session is not due, whatever arrives and however late it is", async () => {
    const claimant = await fixture.createClaimed();
    await claimant.commit({ session: { ...PATCH_TO.waiting, wakeAt: 10 } });
    await claimant.commit({ session: PATCH_TO.paused });
    await claimant.release();
    await fixture.apply(signalling("ses-1", "sig-1", { name: "go" }));
    expect(await due(1_000)).toEqual({ sessionIds: [] });
  });

  test("ST18: what a session waited for while it was paused makes it due when it goes on", async () => {
    const claimant = await fixture.createClaimed();
    await claimant.commit({
      session: { ...PATCH_TO.paused, waits: [{ type: "signal", id: 0, name: "go" }] },
    });
    await fixture.apply(signalling("ses-1", "sig-1", { name: "go" }));
    await claimant.commit({ session: { status: "waiting" } });
    await claimant.release();
    expect(await due(1)).toEqual({ sessionIds: ["ses-1"] });
  });

  for (const status of ENDINGS) {
    test(`ST18: a session that is ${status} is never due`, async () => {
      const claimant = await fixture.createIn(status);
      await claimant.release();
      expect(await due(1_000_000)).toEqual({ sessionIds: [] });
    });
  }

  test("ST18: a claimed session is its claimer's, until the lease has passed", async () => {
    await fixture.apply(creating("ses-1"), 0);
    await fixture.claim("ses-1", "owner-1", 0);
    expect(await due(LEASE_MS - 1)).toEqual({ sessionIds: [], nextAt: LEASE_MS });
    expect(await due(LEASE_MS)).toEqual({ sessionIds: ["ses-1"] });
  });

  test("ST18: a session claimed for ever is due when it is released, and not before", async () => {
    const claimant = await fixture.createClaimed();
    expect(await due(Number.MAX_SAFE_INTEGER)).toEqual({ sessionIds: [] });
    await claimant.release();
    expect(await due(1)).toEqual({ sessionIds: ["ses-1"] });
  });

  test("ST18: a waiting session whose claimer died is due at the later of its lease's end and its time", async () => {
    for (const [sessionId, wakeAt] of [
      ["ses-early", 500],
      ["ses-late", 2_000],
    ] as const) {
      await fixture.apply(creating(sessionId), 0);
      const claimant = await fixture.claim(sessionId, "owner-1", 0);
      await claimant.commit({ session: { ...PATCH_TO.waiting, wakeAt } });
    }
    expect(await due(500)).toEqual({ sessionIds: [], nextAt: LEASE_MS });
    expect(await due(LEASE_MS)).toEqual({ sessionIds: ["ses-early"], nextAt: 2_000 });
    expect((await due(2_000)).sessionIds).toHaveLength(2);
  });

  test("ST18: asking does not change the answer", async () => {
    await leave({ ...PATCH_TO.waiting, wakeAt: 500 });
    await fixture.apply(creating("ses-2"), 0);
    const first = await due(600);
    expect([...first.sessionIds].sort()).toEqual(["ses-1", "ses-2"]);
    expect(await due(600)).toEqual(first);
    // Clocks of several machines differ: an earlier time after a later one is answered for what it is.
    expect(await due(400)).toEqual({ sessionIds: ["ses-2"], nextAt: 500 });
  });

  test("ST18: at most `limit` are named, and the others when those are taken", async () => {
    const all = ["ses-1", "ses-2", "ses-3", "ses-4", "ses-5"];
    await fixture.storage.commit(
      all.map((sessionId) => creating(sessionId)),
      0,
    );
    const named: string[] = [];
    for (const expected of [2, 2, 1, 0]) {
      const { sessionIds } = await due(1, 2);
      expect(sessionIds).toHaveLength(expected);
      for (const sessionId of sessionIds) await fixture.claim(sessionId, "owner-1", 1);
      named.push(...sessionIds);
    }
    expect(named.sort()).toEqual(all);
  });

  test("ST18: the next time is the earliest of all that are to come", async () => {
    await leave({ ...PATCH_TO.waiting, wakeAt: 700 }, "ses-1");
    await leave({ ...PATCH_TO.waiting, wakeAt: 300 }, "ses-2");
    await leave({ ...PATCH_TO.waiting, wakeAt: 500 }, "ses-3");
    expect(await due(0)).toEqual({ sessionIds: [], nextAt: 300 });
    expect(await due(300)).toEqual({ sessionIds: ["ses-2"], nextAt: 500 });
    await fixture.apply(cancelling("ses-1", { graceMs: 90 }), 300);
    expect((await due(300)).nextAt).toBe(390);
  });
}
