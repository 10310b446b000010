// ST32, ST36, ST52: an imported session is a relative only of sessions that were imported with it. A tree is
// imported whole or not at all. No session is a relative of another owner's session.

import type {
  ImportedSession,
  ImportSession,
  ImportTree,
  JournalRecord,
  Placement,
  Session,
} from "@holdfast/core";
import { describe, expect, test } from "vitest";
import {
  cancelling,
  creating,
  INVALID,
  PATCH_TO,
  raising,
  reserving,
  settling,
  signalling,
  spawning,
  STARTED,
  tokens,
  type Fixture,
} from "../fixture.ts";

const EVE: Placement = { owner: "eve" };
const IDS = ["ses-root", "ses-root-0", "ses-root-0-0", "ses-root-0-1"] as const;

const below = (sessionId: string) => ({ sessionId, child: 0, onEnd: "cancel" }) as const;

export function detachmentConformance(fixture: Fixture): void {
  const account = { limits: { maxTokens: 9 }, spent: tokens(0), reserved: tokens(0), low: false };

  async function importing(
    sessionId: string,
    more: Partial<Session>,
    rest: Partial<ImportSession> = {},
  ): Promise<void> {
    await fixture.apply(creating("ses-pattern"));
    const pattern = await fixture.session("ses-pattern");
    const { records = [] } = rest;
    const session = { ...pattern, sessionId, nextSeq: records.length, ...more };
    const change = { type: "import_session", sessionId, session, records, entries: [], ...rest } as const;
    expect(await fixture.apply(change)).toEqual({ status: "created" });
  }

  describe("an imported session alone", () => {
    test("ST32: an imported session names no parent, payer and successor that were not imported with it", async () => {
      await fixture.apply(creating("ses-parent", { budget: { maxTokens: 100 } }));
      await fixture.apply(creating("ses-next"));
      const exhausted = { payer: "ses-parent", limit: "maxTokens", used: 9, max: 9, then: "park" } as const;
      const paused = { status: "paused", pauseReason: "budget_exceeded", exhausted } as const;
      await importing("ses-1", {
        ...paused,
        parent: below("ses-parent"),
        payers: ["ses-1", "ses-parent"],
        account,
      });
      const row = await fixture.session("ses-1");
      expect(row).toMatchObject({
        detachedFrom: below("ses-parent"),
        payers: ["ses-1"],
        exhausted: { payer: "ses-1" },
      });
      expect(row.parent).toBeUndefined();
      expect(await fixture.apply(raising("ses-1", { maxTokens: 90 }))).toMatchObject({ status: "requested" });
      expect((await fixture.session("ses-1")).status).toBe("working");
      const ended = { status: "completed", endedAt: 1, handedOffTo: "ses-next" } as const;
      await importing("ses-2", ended);
      expect((await fixture.session("ses-2")).handedOffTo).toBeUndefined();
      const deletion = { type: "delete_session", subtree: "delete" } as const;
      expect(await fixture.apply({ ...deletion, sessionId: "ses-2" })).toEqual({
        status: "deleted",
        sessions: 1,
      });
    });

    test("ST32: nothing that an imported session does reaches a session that has the id of its former parent", async () => {
      await fixture.apply(creating("ses-parent"));
      const before = await fixture.everything("ses-parent");
      await importing("ses-parent-0", { parent: below("ses-parent") });
      const child = await fixture.claim("ses-parent-0", "owner-1", 1, Infinity);
      const signals = signalling("ses-parent", "ses-parent-0-0", { name: "child:0" });
      const asking = signalling("ses-parent", "ses-parent-0-1", { name: "request:0" });
      await child.commit({ records: [STARTED], effects: [signals, asking] });
      expect(await fixture.sent("ses-parent-0")).toEqual([["reply:1", { ended: "ses-parent" }]]);
      await child.commit({ session: PATCH_TO.completed });
      expect(await fixture.apply(cancelling("ses-parent", { mode: "hard" }))).toMatchObject({
        status: "requested",
      });
      expect((await fixture.session("ses-parent-0")).status).toBe("completed");
      expect(before).toMatchObject({ session: { inbox: 0 } });
    });

    test("ST32: an imported session receives the ends of absent children and the answers of an absent parent, each once", async () => {
      const spawn = { type: "spawn_child", agent: "a", hash: "h" } as const;
      const wait = { type: "wait_signal", mode: "consume" } as const;
      const drafts = [
        { type: "started", at: 1 },
        { ...spawn, id: 0 },
        { ...spawn, id: 1 },
        { ...spawn, id: 2 },
        { type: "request_parent", name: "ask", hash: "h", id: 3 },
        { ...wait, name: "reply:3", id: 4 },
        { ...wait, name: "child-end:1", id: 5 },
        {
          type: "signal_received",
          at: 1,
          wait: 5,
          signalId: "s",
          payload: '{"type":"completed","output":1}',
        },
      ];
      const records = drafts.map((draft, seq) => ({ ...draft, seq }) as JournalRecord);
      const signals = [{ signalId: "t", name: "child:2", payload: '{"type":"completed","output":2}' }];
      const waits = [{ type: "signal", id: 4, name: "reply:3" }] as const;
      const more = { status: "waiting", waits, children: 3, parent: below("ses-parent") } as const;
      await importing("ses-1", more, { records, signals });
      const failed = { type: "failed", error: { code: "session_not_found" } };
      expect(await fixture.sent("ses-1")).toMatchObject([
        ["child:2", { output: 2 }],
        ["child:0", failed],
        ["child-end:0", failed],
        ["reply:3", { ended: "ses-parent" }],
      ]);
      expect((await fixture.storage.due({ now: 1, limit: 10 })).sessionIds).toContain("ses-1");
    });
  });

  describe("a session that names another owner's", () => {
    const hard = cancelling("ses-desk", { mode: "hard" });
    const eves = () => fixture.apply(creating("ses-eves", { placement: EVE, parent: below("ses-desk") }));
    const desk = () =>
      fixture.apply(creating("ses-desk", { placement: { owner: "ada" }, budget: { maxTokens: 100 } }));

    test.each(["before", "after"])(
      "ST36: another owner's session that is stored %s a session that names it as parent is not notified, charged or cancelled",
      async (when) => {
        if (when === "before") await desk();
        await eves();
        if (when === "after") await desk();
        const before = await fixture.everything("ses-desk");
        const claimant = await fixture.claim("ses-eves", "owner-1", 1, Infinity);
        const charges = [reserving(0, 60), settling(0, 95)];
        await claimant.commit({ records: [STARTED], charges });
        await claimant.commit({ session: PATCH_TO.completed });
        expect(await fixture.everything("ses-desk")).toEqual(before);
      },
    );

    test("ST36: a session that names another owner's as its parent is neither cancelled nor deleted with it", async () => {
      await eves();
      await desk();
      const deletion = { type: "delete_session", sessionId: "ses-desk", subtree: "refuse" } as const;
      await fixture.apply(hard);
      expect((await fixture.session("ses-eves")).status).toBe("submitted");
      expect(await fixture.apply(deletion)).toEqual({ status: "deleted", sessions: 1 });
    });

    test("ST36: another owner's session is not the successor of a session that names it", async () => {
      await desk();
      await fixture.apply(creating("ses-eves", { placement: EVE }));
      const claimant = await fixture.claim("ses-eves", "owner-1", 1, Infinity);
      await claimant.commit({
        records: [spawning("agent")],
        effects: [creating("ses-desk")],
        session: { ...PATCH_TO.completed, handedOffTo: "ses-desk" },
      });
      const deletion = { type: "delete_session", sessionId: "ses-eves", subtree: "refuse" } as const;
      expect(await fixture.apply(deletion)).toEqual({ status: "deleted", sessions: 1 });
    });

    test("ST36: the payer that a paused row names reveals nothing of another owner's limits", async () => {
      await desk();
      await importing("ses-eves", { placement: EVE });
      const claimant = await fixture.claim("ses-eves", "owner-1", 1, Infinity);
      const exhausted = { payer: "ses-desk", limit: "maxTokens", used: 50, max: 50, then: "park" } as const;
      await claimant.commit({ session: { status: "paused", pauseReason: "budget_exceeded", exhausted } });
      expect((await fixture.session("ses-eves")).status).toBe("paused");
    });
  });

  treeConformance(fixture);
}

function treeConformance(fixture: Fixture): void {
  const account = { limits: { maxTokens: 100 }, spent: tokens(10), reserved: tokens(0), low: false };
  const waiting = { status: "waiting", waits: [{ type: "signal", id: 0, name: "child:0" }] } as const;

  /** A root, its child, which handed over, a grandchild, and the successor. The root's parent is not among them. */
  async function tree(more: { readonly [id in (typeof IDS)[number]]?: Partial<Session> } = {}) {
    await fixture.apply(creating("ses-pattern"));
    const pattern = await fixture.session("ses-pattern");
    const [root, child, grandchild, successor] = IDS;
    const payers = [root, "ses-above"];
    const imported = (sessionId: (typeof IDS)[number], row: Partial<Session>): ImportedSession => ({
      sessionId,
      session: { ...pattern, sessionId, ...row, ...more[sessionId] },
      records: [],
      entries: [],
    });
    const ended = { status: "completed", endedAt: 1, children: 1, handedOffTo: successor } as const;
    return {
      type: "import_tree",
      sessionId: root,
      sessions: [
        imported(root, { parent: below("ses-above"), payers, account, children: 1, ...waiting }),
        { ...imported(child, { parent: below(root), payers, ...ended }) },
        {
          ...imported(grandchild, { parent: below(child), payers }),
          signals: [{ signalId: "sig-1", name: "go", payload: "1" }],
        },
        imported(successor, { parent: below(root), payers }),
      ],
    } satisfies ImportTree;
  }

  const stored = async (): Promise<readonly string[]> => {
    const rows = await Promise.all(IDS.map((id) => fixture.storage.reader.session(id)));
    return rows.flatMap((row) => (row === undefined ? [] : [row.sessionId]));
  };

  describe("an imported tree", () => {
    test("ST52: the sessions of a tree keep their relations, and the first one is detached from the sessions above it", async () => {
      await fixture.apply(creating("ses-above", { budget: { maxTokens: 50 } }));
      const before = await fixture.everything("ses-above");
      expect(await fixture.apply(await tree())).toEqual({ status: "created" });
      const [root, child, grandchild, successor] = await Promise.all(IDS.map((id) => fixture.session(id)));
      expect(root).toMatchObject({ detachedFrom: below("ses-above"), payers: ["ses-root"], account });
      expect(root?.parent).toBeUndefined();
      expect(child).toMatchObject({ parent: below("ses-root"), handedOffTo: "ses-root-0-1" });
      expect(grandchild).toMatchObject({ parent: below("ses-root-0"), payers: ["ses-root"], inbox: 1 });
      expect(successor).toMatchObject({ parent: below("ses-root"), payers: ["ses-root"] });
      const children = await fixture.storage.reader.sessions({ parent: "ses-root", limit: 9 });
      expect(children.map(({ sessionId }) => sessionId)).toEqual(["ses-root-0-1", "ses-root-0"]);
      expect(await fixture.sent("ses-root-0-0")).toEqual([["go", 1]]);
      expect(await fixture.sent("ses-root")).toEqual([]);
      expect(await fixture.everything("ses-above")).toEqual(before);
    });

    test("ST52: a session of an imported tree spends from the budget of the tree, and its end notifies its parent", async () => {
      await fixture.apply(await tree());
      const successor = await fixture.claim("ses-root-0-1", "owner-1", 1, Infinity);
      expect(await successor.commit({ records: [STARTED], charges: [reserving(0, 95)] })).toMatchObject({
        admissions: [{ status: "refused", payer: "ses-root" }],
      });
      await successor.commit({ records: [STARTED], charges: [reserving(1, 60)] });
      expect((await fixture.session("ses-root")).account?.reserved).toEqual(tokens(60));
      await successor.commit({ charges: [settling(1, 40)], session: PATCH_TO.completed });
      expect((await fixture.session("ses-root")).account).toMatchObject({
        spent: tokens(50),
        reserved: tokens(0),
      });
      expect(await fixture.sent("ses-root")).toMatchObject([
        ["child:0", { type: "completed", output: "done" }],
        ["child-end:0", { type: "completed" }],
      ]);
      expect((await fixture.storage.due({ now: 1, limit: 10 })).sessionIds).toContain("ses-root");
    });

    test("ST52: a cancel of the first session of an imported tree reaches all sessions below it", async () => {
      await fixture.apply(await tree());
      await fixture.apply(cancelling("ses-root", { mode: "hard" }));
      for (const id of ["ses-root", "ses-root-0-0", "ses-root-0-1"])
        expect((await fixture.session(id)).status).toBe("cancelled");
    });

    test.each(IDS)("ST52: nothing of a tree is stored when there is a session %s", async (id) => {
      const change = await tree();
      await fixture.apply(creating(id));
      const before = await fixture.everything(id);
      expect(await fixture.apply(change)).toEqual({ status: "exists" });
      expect(await stored()).toEqual([id]);
      expect(await fixture.everything(id)).toEqual(before);
    });

    test("ST52: nothing of a tree is stored when one of its sessions is invalid", async () => {
      expect(await fixture.apply(await tree({ "ses-root-0-1": { nextSeq: 7 } }))).toEqual(INVALID);
      expect(await stored()).toEqual([]);
    });

    test("ST52: sessions that are not one tree, parents first, are refused", async () => {
      const change = await tree();
      const [root, child, grandchild, successor] = change.sessions;
      const circle = await tree({
        "ses-root-0": { handedOffTo: "ses-root" },
        "ses-root": { parent: below("ses-root-0") },
      });
      for (const sessions of [
        [],
        [root, grandchild, child, successor],
        [root, child, grandchild, successor, child],
        [child, root, grandchild, successor],
        [root, grandchild],
        circle.sessions,
      ])
        expect(await fixture.apply({ ...change, sessions: sessions as ImportedSession[] })).toEqual(INVALID);
      expect(await stored()).toEqual([]);
    });

    test("ST52: a tree that is imported again changes nothing", async () => {
      const change = await tree();
      await fixture.apply(change);
      const before = await Promise.all(IDS.map((id) => fixture.everything(id)));
      expect(await fixture.apply(change)).toEqual({ status: "exists" });
      expect(await Promise.all(IDS.map((id) => fixture.everything(id)))).toEqual(before);
    });
  });
}
