// ST1 to ST3: what one batch does.

import { FORMAT_LIMITS, type CommitBatch } from "@holdfast/core";
import { describe, expect, test } from "vitest";
import {
  cancelling,
  checkpointing,
  Claimant,
  creating,
  INVALID,
  PATCH_TO,
  releasing,
  scheduling,
  signalling,
  STARTED,
  statuses,
  tokenOf,
  type Fixture,
} from "./fixture.ts";

export function commitConformance(fixture: Fixture): void {
  describe("whole or not at all", () => {
    // The last part of the batch cannot be. Everything before it was fine, and must not have happened either.
    test("ST1: a batch with one impossible part changes nothing at all", async () => {
      const claimant = await fixture.createClaimed();
      await fixture.apply(signalling("ses-1", "sig-1"));
      const before = await fixture.everything("ses-1");

      const result = await claimant.commit({
        records: [STARTED, scheduling("a"), checkpointing("{}")],
        entries: [{ content: '"hello"' }],
        consumed: ["sig-1", "sig-unknown"],
        session: { status: "working", turn: 3, output: '"part"' },
      });

      expect(result).toEqual(INVALID);
      expect(await fixture.everything("ses-1")).toEqual(before);
    });

    test("ST1: a committed batch is there with every part of it", async () => {
      const claimant = await fixture.createClaimed();
      await fixture.apply(signalling("ses-1", "sig-1"));
      const batch = claimant.batch({
        records: [STARTED, scheduling("a", '"input"')],
        entries: [{ content: '"hello"' }],
        consumed: ["sig-1"],
        session: {
          status: "waiting",
          waits: [{ type: "timer", id: 1, at: 90 }],
          wakeAt: 90,
          turn: 2,
          output: '"part"',
        },
      });

      expect(await fixture.apply(batch, 5)).toEqual({ status: "committed", inbox: 1 });

      const { reader } = fixture.storage;
      expect(await reader.journal("ses-1", 0, 10)).toEqual(batch.records);
      expect(await reader.entries("ses-1", 0, 10)).toEqual([{ ...batch.entries[0], createdAt: 5 }]);
      expect(await reader.pendingSignals("ses-1")).toEqual([]);
      expect(await fixture.session("ses-1")).toMatchObject({
        status: "waiting",
        waits: [{ type: "timer", id: 1, at: 90 }],
        wakeAt: 90,
        turn: 2,
        output: '"part"',
        nextSeq: 3,
        entryCount: 1,
        updatedAt: 5,
      });
    });

    test("ST1: a field that a patch omits stays, and new waits clear the wake-up of the old ones", async () => {
      const claimant = await fixture.createClaimed();
      const waits = [{ type: "timer", id: 0, at: 90 }] as const;
      await claimant.commit({ session: { status: "waiting", waits, wakeAt: 90, turn: 4, output: '"part"' } });

      await claimant.commit({ session: { status: "working" } });
      expect(await fixture.session("ses-1")).toMatchObject({ waits, wakeAt: 90, turn: 4, output: '"part"' });

      await claimant.commit({ session: { status: "working", waits: [] } });
      const session = await fixture.session("ses-1");
      expect(session).toMatchObject({ waits: [], turn: 4, output: '"part"' });
      expect(session).not.toHaveProperty("wakeAt");
    });

    test("ST1: the reason of a pause is kept while it lasts and gone after it", async () => {
      const claimant = await fixture.createClaimed();
      await claimant.commit({ session: { status: "paused", pauseReason: "poison" } });
      expect(await fixture.session("ses-1")).toMatchObject({ status: "paused", pauseReason: "poison" });
      await fixture.apply({ type: "resume_session", sessionId: "ses-1" });
      expect(await fixture.session("ses-1")).not.toHaveProperty("pauseReason");
    });

    test("ST1: an empty group is nothing", async () => {
      expect(await fixture.storage.commit([], 1)).toEqual([]);
    });

    test("ST1: records that do not follow one another are invalid", async () => {
      const claimant = await fixture.createClaimed();
      const batch = claimant.batch({ records: [STARTED, scheduling("a")] });
      const gap = batch.records.map((record) => ({ ...record, seq: record.seq * 2 }));
      expect(await fixture.apply({ ...batch, records: gap })).toEqual(INVALID);
      expect(await fixture.storage.reader.journal("ses-1", 0, 10)).toEqual([]);
    });
  });

  describe("fencing", () => {
    // A runner stalls past its lease, and another one takes over. Then the first one wakes up and tries to
    // finish. Losing its work is right. Losing the signal it had read would not be: nobody would ever send it
    // again.
    test("ST2: a fenced batch consumes no signal", async () => {
      await fixture.apply(creating("ses-1"), 0);
      await fixture.apply(signalling("ses-1", "sig-1"));
      const stalled = await fixture.claim("ses-1", "owner-1", 0);
      const current = await fixture.claim("ses-1", "owner-2", 1_000);

      expect(await stalled.commit({ records: [STARTED], consumed: ["sig-1"] }, 1_001)).toEqual({
        status: "fenced",
      });
      expect(await fixture.storage.reader.pendingSignals("ses-1")).toMatchObject([{ signalId: "sig-1" }]);

      // The negative space: the same batch under the newest claim does consume it.
      expect(await current.commit({ records: [STARTED], consumed: ["sig-1"] }, 1_002)).toMatchObject({
        status: "committed",
      });
      expect(await fixture.storage.reader.pendingSignals("ses-1")).toEqual([]);
    });

    test("ST2: a fenced batch changes nothing else either", async () => {
      const stalled = await fixture.createClaimed();
      await stalled.release();
      await fixture.claim("ses-1", "owner-2", 0);
      const before = await fixture.everything("ses-1");

      const late = { records: [STARTED], entries: [{ content: "1" }], session: PATCH_TO.completed };
      expect(await stalled.commit(late)).toEqual({ status: "fenced" });
      expect(await fixture.everything("ses-1")).toEqual(before);
    });

    test("ST2: a session that was never claimed takes no batch, whatever the token", async () => {
      await fixture.apply(creating("ses-1"), 0);
      for (const token of [-1, 0, 1, 2]) {
        const batch: CommitBatch = {
          type: "commit_batch",
          sessionId: "ses-1",
          token,
          firstSeq: 0,
          records: [{ type: "started", seq: 0, at: 1 }],
          entries: [],
          consumed: [],
        };
        expect(await fixture.apply(batch), `token ${token}`).toEqual({ status: "fenced" });
      }
      expect((await fixture.session("ses-1")).nextSeq).toBe(0);
    });

    test("ST2: a token higher than any that was given out is fenced too", async () => {
      const claimant = await fixture.createClaimed();
      const batch = { ...claimant.batch({ records: [STARTED] }), token: claimant.token + 1 };
      expect(await fixture.apply(batch)).toEqual({ status: "fenced" });
    });

    test("ST2: a holder that released its claim commits nothing more", async () => {
      const claimant = await fixture.createClaimed();
      await claimant.release();
      expect(await claimant.commit({ records: [STARTED] })).toEqual({ status: "fenced" });
    });

    // Leases are liveness; fencing is safety. As long as nobody took over, late work is good work.
    test("ST2: a lease that has passed fences nothing until someone else has claimed", async () => {
      await fixture.apply(creating("ses-1"), 0);
      const late = await fixture.claim("ses-1", "owner-1", 0);
      expect(await late.commit({ records: [STARTED] }, 5_000)).toMatchObject({ status: "committed" });
    });
  });

  describe("position, and sending again", () => {
    test("ST3: a batch that leaves a gap is invalid", async () => {
      const claimant = await fixture.createClaimed();
      claimant.nextSeq = 1;
      expect(await claimant.commit({ records: [scheduling("a")] })).toEqual(INVALID);
      expect((await fixture.session("ses-1")).nextSeq).toBe(0);
    });

    test("ST3: other records at a position that is taken are invalid, and the first ones stay", async () => {
      const claimant = await fixture.createClaimed();
      const first = claimant.batch({ records: [STARTED, scheduling("a", "1")] });
      await fixture.apply(first);
      const other = claimant.batch({ records: [STARTED, scheduling("a", "2")] });
      expect(await fixture.apply(other)).toEqual(INVALID);
      expect(await fixture.storage.reader.journal("ses-1", 0, 10)).toEqual(first.records);
    });

    // The reply to the first one was lost. Any answer but `committed` would make the sender undo or repeat
    // the batch. A second application would take a second signal and append everything twice.
    test("ST3: a batch that is sent again is committed again, and nothing is applied twice", async () => {
      const claimant = await fixture.createClaimed();
      await fixture.apply(signalling("ses-1", "sig-1"));
      const batch = claimant.batch({
        records: [STARTED, scheduling("a", '"x"')],
        entries: [{ content: '"hello"' }],
        consumed: ["sig-1"],
        session: { status: "working", turn: 1 },
      });
      expect(await fixture.apply(batch, 2)).toEqual({ status: "committed", inbox: 1 });
      const before = await fixture.everything("ses-1");

      expect(await fixture.apply(batch, 3)).toEqual({ status: "committed", inbox: 1 });
      expect(await fixture.everything("ses-1")).toEqual(before);
    });

    test.each(["minimal", "ephemeral"] as const)(
      "ST3: a repeated batch without records, of a session that is %s, is known by the signals it consumed",
      async (persistence) => {
        const claimFor = { owner: "owner-1", leaseMs: Infinity };
        const created = await fixture.apply(creating("ses-1", { claimFor, persistence }), 0);
        const claimant = new Claimant(fixture, "ses-1", tokenOf(created));
        await fixture.apply(signalling("ses-1", "sig-1"));
        const batch = claimant.batch({ consumed: ["sig-1"], session: PATCH_TO.waiting });
        expect(await fixture.apply(batch, 2)).toEqual({ status: "committed", inbox: 1 });
        await fixture.apply(signalling("ses-1", "sig-2"));
        const before = await fixture.everything("ses-1");

        expect(await fixture.apply(batch, 3)).toEqual({ status: "committed", inbox: 2 });
        expect(await fixture.everything("ses-1")).toEqual(before);
        // A session that another process ended has no pending signals either, and nothing was applied.
        await fixture.apply({ ...cancelling("ses-1"), mode: "hard" });
        expect(await claimant.commit({ consumed: ["sig-2"], session: PATCH_TO.completed })).toEqual(INVALID);
      },
    );

    test("ST3: a batch that is sent again does not take back what came after it", async () => {
      const claimant = await fixture.createClaimed();
      const first = claimant.batch({ records: [STARTED], session: PATCH_TO.waiting });
      await fixture.apply(first);
      claimant.follow(first);
      await claimant.commit({ records: [scheduling("a")], session: { status: "working", waits: [] } });
      const before = await fixture.everything("ses-1");

      expect(await fixture.apply(first)).toMatchObject({ status: "committed" });
      expect(await fixture.everything("ses-1")).toEqual(before);
    });

    test("ST3: the batch that ended a session may be sent again", async () => {
      const claimant = await fixture.createClaimed();
      const last = claimant.batch({
        records: [STARTED, { type: "complete", payload: '"done"' }],
        session: PATCH_TO.completed,
      });
      await fixture.apply(last, 2);
      const before = await fixture.everything("ses-1");
      expect(await fixture.apply(last, 3)).toMatchObject({ status: "committed" });
      expect(await fixture.everything("ses-1")).toEqual(before);
    });

    test("ST3: a batch and the release behind it may be sent again together", async () => {
      const claimant = await fixture.createClaimed();
      const group = [claimant.batch({ records: [STARTED], session: PATCH_TO.waiting }), releasing(claimant)];
      expect(statuses(await fixture.storage.commit(group, 1))).toEqual(["committed", "released"]);
      expect(statuses(await fixture.storage.commit(group, 1))).toEqual(["committed", "released"]);
    });

    test("ST3: a new claimer that sends the very records the journal holds is told they are committed", async () => {
      const first = await fixture.createClaimed();
      const batch = first.batch({ records: [STARTED, scheduling("a")] });
      await fixture.apply(batch);
      await first.release();
      const second = await fixture.claim("ses-1", "owner-2", 1);
      expect(await fixture.apply({ ...batch, token: second.token })).toMatchObject({ status: "committed" });
      expect((await fixture.session("ses-1")).nextSeq).toBe(2);
    });

    test("ST3: a batch of which the journal holds only the beginning is invalid", async () => {
      const claimant = await fixture.createClaimed();
      await fixture.apply(claimant.batch({ records: [STARTED] }));
      expect(await claimant.commit({ records: [STARTED, scheduling("a")] })).toEqual(INVALID);
      expect((await fixture.session("ses-1")).nextSeq).toBe(1);
    });

    // It would prove nothing by being there: it holds no record.
    test("ST3: a batch without records is invalid anywhere but at the journal's end", async () => {
      const claimant = await fixture.createClaimed();
      await claimant.commit({ records: [STARTED] });
      const stale = { ...claimant.batch({ session: PATCH_TO.paused }), firstSeq: 0 };
      expect(await fixture.apply(stale)).toEqual(INVALID);
      expect((await fixture.session("ses-1")).status).toBe("submitted");
      expect(await claimant.commit({ session: PATCH_TO.paused })).toMatchObject({ status: "committed" });
    });

    test("ST3: large payloads are told apart to the last character", async () => {
      const claimant = await fixture.createClaimed();
      const large = "x".repeat(FORMAT_LIMITS.blobChars);
      const batch = claimant.batch({ records: [scheduling("a", `"${large}1"`)] });
      await fixture.apply(batch);
      expect(await fixture.apply(batch)).toMatchObject({ status: "committed" });
      expect(await fixture.apply(claimant.batch({ records: [scheduling("a", `"${large}2"`)] }))).toEqual(
        INVALID,
      );
    });
  });
}
