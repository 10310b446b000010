// ST19, ST20 and ST21: what was stored is what comes back, to the byte, for as long as it was promised.

import { FORMAT_LIMITS, type JournalRecord } from "@holdfast/core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  cancelling,
  checkpointing,
  creating,
  INVALID,
  LEASE_MS,
  PATCH_TO,
  scheduling,
  signalling,
  STARTED,
  type Claimant,
  type Fixture,
} from "./fixture.ts";

export function contentConformance(fixture: Fixture): void {
  const entries = (sessionId = "ses-1") => fixture.storage.reader.entries(sessionId, 0, 1_000);

  describe("entries", () => {
    test("ST19: entries are numbered from 0 on without gap, over batches and checkpoints", async () => {
      const claimant = await fixture.createClaimed();
      await claimant.commit(
        { records: [STARTED], entries: [{ content: '"a"' }, { content: '"b"', parent: 1 }] },
        3,
      );
      await claimant.commit({ records: [checkpointing("{}")] }, 4);
      await claimant.commit({ entries: [{ content: '"c"', parent: 2 }] }, 5);
      expect(await entries()).toEqual([
        { id: 1, index: 0, role: "user", turn: 0, content: '"a"', createdAt: 3 },
        { id: 2, index: 1, parent: 1, role: "user", turn: 0, content: '"b"', createdAt: 3 },
        { id: 4, index: 2, parent: 2, role: "user", turn: 0, content: '"c"', createdAt: 5 },
      ]);
      expect((await fixture.session("ses-1")).entryCount).toBe(3);
    });

    for (const [what, damage] of [
      ["skips a number", { index: 2 }],
      ["takes a number that is taken", { index: 0 }],
      ["stands beside no record", { id: 7 }],
      ["hangs under itself", { parent: 3 }],
      ["hangs under a later one", { parent: 9 }],
    ] as const) {
      test(`ST19: an entry that ${what} makes its batch invalid`, async () => {
        const claimant = await fixture.createClaimed();
        await claimant.commit({ records: [STARTED], entries: [{ content: "1" }] });
        const batch = claimant.batch({ records: [scheduling("a")], entries: [{ content: "2" }] });
        const damaged = { ...batch, entries: [{ ...batch.entries[0]!, ...damage }] };
        expect(await fixture.apply(damaged)).toEqual(INVALID);
        expect(await entries()).toHaveLength(1);
        expect(await fixture.apply(batch)).toMatchObject({ status: "committed" });
      });
    }

    // Otherwise there would be an entry that no replay knows, or a replay with an entry that cannot be read.
    test("ST19: an append_entry record without its entry makes the batch invalid, and the other way round", async () => {
      const claimant = await fixture.createClaimed();
      const batch = claimant.batch({ entries: [{ content: "1" }, { content: "2" }] });
      expect(await fixture.apply({ ...batch, entries: batch.entries.slice(0, 1) })).toEqual(INVALID);
      expect(await fixture.apply({ ...batch, records: batch.records.slice(0, 1) })).toEqual(INVALID);
      expect(await entries()).toEqual([]);
    });

    test("ST19: a conversation is the branch from its root to the leaf, oldest first", async () => {
      const claimant = await fixture.createClaimed();
      // 0 ← 1 ← 3, and 0 ← 2 ← 4.
      await claimant.commit({
        entries: [{ content: '"0"' }, { content: '"1"', parent: 0 }, { content: '"2"', parent: 0 }],
      });
      await claimant.commit({
        entries: [
          { content: '"3"', parent: 1 },
          { content: '"4"', parent: 2 },
        ],
      });
      const branch = async (leaf: number) =>
        (await fixture.storage.conversation("ses-1", leaf)).map(({ content }) => content);
      expect(await branch(4)).toEqual(['"0"', '"2"', '"4"']);
      expect(await branch(3)).toEqual(['"0"', '"1"', '"3"']);
      expect(await branch(0)).toEqual(['"0"']);
      expect((await fixture.storage.conversation("ses-1", 4)).at(-1)).toEqual((await entries())[4]);
    });

    test("ST19: an entry without a parent is the root of its branch, whatever stands before it", async () => {
      const claimant = await fixture.createClaimed();
      await claimant.commit({ entries: [{ content: '"0"' }, { content: '"1"', parent: 0 }] });
      await claimant.commit({ entries: [{ content: '"2"' }, { content: '"3"', parent: 2 }] });
      const branch = async (leaf: number) =>
        (await fixture.storage.conversation("ses-1", leaf)).map(({ content }) => content);
      expect(await branch(3)).toEqual(['"2"', '"3"']);
      expect(await branch(1)).toEqual(['"0"', '"1"']);
    });

    test("ST19: a conversation reaches back behind checkpoints", async () => {
      const claimant = await fixture.createClaimed();
      await claimant.commit({ entries: [{ content: '"a"' }] });
      await claimant.commit({ records: [checkpointing("{}")] });
      await claimant.commit({ entries: [{ content: '"b"', parent: 0 }] });
      expect(await fixture.storage.conversation("ses-1", 2)).toHaveLength(2);
    });

    test("ST19: a conversation that ends nowhere is an error, not an empty list", async () => {
      const claimant = await fixture.createClaimed();
      await claimant.commit({ records: [STARTED], entries: [{ content: "1" }] });
      await expect(fixture.storage.conversation("ses-1", 0)).rejects.toMatchObject({
        code: "corrupt_record",
      });
      await expect(fixture.storage.conversation("ses-none", 0)).rejects.toMatchObject({
        code: "session_not_found",
      });
    });
  });

  describe("text", () => {
    /** Sends one text through every place that keeps text, and takes it out again everywhere. */
    async function roundTrip(text: string, sessionId: string): Promise<void> {
      const created = creating(sessionId, { input: text, claimFor: { owner: "owner-1", leaseMs: Infinity } });
      await fixture.apply(created, 0);
      const claimant = await fixture.claim(sessionId, "owner-1", 0, Infinity);
      await fixture.apply(signalling(sessionId, "sig-1", { payload: text }));
      const records = [
        STARTED,
        scheduling("a", text),
        { type: "task_completed", task: 1, attempt: 1, at: 1, payload: text } as const,
      ];
      const batch = claimant.batch({
        records,
        entries: [{ content: text }],
        session: { status: "working", output: text },
      });
      expect(await fixture.apply(batch)).toMatchObject({ status: "committed" });

      const snapshot = await fixture.storage.load(sessionId);
      expect(snapshot!.session).toMatchObject({ input: text, output: text });
      expect(payloads(snapshot!.records)).toEqual([undefined, text, text, undefined]);
      expect(snapshot!.signals[0]!.payload).toBe(text);
      expect(payloads(await fixture.storage.reader.journal(sessionId, 0, 10))).toEqual([
        undefined,
        text,
        text,
        undefined,
      ]);
      expect((await fixture.storage.reader.entries(sessionId, 0, 10))[0]!.content).toBe(text);
      expect((await fixture.storage.conversation(sessionId, 3))[0]!.content).toBe(text);
      expect((await fixture.storage.arrivals(sessionId, 0)).signals[0]!.payload).toBe(text);
    }

    for (const [what, text] of TEXTS) {
      test(`ST20: ${what} comes back exactly as it was given`, () => roundTrip(text, "ses-1"));
    }

    for (const [what, size] of [
      ["just below the size of a blob", FORMAT_LIMITS.blobChars - 1],
      ["of exactly the size of a blob", FORMAT_LIMITS.blobChars],
      ["just above the size of a blob", FORMAT_LIMITS.blobChars + 1],
      ["of a million characters", 1_000_000],
    ] as const) {
      test(`ST20: a text ${what} comes back exactly as it was given`, async () => {
        await roundTrip(`"${"x".repeat(size - 2)}"`, "ses-narrow");
        await roundTrip(`"${"ß€𝄞".repeat(size / 4)}"`, "ses-wide");
      });
    }

    test("ST20: two sessions that keep the same large text each have it, also when one has ended", async () => {
      const text = `"${"y".repeat(2 * FORMAT_LIMITS.blobChars)}"`;
      await roundTrip(text, "ses-1");
      await fixture.apply(cancelling("ses-1", { mode: "hard" }));
      await roundTrip(text, "ses-2");
      expect(payloads((await fixture.storage.load("ses-1"))!.records)[1]).toBe(text);
    });

    test("ST20: any JSON comes back exactly as it was given", async () => {
      // Any code unit: controls and lone surrogates too, which `JSON.stringify` escapes.
      const stringUnit = fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit));
      const json = fc.jsonValue({ stringUnit }).map((value) => JSON.stringify(value));
      let n = 0;
      await fc.assert(
        fc.asyncProperty(json, async (text) => {
          await roundTrip(text, `ses-${n++}`);
        }),
        { numRuns: Math.min(100, fixture.subject.sequences ?? 100) },
      );
    });

    test("ST20: names, ids and reasons are kept exactly", async () => {
      const name = 'answer:7/ü "quoted" \u2028 𝄞';
      const waits = [{ type: "input", id: 0, name, prompt: "line\none\u0000?", until: 9 }] as const;
      const agent = { name, version: "1'; --", file: "/tmp/ä b/agent.ts" };
      await fixture.apply(creating("ses-1", { agent }), 0);
      const claimant = await fixture.claim("ses-1", "owner-1", 0);
      await claimant.commit({ records: [scheduling(name)], session: { status: "input_required", waits } });
      await fixture.apply(signalling("ses-1", "sig-'1", { name }));
      expect(await fixture.storage.reader.pendingSignals("ses-1")).toMatchObject([
        { signalId: "sig-'1", name },
      ]);
      expect(await fixture.session("ses-1")).toMatchObject({ agent, waits });
      await fixture.apply(cancelling("ses-1", { reason: name }));
      expect((await fixture.session("ses-1")).cancel).toMatchObject({ reason: name });
    });
  });

  if (fixture.subject.reopen !== undefined) {
    describe("after opening again", () => {
      test("ST21: a session is there with all that was committed", async () => {
        const claimant = await fixture.createClaimed();
        await fillSession(fixture, claimant);
        const before = await fixture.everything("ses-1");
        await fixture.reopen();
        expect(await fixture.everything("ses-1")).toEqual(before);
      });

      test("ST21: a consumed signal stays consumed, and seen", async () => {
        const claimant = await fixture.createClaimed();
        await fixture.apply(signalling("ses-1", "sig-1", { dedupKey: "push-7" }));
        await claimant.commit({ records: [STARTED], consumed: ["sig-1"] });
        await fixture.reopen();
        expect(await fixture.storage.reader.pendingSignals("ses-1")).toEqual([]);
        expect(await fixture.apply(signalling("ses-1", "sig-1"))).toEqual({ status: "duplicate" });
        expect(await fixture.apply(signalling("ses-1", "sig-2", { dedupKey: "push-7" }))).toEqual({
          status: "duplicate",
        });
      });

      test("ST21: an acknowledged signal is pending still, and the next one comes after it", async () => {
        await fixture.apply(creating("ses-1"), 0);
        await fixture.apply(signalling("ses-1", "sig-1"));
        await fixture.reopen();
        expect(await fixture.apply(signalling("ses-1", "sig-2"))).toEqual({
          status: "stored",
          order: 2,
          awaited: true,
        });
        expect((await fixture.storage.arrivals("ses-1", 0)).signals).toMatchObject([
          { signalId: "sig-1" },
          { signalId: "sig-2" },
        ]);
      });

      test("ST21: an acknowledged cancel is not forgotten, nor its deadline", async () => {
        await fixture.createIn("working");
        await fixture.apply(cancelling("ses-1", { graceMs: 10 * LEASE_MS }), 0);
        await fixture.reopen();
        const claimant = await fixture.claim("ses-1", "owner-2", LEASE_MS);
        expect(await claimant.commit({ records: [STARTED], session: PATCH_TO.completed })).toEqual(INVALID);
        await fixture.storage.due({ now: 10 * LEASE_MS, limit: 10 });
        expect((await fixture.session("ses-1")).status).toBe("cancelled");
      });

      test("ST21: a batch that was committed before is known when it is sent again after", async () => {
        const first = await fixture.createClaimed();
        const batch = first.batch({
          records: [STARTED, scheduling("a", '"x"')],
          entries: [{ content: "1" }],
        });
        await fixture.apply(batch);
        await first.release();
        await fixture.reopen();
        const { token } = await fixture.claim("ses-1", "owner-2", 0);
        expect(await fixture.apply({ ...batch, token })).toMatchObject({ status: "committed" });
        expect((await fixture.session("ses-1")).entryCount).toBe(1);
      });

      test("ST21: due sessions stay due, and ended sessions stay ended", async () => {
        await fixture.apply(creating("ses-due"), 0);
        const waiting = await fixture.createIn("waiting", "ses-waiting");
        await waiting.release();
        await fixture.apply(signalling("ses-waiting", "sig-1", { name: "go" }));
        await fixture.createIn("completed", "ses-ended");
        await fixture.reopen();
        expect([...(await fixture.storage.due({ now: 1, limit: 10 })).sessionIds].sort()).toEqual([
          "ses-due",
          "ses-waiting",
        ]);
        expect((await fixture.session("ses-ended")).status).toBe("completed");
      });

      test("ST21: opening again twice loses no more than once", async () => {
        const claimant = await fixture.createClaimed();
        await fillSession(fixture, claimant);
        const before = await fixture.everything("ses-1");
        await fixture.reopen();
        await fixture.reopen();
        expect(await fixture.everything("ses-1")).toEqual(before);
      });
    });
  }
}

/** Something of everything: a checkpoint with records on both sides, entries, a blob, signals, waits. */
async function fillSession(fixture: Fixture, claimant: Claimant): Promise<void> {
  const large = `"${"z".repeat(FORMAT_LIMITS.blobChars)}"`;
  await fixture.apply(signalling("ses-1", "sig-1", { payload: large, dedupKey: "k" }));
  await fixture.apply(signalling("ses-1", "sig-2"));
  await claimant.commit({
    records: [STARTED, scheduling("a", large)],
    entries: [{ content: large }],
    consumed: ["sig-1"],
  });
  await claimant.commit({
    records: [checkpointing(large)],
    session: { status: "working", turn: 1, output: large },
  });
  await claimant.commit({ records: [scheduling("b")], session: { ...PATCH_TO.waiting, wakeAt: 900 } }, 7);
}

function payloads(records: readonly JournalRecord[]): (string | undefined)[] {
  return records.map(({ payload }) => payload);
}

const TEXTS: readonly (readonly [string, string])[] = [
  ["null", "null"],
  ["an empty string", '""'],
  ["an empty object", "{}"],
  ["a number with more digits than a double holds", "12345678901234567890.123456789"],
  ["a number beyond every double", "1e400"],
  ["a negative zero", "-0"],
  ["white space inside", '{ "a" : [ 1 ,\t2 ] }'],
  ["keys in their order, also twice", '{"b":1,"a":2,"b":3}'],
  ["a key that names a prototype", '{"__proto__":{"x":1},"constructor":2}'],
  ["NUL as an escape", '"a\\u0000b"'],
  ["a lone surrogate as an escape", '"\\ud800 and \\udfff"'],
  ["a surrogate pair as escapes", '"\\ud834\\udd1e"'],
  ["characters beyond the basic plane", '"𝄞 😀 👩‍👩‍👧"'],
  ["combining characters in two normal forms", '"\u00e9 e\u0301"'],
  ["line separators", '"\u2028\u2029\u0085"'],
  ["a byte order mark", '"\ufeffx"'],
  ["a delete and other controls", '"\u007f\u009f"'],
  ["escaped line breaks", '"a\\nb\\r\\n"'],
  ["escaped slashes and quotes", '"\\/ \\" \\\\ \'"'],
  ["what looks like the journal's own bytes", '{"payload":{"seq":1},"x":",\\"payload\\":1}","blob":"abc"}'],
  ["what looks like SQL", '"\'); drop table sessions; --"'],
];
