// ST25: a session and the first batch of its agent are one. ST49: one that is made in another one's name is
// made while that is held.

import type { Change, ChangeResult, FirstBatch, HeldAs } from "@holdfast/core";
import { expect, test } from "vitest";
import { creating, ENDINGS, LEASE_MS, PATCH_TO, tokenOf, type Claimant, type Fixture } from "../fixture.ts";

const CLAIM = { claimFor: { owner: "owner-1", leaseMs: LEASE_MS } };

/** A step that appends an entry and then waits for a signal. */
const FIRST: FirstBatch = {
  records: [
    { type: "started", at: 1, seq: 0 },
    { type: "append_entry", role: "user", hash: "h", seq: 1, id: 0 },
    { type: "wait_signal", name: "go", mode: "consume", seq: 2, id: 1 },
  ],
  entries: [{ id: 0, index: 0, role: "user", turn: 0, content: '"hello"' }],
  session: { status: "waiting", waits: [{ type: "signal", id: 1, name: "go" }] },
};

export function creationConformance(fixture: Fixture): void {
  test("ST25: a session created with its first batch has all of it, and its claim goes on behind it", async () => {
    const token = tokenOf(await fixture.apply(creating("ses-1", { ...CLAIM, first: FIRST }), 1));
    const snapshot = await fixture.storage.load("ses-1");
    expect(snapshot?.records).toEqual(FIRST.records);
    expect(snapshot?.session).toMatchObject({
      status: "waiting",
      nextSeq: 3,
      entryCount: 1,
      waits: FIRST.session?.waits,
    });
    expect(await fixture.storage.reader.entries("ses-1", 0, 10)).toMatchObject(FIRST.entries);

    const next = { sessionId: "ses-1", token, entries: [], consumed: [] };
    const records = [{ type: "warned", at: 2, seq: 3 }] as const;
    expect(await fixture.apply({ type: "commit_batch", ...next, firstSeq: 3, records }, 2)).toMatchObject({
      status: "committed",
    });
  });

  test("ST14: a session of which all survives from now on keeps what it was told of an earlier try", async () => {
    const shared = { kind: "custom", value: "1" } as const;
    const more = { ...CLAIM, persistence: "minimal", resumedFrom: '"old"', shared } as const;
    const token = tokenOf(await fixture.apply(creating("ses-1", more), 1));
    expect((await fixture.session("ses-1")).resumedFrom).toBe('"old"');
    const batch = {
      type: "commit_batch",
      sessionId: "ses-1",
      token,
      firstSeq: 0,
      entries: [],
      consumed: [],
    } as const;
    const session = { status: "working", persistence: "full", resumedFrom: '"new"', progress: "7" } as const;
    await fixture.apply({ ...batch, records: [{ type: "started", at: 1, seq: 0 }], session }, 2);
    const stored = await fixture.session("ses-1");
    expect(stored).toMatchObject({ resumedFrom: '"new"', progress: "7", shared });
    expect(stored.persistence).toBeUndefined();
    await fixture.apply({ ...batch, firstSeq: 1, records: [{ type: "started", at: 1, seq: 1 }] }, 3);
    expect((await fixture.storage.load("ses-1"))?.session).toMatchObject({ resumedFrom: '"new"', shared });
  });

  test("ST25: a session whose first batch is invalid does not exist", async () => {
    const broken: FirstBatch = { ...FIRST, entries: [] };
    expect(await fixture.apply(creating("ses-1", { ...CLAIM, first: broken }), 1)).toMatchObject({
      status: "invalid",
    });
    expect(await fixture.storage.load("ses-1")).toBeUndefined();
    // The negative space: the id is still free.
    expect(await fixture.apply(creating("ses-1", { ...CLAIM, first: FIRST }), 2)).toMatchObject({
      status: "created",
    });
  });

  test("ST25: a first batch needs the claim", async () => {
    expect(await fixture.apply(creating("ses-1", { first: FIRST }), 1)).toEqual({ status: "fenced" });
    expect(await fixture.storage.load("ses-1")).toBeUndefined();
  });

  test("ST25: created again, with another first batch, it is as it was", async () => {
    await fixture.apply(creating("ses-1", { ...CLAIM, first: FIRST }), 1);
    const other: FirstBatch = { records: [{ type: "started", at: 9, seq: 0 }], entries: [] };
    expect(await fixture.apply(creating("ses-1", { ...CLAIM, first: other }), 2)).toEqual({
      status: "exists",
    });
    expect((await fixture.storage.load("ses-1"))?.records).toEqual(FIRST.records);
  });

  test("ST25: an agent that ends in its first batch leaves a session that has ended", async () => {
    const first: FirstBatch = {
      records: [
        { type: "started", at: 1, seq: 0 },
        { type: "complete", seq: 1, id: 0, payload: "7" },
      ],
      entries: [],
      session: { status: "completed", waits: [], output: "7" },
    };
    await fixture.apply(creating("ses-1", { ...CLAIM, first }), 5);
    expect(await fixture.session("ses-1")).toMatchObject({ status: "completed", output: "7", endedAt: 5 });
    expect(
      await fixture.storage.claim({ sessionId: "ses-1", owner: "owner-2", now: 6, leaseMs: LEASE_MS }),
    ).toMatchObject({
      status: "ended",
    });
  });

  const made = { sessionId: "made", subtree: "refuse" } as const;
  const heldAs = ({ sessionId, token }: Claimant): HeldAs => ({ sessionId, token });
  const make = (under: HeldAs, now = 1): Promise<ChangeResult> =>
    fixture.apply(creating(made.sessionId, { under }), now);
  const removeMade = async (): Promise<void> => {
    await fixture.apply({ type: "request_cancel", ...made, mode: "hard", graceMs: 0 });
    expect(await fixture.apply({ type: "delete_session", ...made })).toMatchObject({ status: "deleted" });
  };

  // The request hangs, and arrives when its session has long continued elsewhere.
  test("ST49: a session is made under the newest claim of another one, and under no other", async () => {
    const first = await fixture.createClaimed();
    await first.release();
    expect(await make(heldAs(first)), "released").toEqual({ status: "fenced" });
    const second = await fixture.claim("ses-1", "owner-2", 1);
    expect(second.token).toBeGreaterThan(first.token);
    expect(await make(heldAs(first)), "claimed by another").toEqual({ status: "fenced" });
    expect(await make({ ...heldAs(second), owner: "owner-1" }), "another's").toEqual({ status: "fenced" });
    expect(await make({ sessionId: "nobody", token: second.token }), "not there").toEqual({
      status: "fenced",
    });
    expect(await fixture.storage.load(made.sessionId)).toBeUndefined();
    // Its lease has passed and nobody took it: its holder may still commit, and so this.
    expect(await make({ ...heldAs(second), owner: "owner-2" }, 1 + 2 * LEASE_MS)).toEqual({
      status: "created",
    });
    expect(await fixture.session(made.sessionId)).toMatchObject({ status: "submitted" });
    // Any caller finds a session that exists.
    expect(await make(heldAs(first))).toEqual({ status: "exists" });
  });

  test("ST49: nothing is made under a claim of a session that has ended or moves away", async () => {
    for (const status of ENDINGS) {
      const ending = await fixture.createClaimed(`ses-${status}`);
      await ending.commit({ session: PATCH_TO[status] });
      expect(await make(heldAs(ending)), status).toEqual({ status: "fenced" });
    }
    const moving = await fixture.createClaimed("ses-moving");
    const move = { type: "begin_move", sessionId: moving.sessionId, moveId: "m", to: "there" } as const;
    expect(await fixture.apply(move)).toMatchObject({ status: "requested" });
    expect(await make(heldAs(moving)), "moving").toEqual({ status: "fenced" });
    expect(await fixture.storage.load(made.sessionId)).toBeUndefined();
  });

  // The session is requested twice, as the first answer was lost. It is done and removed, and then the first
  // request arrives.
  test("ST49: a session is made once under a claim, even when it was deleted since", async () => {
    const holder = await fixture.createClaimed();
    expect(await make(heldAs(holder))).toEqual({ status: "created" });
    expect(await make(heldAs(holder))).toEqual({ status: "exists" });
    await removeMade();
    expect(await make(heldAs(holder))).toEqual({ status: "duplicate" });
    expect(await fixture.storage.load(made.sessionId)).toBeUndefined();
    // The negative space: another one is made, and so is this one under the next claim.
    expect(await fixture.apply(creating("another", { under: heldAs(holder) }))).toEqual({
      status: "created",
    });
    await holder.release();
    expect(await make(heldAs(await fixture.claim("ses-1", "owner-2", 1)))).toEqual({ status: "created" });
  });

  test("ST49: a refused creation leaves no trace, and its neighbours in the group are applied", async () => {
    const holder = await fixture.createClaimed();
    const under = heldAs(holder);
    const stale = { ...under, token: under.token + 1 };
    const group: Change[] = [
      creating("made", { under: stale }),
      creating("made", { under }),
      creating("other", { under: stale }),
    ];
    const results = await fixture.storage.commit(group, 1);
    expect(results.map(({ status }) => status)).toEqual(["fenced", "created", "fenced"]);
    expect(await fixture.storage.load("other")).toBeUndefined();
    const [before, again] = await fixture.storage.commit(
      [{ type: "request_cancel", ...made, mode: "hard", graceMs: 0 }, creating("made", { under })],
      1,
    );
    expect([before?.status, again?.status]).toEqual(["requested", "exists"]);
  });

  test("ST49: a batch makes nothing under another claim", async () => {
    const holder = await fixture.createClaimed();
    const effect = creating("made", { under: heldAs(holder) });
    expect(await holder.commit({ effects: [effect] })).toMatchObject({ status: "invalid" });
    expect(await fixture.storage.load("made")).toBeUndefined();
  });

  if (fixture.subject.reopen !== undefined) {
    test("ST49: an earlier creation is known after reopening", async () => {
      await fixture.apply(creating("ses-1"), 0);
      const holder = await fixture.claim("ses-1", "owner-1", 1);
      expect(await make(heldAs(holder))).toEqual({ status: "created" });
      await removeMade();
      await fixture.reopen();
      expect(await make(heldAs(holder), 2)).toEqual({ status: "duplicate" });
    });
  }
}
