// ST58: what ended long ago is removed, and nothing that another session needs.

import { expect, test } from "vitest";
import { creating, ENDINGS, PATCH_TO, scheduling, STARTED, type Claimant, type Fixture } from "../fixture.ts";

export function removalConformance(fixture: Fixture): void {
  const remove = (endedBefore: number, ...sessionIds: string[]) =>
    fixture.apply({ type: "remove_ended", sessionIds, endedBefore }, 100);
  const end = async (claimant: Claimant, at: number) =>
    expect(await claimant.commit({ session: PATCH_TO.completed }, at)).toMatchObject({ status: "committed" });
  const listed = async () =>
    (await fixture.storage.reader.sessions({ limit: 100, oldestFirst: true })).map(
      ({ sessionId }) => sessionId,
    );

  test("ST58: sessions that ended before the time go with all that was theirs, and others stay", async () => {
    const large = JSON.stringify("x".repeat(200_000));
    for (const [n, status] of ENDINGS.entries()) {
      const claimant = await fixture.createClaimed(`ses-${status}`);
      await claimant.commit({ records: [STARTED, scheduling("a", large)], entries: [{ content: large }] });
      await claimant.commit({ session: PATCH_TO[status] }, 10 * (n + 1));
    }
    const kept = await fixture.everything("ses-cancelled");
    const ids = ENDINGS.map((status) => `ses-${status}`);
    expect(await remove(30, ...ids, "ses-none")).toEqual({ status: "deleted", sessions: 2 });
    expect(await listed()).toEqual(["ses-cancelled"]);
    expect(await fixture.everything("ses-cancelled")).toEqual(kept);
    const { reader } = fixture.storage;
    expect(await fixture.storage.load("ses-completed")).toBeUndefined();
    expect(await reader.journal("ses-completed", 0, 10)).toEqual([]);
    expect(await reader.entries("ses-failed", 0, 10)).toEqual([]);
    expect(await remove(30, ...ids)).toEqual({ status: "deleted", sessions: 0 });
  });

  test("ST58: a session that is active stays, whatever its age", async () => {
    const all = ["submitted", "working", "waiting", "input_required", "paused", "cancelling"] as const;
    for (const status of all) await fixture.createIn(status, `ses-${status}`);
    expect(await remove(Infinity, ...all.map((status) => `ses-${status}`))).toEqual({
      status: "deleted",
      sessions: 0,
    });
    expect(await listed()).toHaveLength(all.length);
  });

  test("ST58: a session stays with those below it, and below one that is active", async () => {
    const parent = await fixture.createClaimed("ses-1");
    const leaving = { onEnd: "leave" } as const;
    const first = await fixture.spawn(parent, "ses-2", {
      parent: { sessionId: "ses-1", child: parent.nextSeq, ...leaving },
    });
    await end(first, 1);
    // Its parent may read it.
    expect(await remove(50, "ses-2")).toEqual({ status: "deleted", sessions: 0 });
    const second = await fixture.spawn(parent, "ses-3", {
      parent: { sessionId: "ses-1", child: parent.nextSeq, ...leaving },
    });
    await end(parent, 2);
    expect(await remove(50, "ses-2", "ses-1")).toEqual({ status: "deleted", sessions: 1 });
    expect(await listed()).toEqual(["ses-1", "ses-3"]);
    await end(second, 60);
    expect(await remove(50, "ses-3", "ses-1")).toEqual({ status: "deleted", sessions: 0 });
    // In this order, one change removes all of them.
    expect(await remove(70, "ses-1")).toEqual({ status: "deleted", sessions: 0 });
    expect(await remove(70, "ses-3", "ses-1")).toEqual({ status: "deleted", sessions: 2 });
    expect(await listed()).toEqual([]);
  });

  test("ST58: a predecessor stays while the session that continues it is active", async () => {
    const first = await fixture.createClaimed("ses-1");
    await first.commit({
      session: { ...PATCH_TO.completed, handedOffTo: "ses-2" },
      effects: [creating("ses-2")],
    });
    expect(await remove(50, "ses-1", "ses-2")).toEqual({ status: "deleted", sessions: 0 });
    await end(await fixture.claim("ses-2", "owner-1", 1), 60);
    expect(await remove(50, "ses-1", "ses-2")).toEqual({ status: "deleted", sessions: 1 });
    expect(await listed()).toEqual(["ses-2"]);
  });

  test("ST58: the audit row says how many are gone", async () => {
    for (const id of ["ses-1", "ses-2"]) await end(await fixture.createClaimed(id), 1);
    const change = { type: "remove_ended", sessionIds: ["ses-1", "ses-2"], endedBefore: 50 } as const;
    const audit = { actor: "coordinator", action: "session.expire", object: "sessions" };
    expect(await fixture.apply({ type: "audited", change, audit })).toEqual({
      status: "deleted",
      sessions: 2,
    });
    expect(await fixture.storage.reader.audit({ limit: 10 })).toMatchObject([
      { ...audit, outcome: "deleted", details: '{"sessions":2}' },
    ]);
  });
}
