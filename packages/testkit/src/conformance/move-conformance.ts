// ST45 and ST46: sessions that leave for another storage, and come from one.

import type { ChangeResult, ImportSession } from "@holdfast/core";
import { expect, test } from "vitest";
import {
  cancelling,
  creating,
  INVALID,
  PATCH_TO,
  reserving,
  scheduling,
  signalling,
  STARTED,
  tokens,
  type Claimant,
  type Fixture,
} from "./fixture.ts";

const MOVED = { status: "moved", to: "the other place" };

export function moveConformance(fixture: Fixture): void {
  const begin = (sessionId: string, moveId = "mov-1"): Promise<ChangeResult> =>
    fixture.apply({ type: "begin_move", sessionId, moveId, to: MOVED.to });
  const end = (sessionId: string, outcome: "moved" | "stayed", moveId = "mov-1"): Promise<ChangeResult> =>
    fixture.apply({ type: "end_move", sessionId, moveId, outcome });

  /** A session that waits for a signal, and is not held. */
  async function parked(sessionId = "ses-1"): Promise<Claimant> {
    const claimant = await fixture.createClaimed(sessionId);
    await fixture.apply(signalling(sessionId, "sig-1", { name: "go", dedupKey: "once" }));
    await claimant.commit({ records: [STARTED], consumed: ["sig-1"], session: PATCH_TO.waiting });
    return claimant;
  }

  async function packed(sessionId: string, home: number): Promise<ImportSession> {
    const { reader } = fixture.storage;
    const snapshot = await fixture.storage.load(sessionId);
    const { move: _move, ...session } = await fixture.session(sessionId);
    return {
      type: "import_session",
      sessionId,
      session: { ...session, inbox: 0, home: { number: home, moveId: "mov-1" } },
      records: await reader.journal(sessionId, 0, 1_000),
      entries: await reader.entries(sessionId, 0, 1_000),
      signals: snapshot?.signals ?? [],
      holds: snapshot?.holds ?? [],
      seen: await reader.seenSignals(sessionId),
    };
  }

  test("ST45: only the end of its move changes a session that is moving, and other changes are told its destination", async () => {
    const claimant = await parked();
    expect(await begin("ses-1")).toEqual({ status: "requested", sessionStatus: "waiting" });
    const before = await fixture.everything("ses-1");
    expect(await claimant.commit({ records: [scheduling("a")] })).toEqual({ status: "fenced" });
    expect(await fixture.apply(signalling("ses-1", "sig-2", { name: "go" }))).toEqual(MOVED);
    expect(await fixture.apply(cancelling("ses-1"))).toEqual(MOVED);
    expect(await fixture.apply({ type: "pause_session", sessionId: "ses-1" })).toEqual(MOVED);
    expect(await fixture.apply({ type: "resume_session", sessionId: "ses-1" })).toEqual(MOVED);
    expect(await begin("ses-1", "mov-2")).toEqual(MOVED);
    const claim = { sessionId: "ses-1", owner: "owner-2", now: 10_000, leaseMs: 1 };
    expect(await fixture.storage.claim(claim)).toEqual(MOVED);
    expect(await begin("ses-1")).toEqual({ status: "requested", sessionStatus: "waiting" });
    expect(await fixture.everything("ses-1")).toEqual(before);
  });

  test("ST45: a look for arrivals of a session that has moved is told its new place", async () => {
    await parked();
    await begin("ses-1");
    const moving = { moveId: "mov-1", to: MOVED.to };
    expect((await fixture.storage.arrivals("ses-1", 0)).session).toEqual({ status: "waiting", move: moving });
    await end("ses-1", "moved");
    const { session } = await fixture.storage.arrivals("ses-1", 0);
    expect(session).toEqual({ status: "waiting", move: { ...moving, isDone: true } });
  });

  test("ST45: a session that is moving is not due, whatever the time, and neither is its deadline", async () => {
    await fixture.apply(creating("ses-1", { deadlineAt: 50 }));
    await begin("ses-1");
    expect((await fixture.storage.due({ now: 10_000, limit: 10 })).sessionIds).toEqual([]);
    expect((await fixture.session("ses-1")).status).toBe("submitted");
    await end("ses-1", "stayed");
    expect((await fixture.storage.due({ now: 10, limit: 10 })).sessionIds).toEqual(["ses-1"]);
  });

  test("ST45: a session that stayed continues under its claim", async () => {
    const claimant = await parked();
    await begin("ses-1");
    expect(await end("ses-1", "stayed", "mov-2")).toEqual(INVALID);
    expect(await end("ses-1", "stayed")).toEqual({ status: "requested", sessionStatus: "waiting" });
    expect((await fixture.session("ses-1")).move).toBeUndefined();
    expect(await claimant.commit({ records: [scheduling("a")] })).toMatchObject({ status: "committed" });
  });

  test("ST45: a moved session does not come back by an end that says that it stayed", async () => {
    await parked();
    await begin("ses-1");
    expect(await end("ses-1", "moved")).toMatchObject({ status: "requested" });
    expect(await end("ses-1", "moved")).toMatchObject({ status: "requested" });
    expect(await end("ses-1", "stayed")).toEqual(MOVED);
    expect((await fixture.session("ses-1")).move).toEqual({ moveId: "mov-1", to: MOVED.to, isDone: true });
  });

  test("ST45: a session with family that has not ended, or that another pays for, does not move", async () => {
    const parent = await fixture.createClaimed("ses-parent");
    const child = await fixture.spawn(parent, "ses-child");
    expect(await begin("ses-parent")).toEqual(INVALID);
    expect(await begin("ses-child")).toEqual(INVALID);
    await child.commit({ session: PATCH_TO.completed });
    expect(await begin("ses-child")).toEqual({ status: "ended", sessionStatus: "completed" });
    expect(await begin("ses-parent")).toMatchObject({ status: "requested" });
    expect(await begin("ses-none")).toEqual({ status: "not_found" });
  });

  // There would be two copies of its account, each as if the other spent nothing.
  test("ST45: a session that pays for an active session below an ended child does not move", async () => {
    await fixture.apply(creating("ses-top", { budget: { maxTokens: 10 } }));
    const top = await fixture.claim("ses-top", "owner-1", 1, Infinity);
    const child = await fixture.spawn(top, "ses-child");
    const left = await fixture.spawn(child, "ses-left", {
      parent: { sessionId: "ses-child", child: 0, onEnd: "leave" },
    });
    await child.commit({ session: PATCH_TO.completed });
    expect(await begin("ses-top")).toEqual(INVALID);
    await left.commit({ session: PATCH_TO.completed });
    expect(await begin("ses-top")).toMatchObject({ status: "requested" });
  });

  test("ST46: the reservations of its tasks and the signals that it has seen come along", async () => {
    await fixture.apply(creating("ses-paid", { budget: { maxTokens: 10 } }));
    const claimant = await fixture.claim("ses-paid", "owner-1", 1, Infinity);
    await fixture.apply(signalling("ses-paid", "sig-1", { name: "go", dedupKey: "once" }));
    await claimant.commit({
      records: [STARTED, scheduling("a")],
      consumed: ["sig-1"],
      charges: [reserving(1, 4)],
    });
    await fixture.apply(signalling("ses-paid", "sig-2", { name: "go" }));
    await begin("ses-paid");
    const change = await packed("ses-paid", 1);
    const renamed = {
      ...change,
      sessionId: "ses-there",
      session: { ...change.session, sessionId: "ses-there", payers: ["ses-there"] },
    };
    expect(await fixture.apply({ ...renamed, holds: [] })).toEqual(INVALID);
    expect(await fixture.apply(renamed)).toEqual({ status: "created" });
    const there = await fixture.storage.load("ses-there");
    expect(there?.holds).toEqual([{ task: 1, amount: tokens(4) }]);
    expect(there?.remaining).toEqual({ tokens: 6 });
    expect(there?.signals.map(({ signalId }) => signalId)).toEqual(["sig-2"]);
    for (const again of [
      signalling("ses-there", "sig-1", { name: "other" }),
      signalling("ses-there", "sig-2", { name: "go" }),
      signalling("ses-there", "sig-3", { name: "go", dedupKey: "once" }),
    ])
      expect(await fixture.apply(again)).toEqual({ status: "duplicate" });
    expect(
      await fixture.apply(signalling("ses-there", "sig-4", { name: "other", dedupKey: "once" })),
    ).toMatchObject({ status: "stored" });
  });

  test("ST46: it comes back when its tombstone is deleted, and no claim of before counts", async () => {
    const claimant = await parked();
    expect(await fixture.apply(await packed("ses-1", 2))).toEqual({ status: "exists" });
    await begin("ses-1");
    const back = await packed("ses-1", 2);
    expect(await fixture.apply(back)).toEqual({ status: "exists" });
    const deletion = { type: "delete_session", sessionId: "ses-1", subtree: "refuse" } as const;
    expect(await fixture.apply(deletion)).toMatchObject({ status: "not_ended" });
    await end("ses-1", "moved");
    expect(await fixture.apply(back)).toEqual({ status: "exists" });
    expect(await fixture.apply(deletion)).toEqual({ status: "deleted", sessions: 1 });
    expect(await fixture.apply(back)).toEqual({ status: "created" });
    expect(await fixture.apply(back)).toEqual({ status: "exists" });
    expect(await fixture.session("ses-1")).toMatchObject({ home: { number: 2, moveId: "mov-1" } });
    expect(await claimant.commit({ records: [scheduling("a")] })).toEqual({ status: "fenced" });
    const next = await fixture.claim("ses-1", "owner-2", 20_000);
    expect(next.token).toBeGreaterThan(claimant.token);
    expect(await next.commit({ records: [scheduling("a")] })).toMatchObject({ status: "committed" });
  });

  // They stayed here while it was away, those that have ended and those that were left to go on below them.
  test("ST46: when it comes back, those below it are found", async () => {
    await parked();
    const parent = { sessionId: "ses-1", child: 0, onEnd: "leave" } as const;
    await fixture.apply(creating("ses-2", { parent }));
    await fixture.apply(creating("ses-3", { parent: { ...parent, sessionId: "ses-2" } }));
    await fixture.apply(creating("ses-4", { parent }));
    for (const sessionId of ["ses-2", "ses-4"]) {
      const child = await fixture.claim(sessionId, "owner-2", 1);
      expect(await child.commit({ session: PATCH_TO.completed })).toMatchObject({ status: "committed" });
    }
    await begin("ses-1");
    const back = await packed("ses-1", 2);
    await end("ses-1", "moved");
    const deletion = { type: "delete_session", sessionId: "ses-1", subtree: "refuse" } as const;
    expect(await fixture.apply(deletion)).toMatchObject({ status: "deleted" });
    expect(await fixture.apply(back)).toEqual({ status: "created" });
    expect(await fixture.apply(cancelling("ses-1", { mode: "hard" }))).toMatchObject({ status: "requested" });
    expect((await fixture.session("ses-3")).status).toBe("cancelled");
    expect(await fixture.apply(deletion)).toEqual({ status: "has_children" });
  });
}
