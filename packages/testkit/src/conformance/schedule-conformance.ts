// ST34: what is done again and again. Twice for one time would be two of everything; not at all is noticed by
// nobody.

import { NEVER, type Change, type FireSchedule, type Schedule } from "@holdfast/core";
import { expect, test } from "vitest";
import { listen } from "./arrival-listener.ts";
import { cancelling, creating, INVALID, PATCH_TO, signalling, spawning, type Fixture } from "./fixture.ts";

const NIGHTLY: Schedule = {
  scheduleId: "nightly",
  cron: "0 3 * * *",
  timeZone: "Europe/Berlin",
  action: {
    type: "start",
    agent: { name: "agent", version: "1" },
    input: '{"n":1}',
    budget: { maxSteps: 5 },
    placement: { demands: { gpu: "a100" }, priority: 3 },
  },
  nextAt: 100,
  createdAt: 1,
};

const POKE: Schedule = {
  ...NIGHTLY,
  scheduleId: "poke",
  action: { type: "signal", sessionId: "ses-1", name: "go", payload: undefined },
  nextAt: 50,
};

export function scheduleConformance(fixture: Fixture): void {
  const put = (schedule: Schedule): Change => ({ type: "put_schedule", schedule });
  const remove = (scheduleId: string): Change => ({ type: "remove_schedule", scheduleId });
  const fire = (more: Partial<FireSchedule> = {}): FireSchedule => ({
    type: "fire_schedule",
    scheduleId: "nightly",
    dueAt: 100,
    nextAt: 200,
    effect: creating("ses-fired-100"),
    ...more,
  });
  const listed = () => fixture.storage.reader.schedules();
  const due = (now: number) => fixture.storage.due({ now, limit: 10 });

  test("ST34: a schedule is stored as it is, listed by its next time, and replaced by one of its id", async () => {
    expect(await fixture.apply(put(NIGHTLY))).toEqual({ status: "done", schedule: NIGHTLY });
    expect(await fixture.apply(put(POKE))).toEqual({ status: "done", schedule: POKE });
    expect(await listed()).toEqual([POKE, NIGHTLY]);
    const later = { ...POKE, cron: "* * * * *", nextAt: 300, lastAt: 50 };
    expect(await fixture.apply(put(later))).toEqual({ status: "done", schedule: later });
    expect(await listed()).toEqual([NIGHTLY, later]);
  });

  // A program that puts a schedule at each start has read the schedule before it fired, or not at all.
  test("ST34: put again with the same times it stays where it is in them, and takes what is new besides", async () => {
    await fixture.apply(put(NIGHTLY));
    await fixture.apply(fire());
    const action = { type: "signal", sessionId: "ses-1", name: "go", payload: undefined } as const;
    const stored = { ...NIGHTLY, action, nextAt: 200, lastAt: 100 };
    const put150 = await fixture.apply(put({ ...NIGHTLY, action, createdAt: 150 }));
    expect(put150, "whoever puts it need not look for it among all").toEqual({
      status: "done",
      schedule: stored,
    });
    expect(await listed()).toEqual([stored]);
    expect(await fixture.apply(fire())).toEqual({ status: "fenced" });
    await fixture.apply(put({ ...NIGHTLY, timeZone: "UTC", nextAt: 170 }));
    expect(await listed(), "other times begin anew").toEqual([
      { ...NIGHTLY, timeZone: "UTC", nextAt: 170, lastAt: 100 },
    ]);
  });

  test("ST34: put again it still knows the signal that nobody has read", async () => {
    await fixture.apply(creating("ses-1"));
    await fixture.apply(put(POKE));
    const firing = (dueAt: number) =>
      fire({ scheduleId: "poke", dueAt, nextAt: dueAt + 10, effect: signalling("ses-1", `poke-${dueAt}`) });
    await fixture.apply(firing(50));
    await fixture.apply(put(POKE));
    expect(await fixture.apply(firing(60))).toEqual({ status: "done" });
    expect(await fixture.sent("ses-1")).toHaveLength(1);
  });

  test("ST34: a paused schedule is never due, stays paused when it is put again, and continues when its pause ends", async () => {
    await fixture.apply(put(NIGHTLY));
    const paused = { ...NIGHTLY, nextAt: NEVER, isPaused: true };
    expect(await fixture.apply(put({ ...NIGHTLY, isPaused: true }))).toEqual({
      status: "done",
      schedule: paused,
    });
    expect((await due(1_000_000)).schedules).toEqual([]);
    expect(await fixture.apply(fire())).toEqual({ status: "fenced" });
    await fixture.apply(put({ ...NIGHTLY, nextAt: 300 }));
    expect(await listed()).toEqual([paused]);
    await fixture.apply(put({ ...NIGHTLY, nextAt: 400, isPaused: false }));
    expect(await listed()).toEqual([{ ...NIGHTLY, nextAt: 400 }]);
    expect((await due(400)).schedules).toHaveLength(1);
  });

  test("ST34: a schedule that was removed is gone", async () => {
    await fixture.apply(put(NIGHTLY));
    expect(await fixture.apply(remove("nightly"))).toEqual({ status: "done" });
    expect(await fixture.apply(remove("nightly"))).toEqual({ status: "not_found" });
    expect(await listed()).toEqual([]);
    expect(await due(1_000)).toEqual({ sessionIds: [], schedules: [] });
    expect(await fixture.apply(fire())).toEqual({ status: "not_found" });
    expect(await fixture.storage.reader.session("ses-fired-100")).toBeUndefined();
  });

  test("ST34: due schedules are found, and the next time of the others", async () => {
    await fixture.apply(put(NIGHTLY));
    await fixture.apply(put(POKE));
    expect(await due(49)).toEqual({ sessionIds: [], schedules: [], nextAt: 50 });
    expect(await due(50)).toEqual({ sessionIds: [], schedules: [POKE], nextAt: 100 });
    expect(await due(100)).toEqual({ sessionIds: [], schedules: [POKE, NIGHTLY] });
  });

  test("ST34: a schedule starts a session, once for each time it is due", async () => {
    await fixture.apply(put(NIGHTLY));
    expect(await fixture.apply(fire(), 101)).toEqual({ status: "done" });
    expect(await fixture.session("ses-fired-100")).toMatchObject({ status: "submitted", createdAt: 101 });
    expect(await listed()).toEqual([{ ...NIGHTLY, nextAt: 200, lastAt: 100 }]);
    // Somebody else saw that it was due as well.
    expect(await fixture.apply(fire({ effect: creating("ses-again") }))).toEqual({ status: "fenced" });
    expect(await fixture.storage.reader.session("ses-again")).toBeUndefined();
    expect(await due(150)).toEqual({ sessionIds: ["ses-fired-100"], schedules: [], nextAt: 200 });
  });

  test("ST34: a group with two firings of one time applies only the first", async () => {
    await fixture.apply(put(NIGHTLY));
    const group = [fire(), fire({ effect: creating("ses-again") })];
    expect(await fixture.storage.commit(group, 101)).toEqual([{ status: "done" }, { status: "fenced" }]);
  });

  test("ST34: a schedule signals a session, and listeners hear of it", async () => {
    await fixture.apply(creating("ses-1"));
    await fixture.apply(put(POKE));
    const listener = listen(fixture);
    const effect = signalling("ses-1", "poke-50", { payload: undefined });
    const firing = fire({ scheduleId: "poke", dueAt: 50, nextAt: 60, effect });
    expect(await fixture.apply(firing)).toEqual({ status: "done" });
    expect(await fixture.sent("ses-1")).toEqual([["go", null]]);
    expect(await listener.received(1)).toEqual([{ sessionId: "ses-1", awaited: true }]);
  });

  test("ST34: a schedule whose session has ended or never existed moves on to its next time", async () => {
    await fixture.apply(put(POKE));
    const firing = (dueAt: number, nextAt: number) =>
      fire({ scheduleId: "poke", dueAt, nextAt, effect: signalling("ses-1", `poke-${dueAt}`) });
    expect(await fixture.apply(firing(50, 60))).toEqual({ status: "done" });
    await fixture.apply(creating("ses-1"));
    await fixture.apply(cancelling("ses-1", { mode: "hard" }));
    expect(await fixture.apply(firing(60, 70))).toEqual({ status: "done" });
    expect((await listed())[0]).toMatchObject({ nextAt: 70, lastAt: 60 });
  });

  // A session that is paused, or slow, would find as many as there were times.
  test("ST34: a schedule sends no signal as long as the one it sent last is unread", async () => {
    const desk = await fixture.createClaimed("ses-1");
    await fixture.apply(put(POKE));
    const firing = (dueAt: number) => {
      const effect = signalling("ses-1", `poke-${dueAt}`, { payload: undefined });
      return fire({ scheduleId: "poke", dueAt, nextAt: dueAt + 10, effect });
    };
    const pending = async () =>
      (await fixture.storage.reader.pendingSignals("ses-1")).map(({ signalId }) => signalId);
    expect(await fixture.apply(firing(50))).toEqual({ status: "done" });
    await fixture.apply(signalling("ses-1", "of-others"));
    expect(await fixture.apply(firing(60))).toEqual({ status: "done" });
    expect(await pending()).toEqual(["poke-50", "of-others"]);
    expect((await listed())[0]).toMatchObject({ nextAt: 70, lastAt: 60, unread: "poke-50" });
    if (fixture.subject.reopen !== undefined) await fixture.reopen();
    const again =
      fixture.subject.reopen === undefined ? desk : await fixture.claim("ses-1", "owner-2", 1, Infinity);
    await again.commit({ records: [], consumed: ["poke-50"] });
    expect(await fixture.apply(firing(70))).toEqual({ status: "done" });
    expect(await pending()).toEqual(["of-others", "poke-70"]);
  });

  test("ST34: no second unread signal goes to the successor of the session, which reads the first in its place", async () => {
    const before = await fixture.createClaimed("ses-1");
    await before.commit({
      records: [spawning("agent")],
      effects: [creating("ses-heir")],
      session: { ...PATCH_TO.completed, handedOffTo: "ses-heir" },
    });
    await fixture.apply(put(POKE));
    const firing = (dueAt: number) =>
      fire({ scheduleId: "poke", dueAt, nextAt: dueAt + 10, effect: signalling("ses-1", `poke-${dueAt}`) });
    const pending = async () =>
      (await fixture.storage.reader.pendingSignals("ses-heir")).map(({ signalId }) => signalId);
    expect(await fixture.apply(firing(50))).toEqual({ status: "done" });
    expect(await fixture.apply(firing(60))).toEqual({ status: "done" });
    expect(await pending()).toEqual(["poke-50"]);
    const successor = await fixture.claim("ses-heir", "owner-1", 1, Infinity);
    await successor.commit({ records: [], consumed: ["poke-50"] });
    expect(await fixture.apply(firing(70))).toEqual({ status: "done" });
    expect(await pending()).toEqual(["poke-70"]);
  });

  test("ST34: the session that it starts cannot be claimed in passing", async () => {
    await fixture.apply(put(NIGHTLY));
    const effect = creating("ses-1", { claimFor: { owner: "owner-1", leaseMs: 5 } });
    expect(await fixture.apply(fire({ effect }))).toEqual(INVALID);
    expect(await listed()).toEqual([NIGHTLY]);
  });

  if (fixture.subject.reopen !== undefined) {
    test("ST34: schedules survive closing and opening again", async () => {
      await fixture.apply(put(NIGHTLY));
      await fixture.apply(put(POKE));
      await fixture.apply(fire());
      const before = await listed();
      await fixture.reopen();
      expect(await listed()).toEqual(before);
      expect(await fixture.apply(fire())).toEqual({ status: "fenced" });
    });
  }
}
