// ST32 and ST33: sessions that come as a whole, and states that are kept as what changed.

import type { Change, Entry, ImportSession, JournalRecord, Session } from "@holdfast/core";
import { describe, expect, test } from "vitest";
import {
  checkpointing,
  INVALID,
  PATCH_TO,
  scheduling,
  signalling,
  STARTED,
  tokens,
  type Fixture,
} from "./fixture.ts";

export function importConformance(fixture: Fixture): void {
  describe("importing", () => {
    /** A session as another storage would hand it over. */
    async function exported(sessionId = "ses-made"): Promise<ImportSession> {
      const { reader } = fixture.storage;
      return {
        type: "import_session",
        sessionId,
        session: { ...(await fixture.session(sessionId)), inbox: 0 },
        records: await reader.journal(sessionId, 0, 1_000),
        entries: await reader.entries(sessionId, 0, 1_000),
      };
    }
    function renamed(change: ImportSession, sessionId: string, more: Partial<Session> = {}): ImportSession {
      return { ...change, sessionId, session: { ...change.session, sessionId, ...more } };
    }
    async function make(): Promise<ImportSession> {
      const claimant = await fixture.createClaimed("ses-made");
      await claimant.commit({ records: [STARTED, scheduling("a", "1")], entries: [{ content: '"one"' }] }, 3);
      await claimant.commit({ records: [checkpointing('"state"')] }, 4);
      await claimant.commit({ records: [scheduling("b")], entries: [{ content: '"two"' }] }, 5);
      await claimant.commit(
        { session: { ...PATCH_TO.waiting, turn: 1, progress: '"half"', wakeAt: 500 } },
        6,
      );
      return exported();
    }

    test("ST32: an imported session is the exported one, to the byte", async () => {
      const change = renamed(await make(), "ses-new", {
        title: "Ship 1.2.0",
        depth: 2,
        persistence: "minimal",
        resumedFrom: "7",
        shared: { kind: "custom", value: '{"a":1}' },
        environment: { references: ["staging"], values: { RELEASE: "1.2.0" } },
        fork: { origins: ["ses-made"], at: 4, seed: 9, tasks: "rerun" },
        account: { limits: { maxTokens: 9 }, spent: tokens(3), reserved: tokens(0), low: false },
        cost: { calls: 2, unpriced: 1, costMicroUsd: 30, inputTokens: 4, outputTokens: 5 },
        payers: ["ses-new"],
        deadlineAt: 5_000,
        status: "paused",
        pauseReason: "quota",
        quota: { pool: "anthropic/claude-sonnet-5", resetsAt: 8_000, resumesAt: 8_000 },
      });
      expect(await fixture.apply(change, 99)).toEqual({ status: "created" });
      const { reader } = fixture.storage;
      expect(await reader.session("ses-new")).toEqual(change.session);
      expect(await reader.journal("ses-new", 0, 100)).toEqual(change.records);
      expect(await reader.entries("ses-new", 0, 100)).toEqual(change.entries);
      expect(await fixture.storage.load("ses-new")).toEqual({
        session: change.session,
        records: change.records.slice(change.session.checkpointSeq),
        signals: [],
        states: [],
        holds: [],
        remaining: { tokens: 6 },
      });
    });

    test("ST32: an imported session goes on as if it had been made here", async () => {
      await fixture.apply(renamed(await make(), "ses-new"), 99);
      expect((await fixture.storage.due({ now: 500, limit: 10 })).sessionIds).toEqual(["ses-new"]);
      await fixture.apply(signalling("ses-new", "sig-1", { name: "go" }));
      const claimant = await fixture.claim("ses-new", "owner-1", 100);
      expect(
        await claimant.commit({ records: [STARTED], entries: [{ content: "3" }], consumed: ["sig-1"] }),
      ).toMatchObject({ status: "committed", inbox: 1 });
      expect(await claimant.commit({ session: PATCH_TO.completed })).toMatchObject({ status: "committed" });
    });

    test("ST32: signals that come along have arrived, in order, once, and are consumed like any", async () => {
      const signals = [
        { signalId: "sig-1", name: "go", payload: "1" },
        { signalId: "sig-2", name: "go", payload: undefined },
      ];
      const change = { ...renamed(await make(), "ses-new"), signals };
      expect(await fixture.apply(change, 99)).toEqual({ status: "created" });
      expect((await fixture.session("ses-new")).inbox).toBe(2);
      const { signals: stored } = (await fixture.storage.load("ses-new"))!;
      expect(stored.map(({ signalId, payload, order }) => [signalId, payload, order])).toEqual([
        ["sig-1", "1", 1],
        ["sig-2", undefined, 2],
      ]);
      // It waits for them.
      expect((await fixture.storage.due({ now: 100, limit: 10 })).sessionIds).toEqual(["ses-new"]);
      expect(await fixture.apply(change, 99)).toEqual({ status: "exists" });
      expect(await fixture.apply(signalling("ses-new", "sig-1", { name: "go" }))).toEqual({
        status: "duplicate",
      });
      const claimant = await fixture.claim("ses-new", "owner-1", 100);
      expect(await claimant.commit({ records: [STARTED], consumed: ["sig-1"] })).toMatchObject({ inbox: 2 });
      expect((await fixture.storage.load("ses-new"))!.signals).toHaveLength(1);
    });

    test("ST32: nothing arrives at a session that exists, nor with one that is refused", async () => {
      const change = await make();
      const signals = [{ signalId: "sig-1", name: "go", payload: undefined }];
      const before = await fixture.everything("ses-made");
      expect(await fixture.apply({ ...change, signals })).toEqual({ status: "exists" });
      expect(await fixture.everything("ses-made")).toEqual(before);
      const spoilt = { ...renamed(change, "ses-new", { turn: 1, nextSeq: 99 }), signals };
      expect(await fixture.apply(spoilt)).toEqual(INVALID);
      expect(await fixture.storage.reader.session("ses-new")).toBeUndefined();
    });

    test("ST32: an import of a session that exists changes nothing", async () => {
      const change = await make();
      const before = await fixture.everything("ses-made");
      expect(await fixture.apply({ ...change, records: [], entries: [] })).toEqual({ status: "exists" });
      expect(await fixture.everything("ses-made")).toEqual(before);
      const group: Change[] = [renamed(change, "ses-new"), renamed(change, "ses-new", { turn: 9 })];
      expect(await fixture.storage.commit(group, 1)).toEqual([{ status: "created" }, { status: "exists" }]);
      expect((await fixture.session("ses-new")).turn).toBe(1);
    });

    const damages: readonly [string, (change: ImportSession) => ImportSession][] = [
      ["a record is missing", (change) => ({ ...change, records: change.records.slice(0, -1) })],
      [
        "a record is in another place",
        ({ records, ...rest }) => ({ ...rest, records: records.toReversed() }),
      ],
      ["an entry is missing", (change) => ({ ...change, entries: change.entries.slice(1) })],
      [
        "an entry belongs to no record",
        (change) => ({ ...change, entries: change.entries.map((entry): Entry => ({ ...entry, id: 77 })) }),
      ],
      ["its checkpoint is elsewhere", (change) => withRow(change, { checkpointSeq: 0 })],
      ["it has an inbox", (change) => withRow(change, { inbox: 3 })],
      ["its row is another session's", (change) => withRow(change, { sessionId: "ses-other" })],
      ["it pays for itself out of nothing", (change) => withRow(change, { payers: ["ses-new"] })],
      [
        "something is reserved that nobody holds",
        (change) =>
          withRow(change, {
            payers: ["ses-new"],
            account: { limits: {}, spent: tokens(0), reserved: tokens(1), low: false },
          }),
      ],
    ];
    for (const [damage, spoil] of damages) {
      test(`ST32: nothing is stored of a session that is damaged: ${damage}`, async () => {
        const change = renamed(await make(), "ses-new");
        expect(await fixture.apply(spoil(change))).toEqual(INVALID);
        expect(await fixture.storage.reader.session("ses-new")).toBeUndefined();
        expect(await fixture.storage.reader.journal("ses-new", 0, 10)).toEqual([]);
        expect(await fixture.apply(change)).toEqual({ status: "created" });
      });
    }

    test("ST32: a long journal is imported whole", async () => {
      const { session } = await make();
      const records = Array.from({ length: 1_000 }, (_, seq): JournalRecord => {
        return seq % 7 === 6
          ? {
              type: "checkpoint",
              seq,
              id: seq,
              at: 1,
              turn: seq,
              entryCount: 0,
              base: 6,
              payload: `[${seq}]`,
            }
          : { type: "started", seq, at: seq };
      });
      const change: ImportSession = {
        type: "import_session",
        sessionId: "ses-long",
        session: { ...session, sessionId: "ses-long", nextSeq: 1_000, entryCount: 0, checkpointSeq: 993 },
        records,
        entries: [],
      };
      expect(await fixture.apply(change)).toEqual({ status: "created" });
      expect(await fixture.storage.reader.journal("ses-long", 0, 2_000)).toEqual(records);
      const { states } = (await fixture.storage.load("ses-long"))!;
      expect(states).toHaveLength(141);
      expect(states.slice(0, 2)).toEqual(["[6]", "[13]"]);
    });

    if (fixture.subject.reopen !== undefined) {
      test("ST32: an imported session survives closing and opening again", async () => {
        const change = renamed(await make(), "ses-new");
        await fixture.apply(change);
        const before = await fixture.everything("ses-new");
        await fixture.reopen();
        expect(await fixture.everything("ses-new")).toEqual(before);
      });
    }
  });

  describe("states", () => {
    const statesOf = async () => (await fixture.storage.load("ses-1"))!.states;

    test("ST33: a checkpoint that holds its state whole builds on nothing", async () => {
      const claimant = await fixture.createClaimed();
      await claimant.commit({ records: [checkpointing('"first"')] });
      await claimant.commit({ records: [STARTED, checkpointing('"second"')] });
      expect(await statesOf()).toEqual([]);
    });

    test("ST33: the states a checkpoint builds on are loaded, from its base to the one before it", async () => {
      const claimant = await fixture.createClaimed();
      await claimant.commit({ records: [checkpointing('"older"')] });
      await claimant.commit({ records: [STARTED, checkpointing('"whole"')] });
      await claimant.commit({
        records: [scheduling("a"), scheduling("checkpoint"), checkpointing("[1]", 2)],
      });
      await claimant.commit({ records: [scheduling("b", '{"type":"checkpoint"}')] });
      await claimant.commit({ records: [STARTED, checkpointing("[2]", 2), STARTED] });
      expect(await statesOf()).toEqual(['"whole"', "[1]"]);
      const { records } = (await fixture.storage.load("ses-1"))!;
      expect(records.map(({ payload }) => payload)).toEqual(["[2]", undefined]);
      // Whole once more: what was before is of no use.
      await claimant.commit({ records: [checkpointing('"new"')] });
      expect(await statesOf()).toEqual([]);
    });

    test("ST33: two checkpoints of one batch are both counted", async () => {
      const claimant = await fixture.createClaimed();
      await claimant.commit({ records: [checkpointing('"whole"'), STARTED, checkpointing("[1]", 0)] });
      expect(await statesOf()).toEqual(['"whole"']);
      await claimant.commit({ records: [checkpointing("[2]", 0)] });
      expect(await statesOf()).toEqual(['"whole"', "[1]"]);
    });

    test("ST33: large states are whole", async () => {
      const large = JSON.stringify("x".repeat(100_000));
      const claimant = await fixture.createClaimed();
      await claimant.commit({ records: [checkpointing(large)] });
      await claimant.commit({ records: [checkpointing("[1]", 0)] });
      expect(await statesOf()).toEqual([large]);
    });

    test("ST33: other sessions' checkpoints are not among them", async () => {
      const claimant = await fixture.createClaimed();
      const other = await fixture.createClaimed("ses-2");
      await claimant.commit({ records: [checkpointing('"mine"')] });
      await other.commit({ records: [checkpointing('"theirs"')] });
      await claimant.commit({ records: [checkpointing("[1]", 0)] });
      expect(await statesOf()).toEqual(['"mine"']);
    });
  });
}

function withRow(change: ImportSession, more: Partial<Session>): ImportSession {
  return { ...change, session: { ...change.session, ...more } };
}
