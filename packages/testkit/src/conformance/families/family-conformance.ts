// ST26 and ST27: what a batch does to other sessions, and what a change means for those above and below it. A
// child nobody hears of runs and is paid for; an end nobody hears of is waited for without end.

import type { Effect, RequestCancel, SessionPatch } from "@holdfast/core";
import { describe, expect, test } from "vitest";
import { listen } from "../arrival-listener.ts";
import {
  cancelling,
  creating,
  ENDINGS,
  INVALID,
  PATCH_TO,
  pausing,
  scheduling,
  signalling,
  spawning,
  STARTED,
  statuses,
  type Claimant,
  type Fixture,
} from "../fixture.ts";

export function familyConformance(fixture: Fixture): void {
  const statusOf = async (sessionId: string) => (await fixture.session(sessionId)).status;
  const childOf = (parent: string, sessionId: string, onEnd: "cancel" | "wait" | "leave" = "cancel") =>
    creating(sessionId, { parent: { sessionId: parent, child: 0, onEnd }, depth: 1 });

  /** Root, child and grandchild, each claimed. */
  async function grow(): Promise<{ root: Claimant; child: Claimant; grandchild: Claimant }> {
    const root = await fixture.createClaimed("ses-root");
    const child = await fixture.spawn(root, "ses-child");
    return { root, child, grandchild: await fixture.spawn(child, "ses-grandchild") };
  }

  describe("effects", () => {
    test("ST26: effects are applied with their batch, in order", async () => {
      const parent = await fixture.createClaimed("ses-parent");
      const effects: Effect[] = [
        childOf("ses-parent", "ses-child"),
        signalling("ses-child", "sig-1", { name: "first" }),
        signalling("ses-child", "sig-2", { name: "second" }),
        cancelling("ses-child", { graceMs: 50, cause: "parent" }),
      ];
      expect(await parent.commit({ records: [spawning("agent")], effects })).toMatchObject({
        status: "committed",
      });
      const child = await fixture.session("ses-child");
      expect(child).toMatchObject({
        status: "cancelling",
        parent: { sessionId: "ses-parent", child: 0, onEnd: "cancel" },
        depth: 1,
        inbox: 3,
        cancel: { cause: "parent", deadlineAt: 51 },
      });
      expect((await fixture.sent("ses-child")).map(([name]) => name)).toEqual(["first", "second"]);
      expect((await fixture.session("ses-parent")).children).toBe(1);
    });

    test("ST26: a batch that is refused has no effects", async () => {
      const parent = await fixture.createClaimed("ses-parent");
      const effects = [childOf("ses-parent", "ses-child")];
      expect(await parent.commit({ effects, consumed: ["sig-none"] })).toEqual(INVALID);
      expect(await fixture.apply({ ...parent.batch({ effects }), token: parent.token - 1 })).toEqual({
        status: "fenced",
      });
      expect(await fixture.storage.reader.session("ses-child")).toBeUndefined();
      expect((await fixture.session("ses-parent")).children).toBe(0);
    });

    test("ST26: sent again, none is applied again, also when its target has gone on", async () => {
      const parent = await fixture.createClaimed("ses-parent");
      await fixture.apply(creating("ses-other"));
      const batch = parent.batch({
        records: [spawning("agent")],
        effects: [childOf("ses-parent", "ses-child"), signalling("ses-other", "sig-1")],
      });
      await fixture.apply(batch);
      const other = await fixture.claim("ses-other", "owner-1", 1);
      await other.commit({ records: [STARTED], consumed: ["sig-1"] });
      const before = [await fixture.everything("ses-child"), await fixture.everything("ses-other")];
      expect(await fixture.apply(batch, 9)).toMatchObject({ status: "committed" });
      expect([await fixture.everything("ses-child"), await fixture.everything("ses-other")]).toEqual(before);
      expect((await fixture.session("ses-parent")).children).toBe(1);
    });

    test("ST26: an effect on a session that has ended or never was does nothing, and refuses nothing", async () => {
      await fixture.createIn("completed", "ses-ended");
      const before = await fixture.everything("ses-ended");
      const parent = await fixture.createClaimed("ses-parent");
      const effects = [
        signalling("ses-ended", "sig-1"),
        cancelling("ses-ended"),
        signalling("ses-none", "sig-2"),
        cancelling("ses-none", { mode: "hard" }),
        creating("ses-ended"),
        signalling("ses-parent", "sig-3"),
      ];
      expect(await parent.commit({ records: [STARTED], effects })).toMatchObject({ status: "committed" });
      expect(await fixture.everything("ses-ended")).toEqual(before);
      expect(await fixture.storage.reader.session("ses-none")).toBeUndefined();
      expect(await fixture.sent("ses-parent")).toEqual([["go", { ok: true }]]);
    });

    test("ST26: a child whose id another session has is told as one that failed, and the other one is left as it is", async () => {
      await fixture.createIn("waiting", "ses-other");
      const parent = await fixture.createClaimed("ses-parent");
      const before = await fixture.everything("ses-other");
      const creation = { records: [spawning("agent")], effects: [childOf("ses-parent", "ses-other")] };
      expect(await parent.commit(creation)).toEqual({ status: "committed", inbox: 2 });
      expect(await fixture.everything("ses-other")).toEqual(before);
      const failed = {
        type: "failed",
        error: expect.objectContaining({ code: "session_exists" }) as unknown,
      };
      expect(await fixture.sent("ses-parent")).toEqual([
        ["child:0", failed],
        ["child-end:0", failed],
      ]);
      const own = childOf("ses-parent", "ses-child");
      await parent.commit({ records: [STARTED], effects: [own, own] });
      expect(await fixture.sent("ses-parent")).toHaveLength(2);
    });

    test("ST26: a child is counted once when the batch that creates it is sent again without records", async () => {
      await fixture.apply(creating("ses-parent", { persistence: "ephemeral" }));
      const parent = await fixture.claim("ses-parent", "owner-1", 1, Infinity);
      const creation = { records: [], effects: [childOf("ses-parent", "ses-child")] };
      await parent.commit(creation);
      await parent.commit(creation);
      expect(await fixture.sent("ses-parent")).toEqual([]);
      expect((await fixture.session("ses-parent")).children).toBe(1);
    });

    test("ST26: a request to a child reaches no other session that has its id", async () => {
      await fixture.apply(creating("ses-parent-0"));
      await fixture.apply(
        creating("ses-parent-1", { parent: { sessionId: "ses-parent", child: 7, onEnd: "cancel" } }),
      );
      const parent = await fixture.createClaimed("ses-parent");
      const before = [await fixture.everything("ses-parent-0"), await fixture.everything("ses-parent-1")];
      const ask = (sessionId: string) => [
        signalling(sessionId, "sig-1"),
        signalling(sessionId, "sig-2", { name: "reply:1" }),
        cancelling(sessionId, { mode: "hard" }),
      ];
      const effects = [...ask("ses-parent-0"), ...ask("ses-parent-1")];
      expect(await parent.commit({ records: [STARTED], effects })).toMatchObject({ status: "committed" });
      expect([await fixture.everything("ses-parent-0"), await fixture.everything("ses-parent-1")]).toEqual(
        before,
      );
      await fixture.apply(
        creating("ses-parent-2", { parent: { sessionId: "ses-parent", child: 2, onEnd: "cancel" } }),
      );
      await parent.commit({ records: [STARTED], effects: [signalling("ses-parent-2", "sig-1")] });
      expect(await fixture.sent("ses-parent-2")).toHaveLength(1);
    });

    test("ST27: a request to a parent that has ended, or is not here, is answered in the batch that asks", async () => {
      await fixture.createIn("completed", "ses-ended");
      const child = await fixture.createClaimed("ses-child");
      const asking = (to: string, request: number) =>
        signalling(to, `ses-child-${request}`, { name: "request:0" });
      const effects = [asking("ses-ended", 4), asking("ses-none", 5)];
      expect(await child.commit({ records: [STARTED], effects })).toEqual({ status: "committed", inbox: 2 });
      const sent = [
        ["reply:4", { ended: "ses-ended" }],
        ["reply:5", { ended: "ses-none" }],
      ];
      expect(await fixture.sent("ses-child")).toEqual(sent);
    });

    test("ST27: an end answers what the children that go on still wait for", async () => {
      const parent = await fixture.createClaimed("ses-parent");
      const left = await fixture.spawn(parent, "ses-left", {
        parent: { sessionId: "ses-parent", child: 0, onEnd: "leave" },
      });
      const waits = [
        { type: "signal", id: 7, name: "reply:7" },
        { type: "signal", id: 8, name: "go" },
      ] as const;
      await left.commit({ records: [STARTED], session: { status: "waiting", waits } });
      await parent.commit({ session: PATCH_TO.completed });
      expect(await fixture.sent("ses-left")).toEqual([["reply:7", { ended: "ses-parent" }]]);
      expect(await statusOf("ses-left")).toBe("waiting");
    });

    // S2: the holder compares this number with the arrivals that it has seen.
    test("ST26: a batch answers the inbox as its effects leave it", async () => {
      const parent = await fixture.createClaimed("ses-parent");
      const effects = [signalling("ses-parent", "sig-1"), signalling("ses-parent", "sig-2")];
      expect(await parent.commit({ records: [STARTED], effects })).toEqual({ status: "committed", inbox: 2 });
    });

    test("ST26: neighbours in the group see what a batch did to others", async () => {
      const parent = await fixture.createClaimed("ses-parent");
      const results = await fixture.storage.commit(
        [
          signalling("ses-child", "sig-early"),
          parent.batch({ records: [spawning("agent")], effects: [childOf("ses-parent", "ses-child")] }),
          creating("ses-child"),
          signalling("ses-child", "sig-1"),
          cancelling("ses-child", { mode: "hard" }),
          signalling("ses-child", "sig-2"),
        ],
        1,
      );
      expect(statuses(results)).toEqual(["not_found", "committed", "exists", "stored", "requested", "ended"]);
      expect((await fixture.sent("ses-parent"))[0]).toEqual(["child:0", { type: "cancelled", reason: null }]);
    });

    test("ST26: an effect cannot claim, because nobody would hear of the token", async () => {
      const parent = await fixture.createClaimed("ses-parent");
      const claimFor = { owner: "owner-1", leaseMs: 1_000 };
      const effects = [creating("ses-child", { claimFor })];
      expect(await parent.commit({ records: [STARTED], effects })).toEqual(INVALID);
      expect(await fixture.storage.reader.session("ses-child")).toBeUndefined();
    });

    test("ST26: a first batch has effects too", async () => {
      const claimFor = { owner: "owner-1", leaseMs: Infinity };
      const first = {
        records: [{ type: "spawn_child", seq: 0, id: 0, agent: "agent", hash: "h" }] as const,
        entries: [],
        effects: [childOf("ses-parent", "ses-child")],
      };
      await fixture.apply(creating("ses-parent", { claimFor, first }));
      expect((await fixture.session("ses-child")).parent?.sessionId).toBe("ses-parent");
      expect((await fixture.session("ses-parent")).children).toBe(1);
      expect(await fixture.apply(creating("ses-parent", { claimFor, first }))).toEqual({ status: "exists" });
    });

    test("ST22: listeners hear of every session an effect or a consequence touches", async () => {
      const { root } = await grow();
      await fixture.apply(creating("ses-other"));
      const listener = listen(fixture);
      await root.commit({
        records: [spawning("agent")],
        effects: [childOf("ses-root", "ses-new"), signalling("ses-other", "sig-1")],
      });
      await fixture.apply(cancelling("ses-root"));
      const received = await listener.received(6);
      expect(received.map(({ sessionId, awaited }) => [sessionId, awaited])).toEqual([
        ["ses-new", true],
        ["ses-other", true],
        ["ses-root", true],
        ["ses-child", true],
        ["ses-grandchild", true],
        ["ses-new", true],
      ]);
    });
  });

  describe("above", () => {
    const endings: readonly [string, SessionPatch, object][] = [
      ["completed", PATCH_TO.completed, { type: "completed", output: "done" }],
      ["failed", { ...PATCH_TO.failed, progress: "7" }, { type: "failed", progress: 7 }],
      ["cancelled", { ...PATCH_TO.cancelled, output: '"part"' }, { type: "cancelled", output: "part" }],
    ];
    for (const [ending, session, sent] of endings) {
      test(`ST27: a child that is ${ending} tells its parent, under its number, once`, async () => {
        const parent = await fixture.createClaimed("ses-parent");
        const child = await fixture.spawn(parent, "ses-child");
        const batch = child.batch({ records: [STARTED], session });
        await fixture.apply(batch);
        const expected = [
          ["child:0", expect.objectContaining(sent)],
          ["child-end:0", expect.objectContaining(sent)],
        ];
        expect(await fixture.sent("ses-parent")).toEqual(expected);
        await fixture.apply(batch);
        await fixture.apply(cancelling("ses-child", { mode: "hard" }));
        await fixture.storage.due({ now: 1_000_000, limit: 10 });
        expect(await fixture.sent("ses-parent")).toEqual(expected);
      });
    }

    test("ST27: the parent is notified of a cancel that the child's agent never received", async () => {
      const parent = await fixture.createClaimed("ses-parent");
      await fixture.spawn(parent, "ses-hard");
      await fixture.spawn(parent, "ses-late");
      await fixture.apply(cancelling("ses-hard", { mode: "hard", reason: "enough" }));
      await fixture.apply(cancelling("ses-late", { graceMs: 10, reason: "slowly" }));
      expect(await fixture.sent("ses-parent")).toHaveLength(2);
      await fixture.storage.due({ now: 100, limit: 10 });
      expect(await fixture.sent("ses-parent")).toEqual([
        ["child:0", { type: "cancelled", reason: "enough" }],
        ["child-end:0", { type: "cancelled", reason: "enough" }],
        ["child:1", { type: "cancelled", reason: "slowly" }],
        ["child-end:1", { type: "cancelled", reason: "slowly" }],
      ]);
    });

    test("ST27: a waiting parent is due when its child has ended", async () => {
      const parent = await fixture.createClaimed("ses-parent");
      const child = await fixture.spawn(parent, "ses-child");
      await parent.commit({
        session: { status: "waiting", waits: [{ type: "signal", id: 3, name: "child-end:0" }] },
      });
      await parent.release();
      expect((await fixture.storage.due({ now: 1, limit: 10 })).sessionIds).toEqual([]);
      await child.commit({ session: PATCH_TO.completed });
      expect((await fixture.storage.due({ now: 1, limit: 10 })).sessionIds).toEqual(["ses-parent"]);
    });

    test("ST27: a session with a successor tells nothing; the successor tells in its place", async () => {
      const parent = await fixture.createClaimed("ses-parent");
      const child = await fixture.spawn(parent, "ses-child");
      const origin = { sessionId: "ses-parent", child: 0, onEnd: "cancel" } as const;
      await child.commit({
        records: [spawning("agent")],
        effects: [creating("ses-heir", { parent: origin })],
        session: { ...PATCH_TO.completed, handedOffTo: "ses-heir" },
      });
      expect(await fixture.session("ses-child")).toMatchObject({
        status: "completed",
        handedOffTo: "ses-heir",
        children: 0,
      });
      expect(await fixture.sent("ses-parent")).toEqual([]);
      const claimant = await fixture.claim("ses-heir", "owner-1", 2);
      await claimant.commit({ session: PATCH_TO.completed });
      expect((await fixture.sent("ses-parent")).map(([name]) => name)).toEqual(["child:0", "child-end:0"]);
    });

    test("ST26: a signal to a session with a successor reaches the successor, and so on", async () => {
      const parent = await fixture.createClaimed("ses-parent");
      const child = await fixture.spawn(parent, "ses-child");
      const below = { sessionId: "ses-parent", child: 0, onEnd: "cancel" } as const;
      await child.commit({
        records: [spawning("agent")],
        effects: [creating("ses-heir", { parent: below })],
        session: { ...PATCH_TO.completed, handedOffTo: "ses-heir" },
      });
      const successor = await fixture.claim("ses-heir", "owner-1", 2);
      await successor.commit({
        records: [spawning("agent")],
        effects: [creating("ses-last", { parent: below })],
        session: { ...PATCH_TO.completed, handedOffTo: "ses-last" },
      });
      await parent.commit({
        records: [STARTED],
        effects: [
          signalling("ses-child", "sig-1", { name: "word" }),
          signalling("ses-child", "sig-2", { name: "reply:1" }),
        ],
      });
      const signals = await fixture.storage.reader.pendingSignals("ses-last");
      expect(signals.map(({ name }) => name)).toEqual(["word"]);
      await parent.commit({ records: [STARTED], effects: [cancelling("ses-child", { graceMs: 100 })] });
      expect(await fixture.session("ses-last")).toMatchObject({ status: "cancelling" });
    });

    test("ST27: a pause is told to the parent, each time, and a pause of one that is paused is not", async () => {
      const parent = await fixture.createClaimed("ses-parent");
      const child = await fixture.spawn(parent, "ses-child");
      await fixture.apply(pausing("ses-child"));
      await fixture.apply(pausing("ses-child"));
      await fixture.apply({ type: "resume_session", sessionId: "ses-child" });
      await child.commit({ records: [STARTED], session: { status: "paused", pauseReason: "poison" } });
      expect(await fixture.sent("ses-parent")).toEqual([
        ["child:0", { type: "blocked", reason: "by_user" }],
        ["child:0", { type: "blocked", reason: "poison" }],
      ]);
    });

    test("ST27: a cancel because of a budget is told with the limit, and then the end it comes to", async () => {
      const parent = await fixture.createClaimed("ses-parent");
      const child = await fixture.spawn(parent, "ses-child");
      const exhausted = { payer: "ses-child", limit: "maxTokens", used: 3, max: 5, then: "cancel" } as const;
      const why = { cause: "budget_exceeded", exhausted } as const;
      expect(await fixture.apply(cancelling("ses-child", why))).toMatchObject({ status: "requested" });
      await fixture.apply(cancelling("ses-child", why));
      expect((await fixture.session("ses-child")).cancel).toMatchObject(why);
      await child.commit({ session: { status: "cancelled" } });
      const limit = { type: "budget_exceeded", limit: "maxTokens", used: 3, max: 5 };
      const end = { type: "cancelled", reason: "budget_exceeded", cause: "budget_exceeded" };
      const sent = (await fixture.sent("ses-parent")).map(([, event]) => event);
      expect(sent, "the end is an event and an end to wait for").toEqual([limit, end, end]);
    });

    test("ST27: a signal of a child to a parent that has ended is lost, and harms nothing", async () => {
      const { root, child } = await grow();
      const left = await fixture.spawn(root, "ses-left", {
        parent: { sessionId: "ses-root", child: 1, onEnd: "leave" },
      });
      await root.commit({ session: PATCH_TO.completed });
      expect(await statusOf("ses-left")).toBe("submitted");
      expect(await left.commit({ session: PATCH_TO.completed })).toMatchObject({ status: "committed" });
      expect(await child.commit({ session: PATCH_TO.failed })).toMatchObject({ status: "committed" });
      expect(await fixture.storage.reader.pendingSignals("ses-root")).toEqual([]);
    });
  });

  describe("below", () => {
    for (const ending of ENDINGS) {
      test(`ST27: when a session is ${ending}, its children are cancelled, but those to be left`, async () => {
        const parent = await fixture.createClaimed("ses-parent");
        for (const onEnd of ["cancel", "wait", "leave"] as const) {
          await fixture.spawn(parent, `ses-${onEnd}`, {
            parent: { sessionId: "ses-parent", child: parent.nextSeq, onEnd },
          });
        }
        await parent.commit({ session: PATCH_TO[ending] }, 5);
        expect(await fixture.session("ses-cancel")).toMatchObject({
          status: "cancelling",
          cancel: { mode: "graceful", cause: "parent" },
        });
        expect(await statusOf("ses-wait")).toBe("cancelling");
        expect(await statusOf("ses-leave")).toBe("submitted");
      });
    }

    test("ST27: a graceful cancel reaches the whole tree, with one deadline", async () => {
      const { child } = await grow();
      await fixture.spawn(child, "ses-left", {
        parent: { sessionId: "ses-child", child: 9, onEnd: "leave" },
      });
      await fixture.apply(cancelling("ses-root", { graceMs: 100 }), 5);
      for (const sessionId of ["ses-root", "ses-child", "ses-grandchild", "ses-left"]) {
        expect((await fixture.session(sessionId)).cancel, sessionId).toMatchObject({
          mode: "graceful",
          deadlineAt: 105,
        });
      }
      expect(await statusOf("ses-grandchild")).toBe("cancelling");
      await fixture.storage.due({ now: 105, limit: 1 });
      for (const sessionId of ["ses-root", "ses-child", "ses-grandchild", "ses-left"])
        expect(await statusOf(sessionId), sessionId).toBe("cancelled");
    });

    test("ST27: a hard cancel ends the whole tree at once, also after a graceful one", async () => {
      const hard: Partial<RequestCancel> = { mode: "hard" };
      await grow();
      await fixture.apply(cancelling("ses-root", { graceMs: 100, reason: "slowly" }), 5);
      await fixture.apply(cancelling("ses-root", hard), 6);
      for (const sessionId of ["ses-root", "ses-child", "ses-grandchild"])
        expect(await fixture.session(sessionId)).toMatchObject({ status: "cancelled", endedAt: 6 });
      expect((await fixture.session("ses-root")).cancel?.reason).toBe("slowly");
    });

    // A cancel covers all sessions that were begun on behalf of a session, even when those in between have
    // ended.
    test("ST27: a cancel reaches the sessions that an ended child had left running", async () => {
      const { child } = await grow();
      await fixture.spawn(child, "ses-left", {
        parent: { sessionId: "ses-child", child: 9, onEnd: "leave" },
      });
      await child.commit({ session: PATCH_TO.completed });
      expect(await statusOf("ses-left")).toBe("submitted");
      await fixture.apply(cancelling("ses-root"));
      expect(await statusOf("ses-left")).toBe("cancelling");
    });

    // The agent hears of its cancel after the batch it was just making: what that asks for is below all the
    // same.
    for (const onEnd of ["cancel", "wait", "leave"] as const) {
      test(`ST27: a cancel reaches what is asked for after it, to ${onEnd} at the end`, async () => {
        const parent = await fixture.createClaimed("ses-parent");
        await fixture.apply(cancelling("ses-parent", { graceMs: 100 }), 5);
        const child = { sessionId: "ses-parent", child: 0, onEnd };
        await parent.commit(
          { records: [spawning("agent")], effects: [creating("ses-child", { parent: child })] },
          7,
        );
        const cancel = { mode: "graceful", deadlineAt: 105, cause: "parent" };
        expect(await fixture.session("ses-child")).toMatchObject({ status: "cancelling", cancel });
      });
    }

    test("ST27: a cancel reaches the one that takes over after it", async () => {
      const { child } = await grow();
      await fixture.apply(cancelling("ses-child", { graceMs: 100 }), 5);
      await child.commit({
        records: [spawning("agent")],
        effects: [childOf("ses-root", "ses-heir")],
        session: { ...PATCH_TO.cancelled, handedOffTo: "ses-heir" },
      });
      expect(await statusOf("ses-heir")).toBe("cancelling");
      expect(await statusOf("ses-root")).toBe("submitted");
    });

    test("ST27: a cancel within the tree does not reach above or beside it", async () => {
      const { root } = await grow();
      await fixture.spawn(root, "ses-sibling");
      await fixture.apply(cancelling("ses-child", { mode: "hard" }));
      expect(await statusOf("ses-grandchild")).toBe("cancelled");
      expect(await statusOf("ses-root")).toBe("submitted");
      expect(await statusOf("ses-sibling")).toBe("submitted");
    });

    test("ST27: a batch that spawns and ends cancels what it spawned", async () => {
      const parent = await fixture.createClaimed("ses-parent");
      await parent.commit({
        records: [spawning("agent")],
        effects: [childOf("ses-parent", "ses-child")],
        session: PATCH_TO.completed,
      });
      expect(await statusOf("ses-child")).toBe("cancelling");
    });

    test("ST27: a group is answered one by one, also when an earlier change ended the session of a later one", async () => {
      const { child } = await grow();
      const results = await fixture.storage.commit(
        [
          cancelling("ses-root", { mode: "hard" }),
          child.batch({ records: [scheduling("a")] }),
          signalling("ses-grandchild", "sig-1"),
          creating("ses-neighbour"),
        ],
        1,
      );
      expect(statuses(results)).toEqual(["requested", "invalid", "ended", "created"]);
    });
  });

  describe("reading", () => {
    test("ST24: children are read by their parent, newest first and by status", async () => {
      const { root } = await grow();
      for (const n of [1, 2, 3]) await fixture.spawn(root, `ses-${n}`);
      await fixture.apply(cancelling("ses-2", { mode: "hard" }));
      const read = async (more: object) => {
        const page = await fixture.storage.reader.sessions({ limit: 10, parent: "ses-root", ...more });
        return page.map(({ sessionId }) => sessionId);
      };
      expect(await read({})).toEqual(["ses-3", "ses-2", "ses-1", "ses-child"]);
      expect(await read({ limit: 2 })).toEqual(["ses-3", "ses-2"]);
      expect(await read({ limit: 2, before: "ses-2" })).toEqual(["ses-1", "ses-child"]);
      expect(await read({ status: "cancelled" })).toEqual(["ses-2"]);
      expect(await read({ parent: "ses-none" })).toEqual([]);
    });

    if (fixture.subject.reopen !== undefined) {
      test("ST21: parents and children are known after reopening", async () => {
        await grow();
        await fixture.reopen();
        await fixture.apply(cancelling("ses-root", { mode: "hard" }));
        expect(await statusOf("ses-grandchild")).toBe("cancelled");
      });
    }
  });
}
