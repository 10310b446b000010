// ST47, ST55: a follower of a session, or of all sessions, receives a notice of each change.

import { expect, test } from "vitest";
import { cancelling, creating, pausing, releasing, signalling, spawning, type Fixture } from "./fixture.ts";

export function followConformance(fixture: Fixture): void {
  test("ST47: whether sessions can be followed is as the adapter says", () => {
    expect(fixture.storage.follow !== undefined).toBe(fixture.subject.follows === true);
  });
  if (fixture.subject.follows !== true) return;

  /** How often a follower of this session has heard. */
  const follow = (sessionId: string) => {
    const received = { count: 0, leave: (): void => {} };
    received.leave = fixture.storage.follow!(sessionId, () => received.count++);
    return received;
  };
  const isNotified = async (sessionId: string, work: () => Promise<unknown>): Promise<boolean> => {
    const received = follow(sessionId);
    await work();
    received.leave();
    return received.count > 0;
  };

  test("ST47: a follower hears of every kind of change, from its making to its removal", async () => {
    const { apply } = fixture;
    const made = await isNotified("ses-1", () => fixture.createClaimed("ses-1", "owner-1"));
    const held = await fixture.claim("ses-1", "owner-1", 1, Infinity);
    const notified = {
      made,
      committed: await isNotified("ses-1", () => held.commit({ records: [spawning("agent")] })),
      signalled: await isNotified("ses-1", () => apply(signalling("ses-1", "sig-1"))),
      entitled: await isNotified("ses-1", () =>
        apply({ type: "set_title", sessionId: "ses-1", title: "Another" }),
      ),
      paused: await isNotified("ses-1", () => apply(pausing("ses-1"))),
      cancelled: await isNotified("ses-1", () => apply(cancelling("ses-1", { mode: "hard" }))),
      removed: await isNotified("ses-1", async () => {
        await apply(releasing(held));
        await apply({ type: "delete_session", sessionId: "ses-1", subtree: "refuse" });
      }),
    };
    expect(notified).toEqual({
      made: true,
      committed: true,
      signalled: true,
      entitled: true,
      paused: true,
      cancelled: true,
      removed: true,
    });
  });

  test("ST47: a follower hears of what follows from a change of another session, and of an end by its time", async () => {
    const parent = await fixture.createClaimed("ses-1");
    const child = await fixture.spawn(parent, "ses-2");
    expect(
      await isNotified("ses-1", () => child.commit({ session: { status: "completed", output: "1" } })),
    ).toBe(true);
    await fixture.apply(creating("ses-3", { deadlineAt: 5 }), 1);
    expect(await isNotified("ses-3", () => fixture.storage.due({ now: 6, limit: 10 }))).toBe(true);
  });

  test("ST47: a follower can read the change when it receives its notice", async () => {
    const claimant = await fixture.createClaimed("ses-1");
    const { promise, resolve } = Promise.withResolvers<void>();
    const leave = fixture.storage.follow!("ses-1", () => resolve());
    const committed = claimant.commit({ records: [spawning("agent")] });
    await promise;
    expect((await fixture.session("ses-1")).nextSeq).toBe(1);
    leave();
    await committed;
  });

  test("ST47: a notice about an ended session never says that it is active", async () => {
    const claimant = await fixture.createClaimed("ses-1");
    const received: boolean[] = [];
    const leave = fixture.storage.follow!("ses-1", (isActive) => void received.push(isActive));
    await claimant.commit({ records: [spawning("agent")] });
    const before = received.splice(0);
    expect(before.length).toBeGreaterThan(0);
    await claimant.commit({ session: { status: "completed", output: "1" } });
    expect(received.length).toBeGreaterThan(0);
    expect(received).not.toContain(true);
    leave();
  });

  test("ST47: a notice about a session that has moved away never says that it is active here", async () => {
    await fixture.createClaimed("ses-1");
    const move = { sessionId: "ses-1", moveId: "mov-1" };
    await fixture.apply({ type: "begin_move", ...move, to: "elsewhere" });
    const received: boolean[] = [];
    const leave = fixture.storage.follow!("ses-1", (isActive) => void received.push(isActive));
    await fixture.apply({ type: "end_move", ...move, outcome: "moved" });
    expect(received.length).toBeGreaterThan(0);
    expect(received).not.toContain(true);
    leave();
  });

  test("ST55: a follower of all sessions is notified of every change of each, until it has left", async () => {
    const received: (string | undefined)[] = [];
    const leave = fixture.storage.follow!(undefined, (_, session) => void received.push(session?.sessionId));
    const isReceived = async (work: () => Promise<unknown>): Promise<boolean> => {
      await work();
      return received.splice(0).length > 0;
    };
    const claimant = await fixture.createClaimed("ses-1");
    expect(received.splice(0)).toContain("ses-1");
    expect({
      committed: await isReceived(() => claimant.commit({ records: [spawning("agent")] })),
      refused: await isReceived(() =>
        fixture.storage.commit([{ ...claimant.batch({}), token: claimant.token - 1 }], 1),
      ),
      paused: await isReceived(() => fixture.apply(pausing("ses-1"))),
      ended: await isReceived(() => fixture.apply(cancelling("ses-1", { mode: "hard" }))),
      removed: await isReceived(() =>
        fixture.apply({ type: "delete_session", sessionId: "ses-1", subtree: "refuse" }),
      ),
    }).toEqual({ committed: true, refused: false, paused: true, ended: true, removed: true });
    leave();
    await fixture.createClaimed("ses-2");
    expect(received).toEqual([]);
  });

  test("ST47: nobody hears of other sessions, of what was refused, or after having left", async () => {
    const claimant = await fixture.createClaimed("ses-1");
    await fixture.createClaimed("ses-2");
    const [other, left, stays] = [follow("ses-2"), follow("ses-1"), follow("ses-1")];
    left.leave();
    await claimant.commit({ records: [spawning("agent")] });
    expect([other.count, left.count, stays.count > 0]).toEqual([0, 0, true]);
    const received = stays.count;
    await fixture.storage.commit([{ ...claimant.batch({}), token: claimant.token - 1 }], 1);
    expect(stays.count).toBe(received);
  });
}
