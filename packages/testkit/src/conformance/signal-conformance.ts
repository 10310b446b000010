// ST8 to ST12, and ST22: arrivals at a session, their order, and their listeners.

import type { StoredSignal } from "@holdfast/core";
import { describe, expect, test } from "vitest";
import { listen } from "./arrival-listener.ts";
import {
  cancelling,
  creating,
  ENDINGS,
  INVALID,
  releasing,
  signalling,
  STARTED,
  statuses,
  type Fixture,
} from "./fixture.ts";

export function signalConformance(fixture: Fixture): void {
  const ids = (signals: readonly StoredSignal[]) => signals.map(({ signalId }) => signalId);
  const pendingIds = async (sessionId = "ses-1") =>
    ids(await fixture.storage.reader.pendingSignals(sessionId));

  describe("order", () => {
    test("ST8: signals are numbered in the order they were stored, whatever their names", async () => {
      await fixture.apply(creating("ses-1"), 0);
      const first = await fixture.apply(signalling("ses-1", "sig-z", { name: "b" }), 9);
      const [second, third] = await fixture.storage.commit(
        [signalling("ses-1", "sig-a", { name: "a" }), signalling("ses-1", "sig-m", { name: "b" })],
        3,
      );

      const orders = [first, second, third].map((result) => result?.status === "stored" && result.order);
      expect(orders).toEqual([1, 2, 3]);
      const { inbox, signals } = await fixture.storage.arrivals("ses-1", 0);
      expect(inbox).toBe(3);
      expect(signals).toEqual([
        { signalId: "sig-z", name: "b", payload: '{"ok":true}', order: 1, sentAt: 9 },
        { signalId: "sig-a", name: "a", payload: '{"ok":true}', order: 2, sentAt: 3 },
        { signalId: "sig-m", name: "b", payload: '{"ok":true}', order: 3, sentAt: 3 },
      ]);
    });

    test("ST8: arrivals are given from a number on, and stay in order when some were consumed", async () => {
      const claimant = await fixture.createClaimed();
      await fixture.storage.commit(
        [1, 2, 3, 4, 5].map((n) => signalling("ses-1", `sig-${n}`)),
        1,
      );
      await claimant.commit({ records: [STARTED], consumed: ["sig-2", "sig-4"] });

      expect(ids((await fixture.storage.arrivals("ses-1", 0)).signals)).toEqual(["sig-1", "sig-3", "sig-5"]);
      expect(ids((await fixture.storage.arrivals("ses-1", 1)).signals)).toEqual(["sig-3", "sig-5"]);
      expect(ids((await fixture.storage.arrivals("ses-1", 2)).signals)).toEqual(["sig-3", "sig-5"]);
      expect(ids((await fixture.storage.arrivals("ses-1", 5)).signals)).toEqual([]);
    });

    test("ST8: a cancel request takes a number of its own, and arrivals show it", async () => {
      await fixture.apply(creating("ses-1"), 0);
      await fixture.storage.commit(
        [
          signalling("ses-1", "sig-1"),
          cancelling("ses-1", { graceMs: 50, reason: "enough" }),
          signalling("ses-1", "sig-2"),
        ],
        10,
      );
      const { inbox, signals, session } = await fixture.storage.arrivals("ses-1", 0);
      expect(inbox).toBe(3);
      expect(signals.map(({ order }) => order)).toEqual([1, 3]);
      expect(session).toEqual({
        status: "cancelling",
        cancel: { mode: "graceful", deadlineAt: 60, reason: "enough" },
      });
    });

    test("ST8: the arrivals of a session are its own", async () => {
      await fixture.apply(creating("ses-1"), 0);
      await fixture.apply(creating("ses-2"), 0);
      await fixture.apply(signalling("ses-1", "sig-1"));
      const { inbox, signals, session } = await fixture.storage.arrivals("ses-2", 0);
      expect({ inbox, signals, session }).toEqual({
        inbox: 0,
        signals: [],
        session: { status: "submitted" },
      });
    });

    test("ST8: there are no arrivals at a session that does not exist", async () => {
      await expect(fixture.storage.arrivals("ses-none", 0)).rejects.toMatchObject({
        code: "session_not_found",
      });
    });

    test("ST8: a signal without a payload has none", async () => {
      await fixture.apply(creating("ses-1"), 0);
      await fixture.apply(signalling("ses-1", "sig-1", { payload: undefined }));
      expect((await fixture.storage.arrivals("ses-1", 0)).signals[0]!.payload).toBeUndefined();
    });
  });

  describe("once", () => {
    test("ST9: a signal id that is sent twice is stored once, and the first one counts", async () => {
      await fixture.apply(creating("ses-1"), 0);
      await fixture.apply(signalling("ses-1", "sig-1", { payload: "1" }));
      const before = await fixture.everything("ses-1");
      expect(await fixture.apply(signalling("ses-1", "sig-1", { payload: "2", name: "other" }))).toEqual({
        status: "duplicate",
      });
      expect(await fixture.everything("ses-1")).toEqual(before);
    });

    test("ST9: a dedup key that is sent twice is stored once, under whatever ids", async () => {
      await fixture.apply(creating("ses-1"), 0);
      expect(await fixture.apply(signalling("ses-1", "sig-1", { dedupKey: "push-7" }))).toMatchObject({
        status: "stored",
      });
      expect(await fixture.apply(signalling("ses-1", "sig-2", { dedupKey: "push-7" }))).toEqual({
        status: "duplicate",
      });
      expect(await fixture.apply(signalling("ses-1", "sig-2", { dedupKey: "push-8" }))).toMatchObject({
        status: "stored",
      });
      expect(await pendingIds()).toEqual(["sig-1", "sig-2"]);
    });

    // A key that somebody chose for a signal of theirs must not swallow the answer to a question.
    test("ST9: a dedup key counts for signals of one name", async () => {
      const claimant = await fixture.createClaimed();
      await fixture.apply(signalling("ses-1", "sig-1", { name: "a", dedupKey: "b" }));
      const others = [
        signalling("ses-1", "sig-2", { name: "answer:0", dedupKey: "b" }),
        signalling("ses-1", "sig-3", { name: "ab", dedupKey: "" }),
        signalling("ses-1", "sig-4", { name: "", dedupKey: "ab" }),
      ];
      expect(statuses(await fixture.storage.commit(others, 1))).toEqual(["stored", "stored", "stored"]);
      await claimant.commit({ records: [STARTED], consumed: ["sig-1", "sig-2"] });
      for (const name of ["a", "answer:0"]) {
        expect(await fixture.apply(signalling("ses-1", "sig-5", { name, dedupKey: "b" }))).toEqual({
          status: "duplicate",
        });
      }
    });

    test("ST9: a refused duplicate does not use up the id it came with", async () => {
      await fixture.apply(creating("ses-1"), 0);
      await fixture.apply(signalling("ses-1", "sig-1", { dedupKey: "push-7" }));
      await fixture.apply(signalling("ses-1", "sig-2", { dedupKey: "push-7" }));
      expect(await fixture.apply(signalling("ses-1", "sig-2"))).toMatchObject({ status: "stored" });
    });

    test("ST9: twice in one group is once", async () => {
      await fixture.apply(creating("ses-1"), 0);
      const twice = [
        signalling("ses-1", "sig-1", { dedupKey: "k" }),
        signalling("ses-1", "sig-2", { dedupKey: "k" }),
      ];
      expect(statuses(await fixture.storage.commit(twice, 1))).toEqual(["stored", "duplicate"]);
      expect(await pendingIds()).toEqual(["sig-1"]);
    });

    // A webhook is delivered again an hour later. The agent has long acted on it.
    test("ST9: a signal that was consumed is a duplicate still, by its id and by its key", async () => {
      const claimant = await fixture.createClaimed();
      await fixture.apply(signalling("ses-1", "sig-1", { dedupKey: "push-7" }));
      await claimant.commit({ records: [STARTED], consumed: ["sig-1"] });
      expect(await fixture.apply(signalling("ses-1", "sig-1"))).toEqual({ status: "duplicate" });
      expect(await fixture.apply(signalling("ses-1", "sig-2", { dedupKey: "push-7" }))).toEqual({
        status: "duplicate",
      });
      expect(await pendingIds()).toEqual([]);
    });

    test("ST9: sessions do not share ids or keys", async () => {
      await fixture.apply(creating("ses-1"), 0);
      await fixture.apply(creating("ses-2"), 0);
      await fixture.apply(signalling("ses-1", "sig-1", { dedupKey: "k" }));
      expect(await fixture.apply(signalling("ses-2", "sig-1", { dedupKey: "k" }))).toMatchObject({
        status: "stored",
        order: 1,
      });
    });

    test("ST10: a consumed signal is never given again", async () => {
      const claimant = await fixture.createClaimed();
      await fixture.apply(signalling("ses-1", "sig-1"));
      await fixture.apply(signalling("ses-1", "sig-2"));
      await claimant.commit({ records: [STARTED], consumed: ["sig-1"] });
      expect(await pendingIds()).toEqual(["sig-2"]);
      expect(ids((await fixture.storage.arrivals("ses-1", 0)).signals)).toEqual(["sig-2"]);
      expect(ids((await fixture.storage.load("ses-1"))!.signals)).toEqual(["sig-2"]);
    });

    test("ST10: a batch that consumes what another one consumed is invalid", async () => {
      const claimant = await fixture.createClaimed();
      await fixture.apply(signalling("ses-1", "sig-1"));
      await claimant.commit({ records: [STARTED], consumed: ["sig-1"] });
      expect(await claimant.commit({ records: [STARTED], consumed: ["sig-1"] })).toEqual(INVALID);
      expect((await fixture.session("ses-1")).nextSeq).toBe(1);
    });

    test("ST10: a batch that consumes one signal twice is invalid, and leaves it pending", async () => {
      const claimant = await fixture.createClaimed();
      await fixture.apply(signalling("ses-1", "sig-1"));
      expect(await claimant.commit({ records: [STARTED], consumed: ["sig-1", "sig-1"] })).toEqual(INVALID);
      expect(await pendingIds()).toEqual(["sig-1"]);
    });

    test("ST10: a batch that consumes another session's signal is invalid", async () => {
      const claimant = await fixture.createClaimed("ses-1");
      await fixture.apply(creating("ses-2"), 0);
      await fixture.apply(signalling("ses-2", "sig-1"));
      expect(await claimant.commit({ records: [STARTED], consumed: ["sig-1"] })).toEqual(INVALID);
      expect(await pendingIds("ses-2")).toEqual(["sig-1"]);
    });
  });

  describe("nowhere to go", () => {
    for (const status of ENDINGS) {
      test(`ST11: a signal to a session that is ${status} is told so`, async () => {
        await fixture.createIn(status);
        const before = await fixture.session("ses-1");
        expect(await fixture.apply(signalling("ses-1", "sig-1"))).toEqual({
          status: "ended",
          sessionStatus: status,
        });
        expect(await fixture.session("ses-1")).toEqual(before);
      });
    }

    test("ST11: a signal to a session that does not exist is not found, and makes none", async () => {
      expect(await fixture.apply(signalling("ses-none", "sig-1"))).toEqual({ status: "not_found" });
      expect(await fixture.storage.load("ses-none")).toBeUndefined();
    });

    test("ST11: no other change finds a session that does not exist either", async () => {
      const claimant = await fixture.createClaimed("ses-1");
      const results = await fixture.storage.commit(
        [
          cancelling("ses-none"),
          { ...claimant.batch({ records: [STARTED] }), sessionId: "ses-none" },
          releasing({ sessionId: "ses-none", token: 1 }),
        ],
        1,
      );
      expect(statuses(results)).toEqual(["not_found", "not_found", "not_found"]);
    });
  });

  describe("the inbox", () => {
    test("ST12: every signal that is stored raises the inbox by one, and no other does", async () => {
      await fixture.apply(creating("ses-1"), 0);
      await fixture.apply(signalling("ses-1", "sig-1"));
      await fixture.apply(signalling("ses-1", "sig-1"));
      await fixture.apply(signalling("ses-1", "sig-2"));
      expect((await fixture.session("ses-1")).inbox).toBe(2);
    });

    test("ST12: a cancel request raises the inbox, the same one again does not", async () => {
      await fixture.apply(creating("ses-1"), 0);
      await fixture.apply(cancelling("ses-1"));
      await fixture.apply(cancelling("ses-1"));
      expect((await fixture.session("ses-1")).inbox).toBe(1);
      await fixture.apply(cancelling("ses-1", { mode: "hard" }));
      expect((await fixture.session("ses-1")).inbox).toBe(2);
    });

    // The agent decides to wait for "go"; while its batch is on the way, "go" arrives. If the answer did not
    // say so, the session would sleep on a signal it already has.
    test("ST12: a batch is answered with the inbox as it stands in its own transaction", async () => {
      const claimant = await fixture.createClaimed();
      const first = claimant.batch({ records: [STARTED], session: { status: "working" } });
      const [, committed] = await fixture.storage.commit([signalling("ses-1", "sig-1"), first], 1);
      expect(committed).toEqual({ status: "committed", inbox: 1 });

      claimant.follow(first);
      await fixture.apply(signalling("ses-1", "sig-2"));
      expect(await claimant.commit({ records: [STARTED] })).toEqual({ status: "committed", inbox: 2 });
    });

    test("ST12: consuming does not lower the inbox", async () => {
      const claimant = await fixture.createClaimed();
      await fixture.apply(signalling("ses-1", "sig-1"));
      expect(await claimant.commit({ records: [STARTED], consumed: ["sig-1"] })).toEqual({
        status: "committed",
        inbox: 1,
      });
      expect(await fixture.apply(signalling("ses-1", "sig-2"))).toMatchObject({ order: 2 });
    });

    // Only what a session waits for makes a run; everything else is kept until somebody asks for it (S2).
    const sessionIn = (status: "working" | "waiting" | "input_required" | "paused", name: string) => ({
      status,
      name,
    });
    for (const { status, name, awaited } of [
      { ...sessionIn("working", "go"), awaited: true },
      { ...sessionIn("waiting", "go"), awaited: true },
      { ...sessionIn("waiting", "other"), awaited: false },
      { ...sessionIn("input_required", "answer:0"), awaited: true },
      { ...sessionIn("input_required", "go"), awaited: false },
      { ...sessionIn("paused", "go"), awaited: false },
    ]) {
      test(`ST12: a signal "${name}" to a session that is ${status} is stored${awaited ? " and awaited" : ", not awaited"}`, async () => {
        await fixture.createIn(status);
        expect(await fixture.apply(signalling("ses-1", "sig-1", { name }))).toEqual({
          status: "stored",
          order: 1,
          awaited,
        });
      });
    }
  });

  describe("listening", () => {
    test("ST22: a listener hears of a signal, and whether it was awaited", async () => {
      await fixture.createIn("waiting");
      const listener = listen(fixture);
      await fixture.apply(signalling("ses-1", "sig-1", { name: "other" }));
      await fixture.apply(signalling("ses-1", "sig-2", { name: "go" }));
      expect(await listener.received(2)).toEqual([
        { sessionId: "ses-1", awaited: false },
        { sessionId: "ses-1", awaited: true },
      ]);
    });

    // A process that runs it must stop, and another one must let the agent clean up. Both need the notice.
    test("ST22: a listener hears of a cancel request, also at a session that is paused", async () => {
      await fixture.createIn("paused");
      const listener = listen(fixture);
      await fixture.apply(cancelling("ses-1"));
      await fixture.apply(cancelling("ses-1", { mode: "hard" }));
      expect(await listener.received(2)).toEqual([
        { sessionId: "ses-1", awaited: true },
        { sessionId: "ses-1", awaited: true },
      ]);
    });

    test("ST22: a listener hears when a cancel's deadline ended a session", async () => {
      await fixture.createIn("waiting");
      await fixture.apply(cancelling("ses-1", { graceMs: 10 }), 0);
      const listener = listen(fixture);
      await fixture.storage.due({ now: 10, limit: 10 });
      expect(await listener.received(1)).toEqual([{ sessionId: "ses-1", awaited: true }]);
    });

    test("ST22: a listener hears nothing of what changed nothing", async () => {
      await fixture.createIn("completed", "ses-ended");
      await fixture.apply(creating("ses-1"), 0);
      await fixture.apply(signalling("ses-1", "sig-1"));
      await fixture.apply(cancelling("ses-1"));
      const listener = listen(fixture);

      await fixture.storage.commit(
        [
          signalling("ses-1", "sig-1"),
          cancelling("ses-1"),
          signalling("ses-ended", "sig-2"),
          cancelling("ses-ended", { mode: "hard" }),
          signalling("ses-none", "sig-3"),
          creating("ses-2"),
          signalling("ses-2", "sig-4"),
        ],
        1,
      );

      expect(await listener.received(1)).toEqual([{ sessionId: "ses-2", awaited: true }]);
    });

    test("ST22: a listener can read an arrival when it is notified", async () => {
      await fixture.apply(creating("ses-1"), 0);
      const seen: Promise<readonly StoredSignal[]>[] = [];
      const listener = listen(fixture, () => seen.push(readSoon(fixture)));
      await fixture.apply(signalling("ses-1", "sig-1"));
      await listener.received(1);
      expect(ids(await seen[0]!)).toEqual(["sig-1"]);
    });

    test("ST22: every listener hears, and none after it unsubscribed", async () => {
      await fixture.apply(creating("ses-1"), 0);
      const left = listen(fixture);
      const stays = listen(fixture);
      await fixture.apply(signalling("ses-1", "sig-1"));
      expect(await left.received(1)).toEqual(await stays.received(1));
      left.unsubscribe();
      await fixture.apply(signalling("ses-1", "sig-2"));
      expect(await stays.received(2)).toHaveLength(2);
      expect(await left.received(1)).toHaveLength(1);
    });
  });
}

/** Not from inside the listener, which must not call back. */
async function readSoon(fixture: Fixture): Promise<readonly StoredSignal[]> {
  await Promise.resolve();
  return fixture.storage.reader.pendingSignals("ses-1");
}
