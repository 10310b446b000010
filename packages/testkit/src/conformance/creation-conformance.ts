// ST25: a session and the first batch of its agent are one.

import type { FirstBatch } from "@holdfast/core";
import { expect, test } from "vitest";
import { creating, LEASE_MS, tokenOf, type Fixture } from "./fixture.ts";

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

  test("ST25: one whose first batch is invalid does not exist", async () => {
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
}
