// ST18: `due` names the sessions to run now, and the time of the next look. No session runs that it does not
// name, and a session that it forgets sleeps without end.

import { expect, test } from "vitest";
import {
  cancelling,
  Claimant,
  creating,
  ENDINGS,
  LEASE_MS,
  PATCH_TO,
  signalling,
  STARTED,
  tokenOf,
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
    expect(await due(5)).toEqual({ sessionIds: ["ses-1"], schedules: [] });
  });

  test("ST18: nothing is due where there is nothing", async () => {
    expect(await due(1_000)).toEqual({ sessionIds: [], schedules: [] });
  });

  test("ST18: a working session that nobody works on is due", async () => {
    await leave(PATCH_TO.working);
    expect(await due(1)).toEqual({ sessionIds: ["ses-1"], schedules: [] });
  });

  test("ST18: a session that waits for a signal is due when it has arrived, and for no other", async () => {
    await leave(PATCH_TO.waiting);
    expect(await due(1)).toEqual({ sessionIds: [], schedules: [] });
    await fixture.apply(signalling("ses-1", "sig-1", { name: "other" }));
    expect(await due(1)).toEqual({ sessionIds: [], schedules: [] });
    await fixture.apply(signalling("ses-1", "sig-2", { name: "go" }));
    expect(await due(1)).toEqual({ sessionIds: ["ses-1"], schedules: [] });
  });

  // Its wait cannot resume it, because only the lost memory knew its next step.
  test("ST18: an ephemeral session that has begun and has no holder is due, whatever it waits for", async () => {
    const claimFor = { owner: "owner-1", leaseMs: Infinity };
    for (const [sessionId, persistence] of [
      ["ses-gone", "ephemeral"],
      ["ses-kept", "minimal"],
    ] as const) {
      const created = await fixture.apply(creating(sessionId, { persistence, claimFor }), 0);
      const claimant = new Claimant(fixture, sessionId, tokenOf(created));
      await claimant.commit({ records: [], session: PATCH_TO.waiting });
      expect((await due(1)).sessionIds).not.toContain(sessionId);
      await claimant.release();
    }
    expect((await due(1)).sessionIds).toEqual(["ses-gone"]);
  });

  // The signal was there first. Storing the wait must not make anyone wait for a second one.
  test("ST18: a session that begins to wait for a signal it already has is due at once", async () => {
    const claimant = await fixture.createClaimed();
    await fixture.apply(signalling("ses-1", "sig-1", { name: "go" }));
    await claimant.commit({ session: PATCH_TO.waiting });
    await claimant.release();
    expect(await due(1)).toEqual({ sessionIds: ["ses-1"], schedules: [] });
  });

  test("ST18: a session that consumed its signal and waits for the next is not due", async () => {
    const claimant = await fixture.createClaimed();
    await fixture.apply(signalling("ses-1", "sig-1", { name: "go" }));
    await fixture.apply(signalling("ses-1", "sig-2", { name: "other" }));
    await claimant.commit({ session: PATCH_TO.waiting });
    await claimant.commit({ records: [STARTED], consumed: ["sig-1"], session: PATCH_TO.waiting });
    await claimant.release();
    expect(await due(1)).toEqual({ sessionIds: [], schedules: [] });
  });

  test("ST18: a question is due when it was answered", async () => {
    await leave(PATCH_TO.input_required);
    expect(await due(1)).toEqual({ sessionIds: [], schedules: [] });
    await fixture.apply(signalling("ses-1", "sig-1", { name: "answer:0" }));
    expect(await due(1)).toEqual({ sessionIds: ["ses-1"], schedules: [] });
  });

  for (const status of ["waiting", "input_required"] as const) {
    test(`ST18: a session that is ${status} is due when its time has come, and says when that is`, async () => {
      await leave({ ...PATCH_TO[status], wakeAt: 500 });
      expect(await due(499)).toEqual({ sessionIds: [], schedules: [], nextAt: 500 });
      expect(await due(500)).toEqual({ sessionIds: ["ses-1"], schedules: [] });
      expect(await due(501)).toEqual({ sessionIds: ["ses-1"], schedules: [] });
    });
  }

  // An earlier look skipped it because it was held, so a look may not consider only later times.
  test("ST18: a session that is released, or parks, after its time is due at once", async () => {
    const late = await fixture.createClaimed("ses-late");
    await late.commit({ session: { ...PATCH_TO.waiting, wakeAt: 500 } });
    const parking = await fixture.createClaimed("ses-parking");
    expect((await due(1_000)).sessionIds).toEqual([]);
    await late.release();
    await parking.commit({ session: { ...PATCH_TO.waiting, wakeAt: 700 } });
    await parking.release();
    expect([...(await due(1_000)).sessionIds].sort()).toEqual(["ses-late", "ses-parking"]);
    expect(await due(600)).toEqual({ sessionIds: ["ses-late"], schedules: [], nextAt: 700 });
  });

  test("ST18: a wake-up that was taken back wakes nobody", async () => {
    const claimant = await fixture.createClaimed();
    await claimant.commit({ session: { ...PATCH_TO.waiting, wakeAt: 500 } });
    await claimant.commit({ session: PATCH_TO.waiting });
    await claimant.release();
    expect(await due(1_000)).toEqual({ sessionIds: [], schedules: [] });
  });

  // Only a person resumes a paused session. Otherwise a broken session would be tried without end.
  test("ST18: a paused session is not due, whatever arrives and however late it is", async () => {
    const claimant = await fixture.createClaimed();
    await claimant.commit({ session: { ...PATCH_TO.waiting, wakeAt: 10 } });
    await claimant.commit({ session: PATCH_TO.paused });
    await claimant.release();
    await fixture.apply(signalling("ses-1", "sig-1", { name: "go" }));
    expect(await due(1_000)).toEqual({ sessionIds: [], schedules: [] });
  });

  test("ST18: signals that arrived while a session was paused are there when it is resumed", async () => {
    const claimant = await fixture.createClaimed();
    await claimant.commit({ session: PATCH_TO.paused });
    await fixture.apply(signalling("ses-1", "sig-1", { name: "go" }));
    await fixture.apply({ type: "resume_session", sessionId: "ses-1" });
    await claimant.commit({ session: PATCH_TO.waiting });
    await claimant.release();
    expect((await due(1)).sessionIds).toEqual(["ses-1"]);
  });

  for (const status of ENDINGS) {
    test(`ST18: a session that is ${status} is never due`, async () => {
      const claimant = await fixture.createIn(status);
      await claimant.release();
      expect(await due(1_000_000)).toEqual({ sessionIds: [], schedules: [] });
    });
  }

  test("ST18: a claimed session is its claimer's, until the lease has passed", async () => {
    await fixture.apply(creating("ses-1"), 0);
    await fixture.claim("ses-1", "owner-1", 0);
    expect(await due(LEASE_MS - 1)).toEqual({ sessionIds: [], schedules: [], nextAt: LEASE_MS });
    expect(await due(LEASE_MS)).toEqual({ sessionIds: ["ses-1"], schedules: [] });
  });

  test("ST18: a session claimed without an end is due when it is released, and not before", async () => {
    const claimant = await fixture.createClaimed();
    expect(await due(Number.MAX_SAFE_INTEGER)).toEqual({ sessionIds: [], schedules: [] });
    await claimant.release();
    expect(await due(1)).toEqual({ sessionIds: ["ses-1"], schedules: [] });
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
    expect(await due(500)).toEqual({ sessionIds: [], schedules: [], nextAt: LEASE_MS });
    expect(await due(LEASE_MS)).toEqual({ sessionIds: ["ses-early"], schedules: [], nextAt: 2_000 });
    expect((await due(2_000)).sessionIds).toHaveLength(2);
  });

  test("ST18: asking does not change the answer", async () => {
    await leave({ ...PATCH_TO.waiting, wakeAt: 500 });
    await fixture.apply(creating("ses-2"), 0);
    const first = await due(600);
    expect([...first.sessionIds].sort()).toEqual(["ses-1", "ses-2"]);
    expect(await due(600)).toEqual(first);
    // Clocks of several machines differ: an earlier time after a later one is answered for what it is.
    expect(await due(400)).toEqual({ sessionIds: ["ses-2"], schedules: [], nextAt: 500 });
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
    expect(await due(0)).toEqual({ sessionIds: [], schedules: [], nextAt: 300 });
    expect(await due(300)).toEqual({ sessionIds: ["ses-2"], schedules: [], nextAt: 500 });
    await fixture.apply(cancelling("ses-1", { graceMs: 90 }), 300);
    expect((await due(300)).nextAt).toBe(390);
  });

  // A machine that does not know some agents must not be kept from those it knows.
  test("ST18: sessions of given agents are found however many of others stand before them", async () => {
    const agentOf = (name: string) => ({ agent: { name, version: "1" } });
    for (const [n, wakeAt] of [
      [1, undefined],
      [2, undefined],
      [3, 50],
      [4, 60],
    ] as const) {
      const claimFor = { owner: "owner-1", leaseMs: Infinity };
      await fixture.apply(creating(`ses-other-${n}`, { ...agentOf("other"), claimFor }), 0);
      const claimant = await fixture.claim(`ses-other-${n}`, "owner-1", 0, Infinity);
      if (wakeAt !== undefined) await claimant.commit({ session: { ...PATCH_TO.waiting, wakeAt } });
      await claimant.release();
    }
    await leave({ ...PATCH_TO.waiting, wakeAt: 70 }, "ses-timer");
    await leave(PATCH_TO.waiting, "ses-signal");
    await fixture.apply(signalling("ses-signal", "sig-1", { name: "go" }));
    await fixture.apply(creating("ses-leased"), 0);
    await fixture.claim("ses-leased", "owner-1", 0, 80);
    const named = async (now: number, limit: number, agents: readonly string[]) => {
      return [...(await fixture.storage.due({ now, limit, agents })).sessionIds].sort();
    };
    expect(await named(69, 1, ["agent"])).toEqual(["ses-signal"]);
    expect(await named(100, 3, ["agent", "agent", "unknown"])).toEqual([
      "ses-leased",
      "ses-signal",
      "ses-timer",
    ]);
    expect(await named(100, 10, ["other"])).toHaveLength(4);
    expect(await named(100, 10, ["agent", "other"])).toHaveLength(7);
    expect(await named(100, 10, [])).toEqual([]);
    expect((await due(100)).sessionIds).toHaveLength(7);
    expect(await named(69, 10, ["agent"])).toEqual(["ses-signal"]);
  });

  test("ST18: an agent's sessions do not starve behind a thousand sessions of other agents, however often it asks", async () => {
    const other = { agent: { name: "other", version: "1" } };
    await fixture.storage.commit(
      Array.from({ length: 1_200 }, (_, n) => creating(`ses-other-${n}`, other)),
      0,
    );
    await leave({ ...PATCH_TO.waiting, wakeAt: 70 }, "ses-timer");
    await fixture.apply(creating("ses-new"), 0);
    const query = { limit: 1_000, agents: ["agent"] };
    expect((await fixture.storage.due({ limit: 1_000, now: 70 })).sessionIds).toHaveLength(1_000);
    for (const _ of [1, 2]) {
      const { sessionIds } = await fixture.storage.due({ ...query, now: 70 });
      expect([...sessionIds].sort()).toEqual(["ses-new", "ses-timer"]);
    }
  });

  if (fixture.subject.reopen !== undefined) {
    test("ST18: after reopening they are found behind any number of others", async () => {
      const other = { agent: { name: "other", version: "1" } };
      await fixture.storage.commit(
        Array.from({ length: 1_500 }, (_, n) => creating(`ses-other-${n}`, other)),
        0,
      );
      await leave({ ...PATCH_TO.waiting, wakeAt: 70 }, "ses-timer");
      await fixture.apply(creating("ses-new"), 0);
      await fixture.reopen();
      const query = { limit: 10, agents: ["agent"] };
      expect(await fixture.storage.due({ ...query, now: 69 })).toMatchObject({
        sessionIds: ["ses-new"],
        nextAt: 70,
      });
      expect([...(await fixture.storage.due({ ...query, now: 70 })).sessionIds].sort()).toEqual([
        "ses-new",
        "ses-timer",
      ]);
      expect((await fixture.storage.due({ limit: 2_000, now: 70 })).sessionIds).toHaveLength(1_502);
    });
  }
}
