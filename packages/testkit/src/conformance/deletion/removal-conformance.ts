// ST58 and ST59: sessions that ended long ago are removed, and none that another session needs. Old rows of the
// audit go from the oldest on, and the others stay a chain.

import { hash } from "node:crypto";
import { verifyAudit } from "@holdfast/core";
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
    expect(await remove(Number.MAX_SAFE_INTEGER, ...all.map((status) => `ses-${status}`))).toEqual({
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

  const sha256 = (text: string): string => hash("sha256", text, "base64url");
  const trim = (before: number, limit = 100) =>
    fixture.apply({ type: "trim_audit", before, limit, actor: "coordinator" }, 100);
  const note = (at: number) =>
    fixture.apply({ type: "audited", audit: { actor: "anna", action: "look", object: `at ${at}` } }, at);
  const rows = () => fixture.storage.reader.audit({ limit: 100 });
  const seqs = async () => (await rows()).map(({ seq }) => seq);

  test("ST59: rows go from the oldest on as far as they are old, and a row says which", async () => {
    for (const at of [1, 2, 3, 60, 4]) await note(at);
    const [, second] = await rows();
    expect(await trim(50, 2)).toEqual({ status: "trimmed", rows: 2 });
    expect(await seqs()).toEqual([3, 4, 5, 6]);
    expect((await rows()).at(-1)).toMatchObject({
      at: 100,
      actor: "coordinator",
      action: "audit.trim",
      object: "audit",
      outcome: "trimmed",
      details: JSON.stringify({ rows: 2, last: { seq: 2, hash: second!.hash } }),
    });
    expect(await trim(50)).toEqual({ status: "trimmed", rows: 1 });
    // A row behind a young one stays, as the chain is cut at one place.
    expect(await seqs()).toEqual([4, 5, 6, 7]);
    expect(await trim(50)).toEqual({ status: "trimmed", rows: 0 });
    expect(await seqs()).toEqual([4, 5, 6, 7]);
    expect(await fixture.storage.reader.audit({ after: 2, limit: 2 })).toMatchObject([
      { seq: 4 },
      { seq: 5 },
    ]);
    expect(await fixture.storage.reader.audit({ after: 5, limit: 1 })).toMatchObject([{ seq: 6 }]);
  });

  test("ST59: the rows that are left are a chain, in which a row that is gone otherwise shows", async () => {
    for (const at of [1, 2, 3, 4]) await note(at);
    await trim(3);
    const left = await rows();
    expect(verifyAudit(left, sha256)).toEqual({
      status: "intact",
      last: { seq: 5, hash: left.at(-1)!.hash },
    });
    expect(verifyAudit(left.slice(1), sha256)).toMatchObject({ status: "broken", seq: 4 });
    expect(verifyAudit(left.slice(0, -1), sha256)).toMatchObject({ status: "broken", seq: 3 });
    expect(verifyAudit([{ ...left[0]!, actor: "bert" }, ...left.slice(1)], sha256)).toMatchObject({
      status: "broken",
      seq: 3,
    });
    await trim(101, 100);
    expect(await seqs()).toEqual([5, 6]); // The newest stays.
    expect(verifyAudit(await rows(), sha256)).toMatchObject({ status: "intact" });
    await note(200);
    expect(verifyAudit(await rows(), sha256)).toMatchObject({ status: "intact" });
  });

  test("ST59: an audit without rows stays as it is", async () => {
    expect(await trim(50)).toEqual({ status: "trimmed", rows: 0 });
    expect(await rows()).toEqual([]);
  });
}
