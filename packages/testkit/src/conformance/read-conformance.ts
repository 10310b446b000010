// ST13, ST14 and ST24: creating a session, loading it where it was never seen, and reading it.

import { defined, type JournalRecord, type Session, type StorageReader } from "@holdfast/core";
import { describe, expect, test } from "vitest";
import {
  checkpointing,
  creating,
  ENDINGS,
  LEASE_MS,
  PATCH_TO,
  scheduling,
  signalling,
  STARTED,
  type Fixture,
  type NewRecord,
} from "./fixture.ts";

type SessionQuery = Parameters<StorageReader["sessions"]>[0];

export function readConformance(fixture: Fixture): void {
  describe("creating", () => {
    test("ST13: a created session is as it was described, and has done nothing", async () => {
      const agent = { name: "coder", version: "2", file: "/agents/coder.ts" };
      await fixture.apply(
        creating("ses-1", { agent, input: '{"a":1}', seed: 4_294_967_295, flags: 5, format: 1 }),
        12,
      );
      expect(await fixture.session("ses-1")).toEqual({
        sessionId: "ses-1",
        agent,
        title: "a=1",
        input: '{"a":1}',
        status: "submitted",
        waits: [],
        nextSeq: 0,
        entryCount: 0,
        turn: 0,
        inbox: 0,
        seed: 4_294_967_295,
        flags: 5,
        format: 1,
        depth: 0,
        children: 0,
        payers: [],
        createdAt: 12,
        updatedAt: 12,
      } satisfies Session);
    });

    test("ST13: a session without an input has none", async () => {
      await fixture.apply(creating("ses-1", { input: undefined }), 0);
      expect((await fixture.session("ses-1")).input).toBeUndefined();
    });

    test("ST13: creating it again changes nothing", async () => {
      const claimant = await fixture.createClaimed();
      await claimant.commit({ records: [STARTED], session: PATCH_TO.waiting });
      const before = await fixture.everything("ses-1");
      const other = creating("ses-1", {
        agent: { name: "other", version: "9" },
        input: "2",
        seed: 1,
        flags: 1,
      });
      expect(await fixture.apply(other, 99)).toEqual({ status: "exists" });
      expect(await fixture.everything("ses-1")).toEqual(before);
    });

    for (const status of ENDINGS) {
      test(`ST13: creating one that is ${status} does not bring it back`, async () => {
        await fixture.createIn(status);
        expect(await fixture.apply(creating("ses-1"))).toEqual({ status: "exists" });
        expect((await fixture.session("ses-1")).status).toBe(status);
      });
    }

    test("ST13: creating it again for another owner does not take it from the first", async () => {
      const first = await fixture.createClaimed("ses-1", "owner-1");
      const again = creating("ses-1", { claimFor: { owner: "owner-2", leaseMs: LEASE_MS } });
      expect(await fixture.apply(again)).toEqual({ status: "exists" });
      expect(await first.commit({ records: [STARTED] })).toMatchObject({ status: "committed" });
      const taken = await fixture.storage.claim({
        sessionId: "ses-1",
        owner: "owner-2",
        now: 1,
        leaseMs: LEASE_MS,
      });
      expect(taken).toEqual({ status: "busy", owner: "owner-1" });
    });

    test("ST13: twice in one group is once", async () => {
      const results = await fixture.storage.commit([creating("ses-1"), creating("ses-1", { input: "2" })], 1);
      expect(results).toEqual([{ status: "created" }, { status: "exists" }]);
      expect((await fixture.session("ses-1")).input).toBe('{"n":1}');
    });
  });

  describe("loading", () => {
    test("ST14: a load of a session that does not exist gives nothing", async () => {
      expect(await fixture.storage.load("ses-none")).toBeUndefined();
    });

    test("ST14: without a checkpoint the whole journal is loaded", async () => {
      const claimant = await fixture.createClaimed();
      const first = claimant.batch({ records: [STARTED, scheduling("a", "1")] });
      await fixture.apply(first);
      claimant.follow(first);
      const second = claimant.batch({ records: [scheduling("b")] });
      await fixture.apply(second);
      expect(await fixture.storage.load("ses-1")).toEqual({
        session: await fixture.session("ses-1"),
        records: [...first.records, ...second.records],
        signals: [],
        states: [],
        holds: [],
      });
      expect(await fixture.session("ses-1")).not.toHaveProperty("checkpointSeq");
    });

    test("ST14: with a checkpoint it and what follows is loaded, and nothing before it", async () => {
      const claimant = await fixture.createClaimed();
      await claimant.commit({ records: [STARTED, scheduling("a"), checkpointing('"first"')] });
      await claimant.commit({ records: [STARTED, scheduling("b")] });
      // The last checkpoint stands in the middle of its batch.
      await claimant.commit({ records: [scheduling("c"), checkpointing('"second"'), STARTED] });
      await claimant.commit({ records: [scheduling("d")] });

      const { session, records } = (await fixture.storage.load("ses-1"))!;
      expect(session.checkpointSeq).toBe(6);
      expect(records.map(({ seq, type }) => [seq, type])).toEqual([
        [6, "checkpoint"],
        [7, "started"],
        [8, "schedule_task"],
      ]);
      expect(records[0]!.payload).toBe('"second"');
    });

    test("ST14: the later of two checkpoints in one batch counts", async () => {
      const claimant = await fixture.createClaimed();
      await claimant.commit({ records: [checkpointing("1"), STARTED, checkpointing("2")] });
      const { session, records } = (await fixture.storage.load("ses-1"))!;
      expect(session.checkpointSeq).toBe(2);
      expect(records).toMatchObject([{ seq: 2, payload: "2" }]);
    });

    test("ST14: all pending signals are loaded, in order, also those from before the checkpoint", async () => {
      const claimant = await fixture.createClaimed();
      for (const n of [1, 2, 3]) await fixture.apply(signalling("ses-1", `sig-${n}`));
      await claimant.commit({ records: [STARTED, checkpointing("1")], consumed: ["sig-2"] });
      const { session, signals } = (await fixture.storage.load("ses-1"))!;
      expect(signals.map(({ signalId }) => signalId)).toEqual(["sig-1", "sig-3"]);
      expect(session.inbox).toBe(3);
    });

    test("ST14: a record of every type comes back as it was", async () => {
      const claimant = await fixture.createClaimed();
      const batch = claimant.batch({ records: EVERY_RECORD });
      expect(await fixture.apply(batch)).toMatchObject({ status: "committed" });
      expect(
        (await fixture.storage.reader.journal("ses-1", 0, 100)).map((record) => ({ ...record })),
      ).toEqual(batch.records);
    });

    // A caller must not see a loaded session change.
    test("ST14: a loaded session stays as it was when the session continues", async () => {
      const claimant = await fixture.createClaimed();
      await fixture.apply(signalling("ses-1", "sig-1"));
      await claimant.commit({ records: [STARTED] });
      const snapshot = (await fixture.storage.load("ses-1"))!;
      const copy = structuredClone(snapshot);
      const listed = await fixture.storage.reader.pendingSignals("ses-1");
      await claimant.commit(
        { records: [scheduling("a")], consumed: ["sig-1"], session: PATCH_TO.waiting },
        9,
      );
      await fixture.apply(signalling("ses-1", "sig-2"));
      expect(snapshot).toEqual(copy);
      expect(listed).toEqual(copy.signals);
    });
  });

  describe("reading", () => {
    test("ST24: a session reads as it loads", async () => {
      const claimant = await fixture.createClaimed();
      await fixture.apply(signalling("ses-1", "sig-1"));
      await claimant.commit({
        records: [STARTED],
        entries: [{ content: "1" }],
        session: PATCH_TO.input_required,
      });
      const { session, records, signals } = (await fixture.storage.load("ses-1"))!;
      const { reader } = fixture.storage;
      expect(await reader.session("ses-1")).toEqual(session);
      expect(await reader.sessions({ limit: 10 })).toEqual([session]);
      expect(await reader.journal("ses-1", 0, 10)).toEqual(records);
      expect(await reader.pendingSignals("ses-1")).toEqual(signals);
    });

    test("ST24: a session was last changed by its last batch, also by one that holds nothing", async () => {
      const claimant = await fixture.createClaimed();
      await claimant.commit({ records: [STARTED] }, 5);
      expect(await fixture.session("ses-1")).toMatchObject({ updatedAt: 5 });
      await claimant.commit({ records: [] }, 7);
      expect(await fixture.session("ses-1")).toMatchObject({ updatedAt: 7 });
      expect((await fixture.storage.load("ses-1"))?.session.updatedAt).toBe(7);
    });

    test("ST24: a session's cost is the usage in its journal, each record once, in every read", async () => {
      const used = (task: number, costMicroUsd?: number): NewRecord => ({
        type: "task_completed",
        at: 1,
        task,
        attempt: 1,
        usage: {
          model: "m",
          inputTokens: 100,
          outputTokens: 10,
          ...defined({ costMicroUsd }),
        },
      });
      const claimant = await fixture.createClaimed();
      await claimant.commit({ records: [STARTED, scheduling("a"), scheduling("b")] });
      expect(await fixture.session("ses-1")).not.toHaveProperty("cost");
      // No batch changes the status. The first one comes twice.
      const batch = claimant.batch({ records: [used(1, 3_000), used(2)] });
      for (let times = 0; times < 2; times++)
        expect(await fixture.apply(batch)).toMatchObject({ status: "committed" });
      claimant.follow(batch);
      await claimant.commit({ records: [used(3, 500)] });
      await claimant.commit({ records: [scheduling("c")] });
      const cost = { calls: 3, unpriced: 1, costMicroUsd: 3_500, inputTokens: 300, outputTokens: 30 };
      const isRead = async (): Promise<void> => {
        expect(await fixture.session("ses-1")).toMatchObject({ nextSeq: 7, cost });
        expect(await fixture.storage.reader.sessions({ limit: 1 })).toMatchObject([{ cost }]);
        expect((await fixture.storage.load("ses-1"))?.session).toMatchObject({ cost });
      };
      await isRead();
      if (fixture.subject.reopen === undefined) return;
      await fixture.reopen();
      await isRead();
    });

    test("ST24: the journal is read over checkpoints, from any record on, as many as asked for", async () => {
      const claimant = await fixture.createClaimed();
      await claimant.commit({ records: [STARTED, scheduling("a"), checkpointing("1")] });
      await claimant.commit({ records: [STARTED, scheduling("b")] });
      const seqs = async (from: number, limit: number) =>
        (await fixture.storage.reader.journal("ses-1", from, limit)).map(({ seq }) => seq);
      expect(await seqs(0, 10)).toEqual([0, 1, 2, 3, 4]);
      expect(await seqs(1, 3)).toEqual([1, 2, 3]);
      expect(await seqs(4, 10)).toEqual([4]);
      expect(await seqs(5, 10)).toEqual([]);
    });

    test("ST24: entries are read from any number on, as many as asked for", async () => {
      const claimant = await fixture.createClaimed();
      await claimant.commit({ entries: ["0", "1", "2", "3"].map((content) => ({ content })) });
      const contents = async (from: number, limit: number) =>
        (await fixture.storage.reader.entries("ses-1", from, limit)).map(({ content }) => content);
      expect(await contents(0, 10)).toEqual(["0", "1", "2", "3"]);
      expect(await contents(1, 2)).toEqual(["1", "2"]);
      expect(await contents(4, 10)).toEqual([]);
    });

    test("ST24: a session that does not exist reads as nothing", async () => {
      const { reader } = fixture.storage;
      expect(await reader.session("ses-none")).toBeUndefined();
      expect(await reader.journal("ses-none", 0, 10)).toEqual([]);
      expect(await reader.entries("ses-none", 0, 10)).toEqual([]);
      expect(await reader.pendingSignals("ses-none")).toEqual([]);
      expect(await reader.sessions({ limit: 10 })).toEqual([]);
    });

    test("ST24: sessions are paged newest first", async () => {
      for (const n of [1, 2, 3, 4, 5]) await fixture.apply(creating(`ses-${n}`), n);
      expect(await pages(2)).toEqual([["ses-5", "ses-4"], ["ses-3", "ses-2"], ["ses-1"]]);
    });

    test("ST24: a page goes on where the last one ended, also when newer ones came and old ones changed", async () => {
      for (const n of [1, 2, 3]) await fixture.apply(creating(`ses-${n}`), n);
      const [first] = await fixture.storage.reader.sessions({ limit: 1 });
      await fixture.apply(creating("ses-4"), 4);
      await fixture.apply(signalling("ses-1", "sig-1"), 9);
      const rest = await fixture.storage.reader.sessions({ limit: 10, before: first!.sessionId });
      expect(rest.map(({ sessionId }) => sessionId)).toEqual(["ses-2", "ses-1"]);
    });

    test("ST24: sessions created at the same time are each on one page", async () => {
      const all = ["ses-a", "ses-c", "ses-b", "ses-e", "ses-d"];
      await fixture.storage.commit(
        all.map((sessionId) => creating(sessionId)),
        1,
      );
      expect((await pages(2)).flat().sort()).toEqual([...all].sort());
    });

    test("ST24: sessions are paged by status", async () => {
      for (const n of [1, 2, 3, 4]) await fixture.createIn(n % 2 === 0 ? "waiting" : "completed", `ses-${n}`);
      const query = { limit: 1, status: "waiting" } as const;
      const [first] = await fixture.storage.reader.sessions(query);
      const [second, ...more] = await fixture.storage.reader.sessions({
        ...query,
        limit: 5,
        before: first!.sessionId,
      });
      expect([first!.sessionId, second!.sessionId].sort()).toEqual(["ses-2", "ses-4"]);
      expect(more).toEqual([]);
    });

    test("ST24: sessions are paged oldest first, all of them or those of a status", async () => {
      for (const n of [1, 2, 3, 4, 5])
        await fixture.createIn(n % 2 === 0 ? "waiting" : "completed", `ses-${n}`);
      expect(await pages(2, { oldestFirst: true })).toEqual([
        ["ses-1", "ses-2"],
        ["ses-3", "ses-4"],
        ["ses-5"],
      ]);
      expect(await pages(2, { oldestFirst: true, status: "completed" })).toEqual([
        ["ses-1", "ses-3"],
        ["ses-5"],
      ]);
      expect(await pages(1, { oldestFirst: true, status: "waiting", agent: "none" })).toEqual([]);
    });

    async function pages(limit: number, query: Partial<SessionQuery> = {}): Promise<string[][]> {
      const found: string[][] = [];
      for (let before: string | undefined; ;) {
        const page = await fixture.storage.reader.sessions({ ...query, limit, ...defined({ before }) });
        if (page.length === 0) return found;
        found.push(page.map(({ sessionId }) => sessionId));
        before = page.at(-1)!.sessionId;
        expect(found.length, "the pages do not end").toBeLessThan(100);
      }
    }
  });
}

/** By type, so that a new type of record has to come here. `append_entry` needs its entry and is in ST19. */
const RECORDS: {
  readonly [T in Exclude<JournalRecord["type"], "append_entry">]: Omit<
    Extract<JournalRecord, { type: T }>,
    "seq" | "id"
  >;
} = {
  schedule_task: {
    type: "schedule_task",
    kind: "shell",
    hash: "h",
    key: "k",
    timeoutMs: 5,
    deadlineAt: 1_700_000_000_000,
    retry: { maxAttempts: 3, factor: 1.5, nonRetryable: ["a", "b"] },
    payload: '{"a":[1,{}]}',
  },
  start_timer: { type: "start_timer", fireAt: 1_700_000_000_000.5 },
  wait_signal: { type: "wait_signal", name: "go", mode: "consume", timeoutAt: 4 },
  request_input: {
    type: "request_input",
    hash: "h",
    expiresAt: 9,
    cancelAt: 10,
    payload: '{"prompt":"?"}',
  },
  take_signals: {
    type: "take_signals",
    pattern: "ci.*",
    signalIds: ["s1", "s2"],
    names: ["ci.a", "ci.b"],
    payload: "[1,2]",
  },
  record_probe: { type: "record_probe", probe: 'hasSignal:"x"', answer: false },
  spawn_child: { type: "spawn_child", agent: "child", hash: "h", handOff: true },
  tell_session: { type: "tell_session", to: "parent", name: "note", hash: "h" },
  request_parent: { type: "request_parent", name: "lookUp", hash: "h" },
  reply_child: { type: "reply_child", request: 3, hash: "h" },
  cancel_child: { type: "cancel_child", child: 2, mode: "hard" },
  enable_persistence: { type: "enable_persistence" },
  withdraw: { type: "withdraw", targets: [1, 2, 3] },
  checkpoint: {
    type: "checkpoint",
    at: 1,
    turn: 2,
    entryCount: 0,
    leaf: 0,
    schemaVersion: 3,
    base: 0,
    cancel: { deadlineAt: 4, reason: "r", cause: "parent" },
    awaited: [1, 2],
  },
  complete: { type: "complete", payload: "null" },
  fail: { type: "fail", payload: '{"name":"Error","message":"x"}' },
  started: { type: "started", at: 1 },
  task_completed: {
    type: "task_completed",
    at: 1,
    task: 0,
    attempt: 2,
    usage: { model: "m", inputTokens: 1, outputTokens: 2 },
    payload: '"out"',
  },
  task_failed: { type: "task_failed", at: 1, task: 0, attempt: 2, payload: '{"name":"E","message":"m"}' },
  timer_fired: { type: "timer_fired", at: 1, timer: 1 },
  signal_received: { type: "signal_received", at: 1, wait: 2, signalId: "sig-1", payload: '"p"' },
  signal_ready: { type: "signal_ready", at: 1, wait: 2 },
  wait_timed_out: { type: "wait_timed_out", at: 1, wait: 2 },
  wait_cancelled: { type: "wait_cancelled", at: 1, wait: 2 },
  cancel_requested: { type: "cancel_requested", at: 1, deadlineAt: 5, reason: "enough" },
  request_received: {
    type: "request_received",
    at: 1,
    child: 2,
    signalId: "sig-1",
    payload: '{"request":1}',
  },
  forked: { type: "forked", at: 1, from: "ses-0", seed: 5, tasks: "rerun" },
  attempt_failed: {
    type: "attempt_failed",
    at: 1,
    task: 0,
    attempt: 1,
    retryAt: 3,
    payload: '{"name":"E","message":"m"}',
  },
  attempt_lost: { type: "attempt_lost", at: 1, task: 0, attempt: 1 },
  outcome_kept: { type: "outcome_kept", at: 1, outcome: "task_completed", task: 0, attempt: 1, payload: "1" },
  warned: { type: "warned", at: 1, payload: '"careful"' },
  drift_accepted: { type: "drift_accepted", at: 1, positions: [4, 5] },
};

const EVERY_RECORD = Object.values(RECORDS) as readonly NewRecord[];
