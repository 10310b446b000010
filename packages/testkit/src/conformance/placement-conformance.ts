// ST35, ST36 and ST44: the owner of a session. A user's sessions make only sessions of that user, and reach
// no other user's.

import type { Placement, Session } from "@holdfast/core";
import { describe, expect, test } from "vitest";
import {
  cancelling,
  creating,
  PATCH_TO,
  signalling,
  spawning,
  STARTED,
  type Claimant,
  type Fixture,
} from "./fixture.ts";

const ANNA: Placement = { owner: "anna", demands: { os: "linux", gpu: "" }, priority: -3 };

export function placementConformance(fixture: Fixture): void {
  const placed = async (sessionId: string, placement: Placement | undefined): Promise<Claimant> => {
    const more = placement === undefined ? {} : { placement };
    await fixture.apply(creating(sessionId, more), 0);
    return fixture.claim(sessionId, "owner-1", 0, Infinity);
  };
  const placementOf = async (sessionId: string) => (await fixture.session(sessionId)).placement;

  describe("placement", () => {
    test("ST35: a session keeps its placement through all it does", async () => {
      const claimant = await placed("ses-1", ANNA);
      await placed("ses-2", undefined);
      await claimant.commit({ records: [STARTED], session: PATCH_TO.waiting });
      await fixture.apply(signalling("ses-1", "sig-1"));
      expect(await placementOf("ses-1")).toEqual(ANNA);
      expect(await placementOf("ses-2")).toBeUndefined();
      expect((await fixture.storage.load("ses-1"))!.session.placement).toEqual(ANNA);
    });

    test("ST35: a child is its parent's owner's, and has no other part of its placement", async () => {
      const parent = await placed("ses-1", ANNA);
      await fixture.spawn(parent, "ses-spawned");
      const ref = { sessionId: "ses-1", child: 7, onEnd: "cancel" } as const;
      await fixture.apply(creating("ses-asked", { parent: ref }));
      await fixture.apply(creating("ses-own", { parent: ref, placement: { owner: "bert", priority: 1 } }));
      await fixture.apply(creating("ses-demanding", { parent: ref, placement: { demands: { os: "mac" } } }));
      expect(await placementOf("ses-spawned")).toEqual({ owner: "anna" });
      expect(await placementOf("ses-asked")).toEqual({ owner: "anna" });
      expect(await placementOf("ses-own")).toEqual({ owner: "bert", priority: 1 });
      expect(await placementOf("ses-demanding")).toEqual({ owner: "anna", demands: { os: "mac" } });
    });

    // An agent, or its runner, could otherwise act in another user's name.
    test("ST35: a session that an owner's session makes is that owner's, whatever it says", async () => {
      const parent = await placed("ses-1", ANNA);
      const placement = { owner: "bert", demands: { os: "mac" } };
      await fixture.spawn(parent, "ses-child", { placement });
      await parent.commit({ effects: [creating("ses-alone", { placement })] });
      const unowned = await placed("ses-2", undefined);
      await unowned.commit({ effects: [creating("ses-free", { placement })] });
      expect(await placementOf("ses-child")).toEqual({ owner: "anna", demands: { os: "mac" } });
      expect(await placementOf("ses-alone")).toEqual({ owner: "anna", demands: { os: "mac" } });
      expect(await placementOf("ses-free")).toEqual(placement);
    });

    test("ST35: a session that an owner's schedule starts is that owner's", async () => {
      const schedule = {
        scheduleId: "nightly",
        owner: "anna",
        cron: "0 3 * * *",
        timeZone: "UTC",
        action: { type: "start", agent: { name: "agent", version: "1" }, input: undefined },
        nextAt: 100,
        createdAt: 0,
      } as const;
      await fixture.apply({ type: "put_schedule", schedule });
      expect(await fixture.storage.reader.schedules()).toEqual([schedule]);
      await fixture.apply({
        type: "fire_schedule",
        scheduleId: "nightly",
        dueAt: 100,
        nextAt: 200,
        effect: creating("ses-1"),
      });
      expect(await placementOf("ses-1")).toEqual({ owner: "anna" });
      expect(await fixture.storage.reader.schedules()).toEqual([{ ...schedule, nextAt: 200, lastAt: 100 }]);
    });

    test("ST35: an imported session keeps its placement", async () => {
      await placed("ses-1", ANNA);
      const session: Session = { ...(await fixture.session("ses-1")), sessionId: "ses-2" };
      const imported = { type: "import_session", sessionId: "ses-2", session, records: [], entries: [] };
      expect(await fixture.apply({ ...imported, type: "import_session" })).toEqual({ status: "created" });
      expect(await placementOf("ses-2")).toEqual(ANNA);
    });

    if (fixture.subject.reopen !== undefined) {
      test("ST35: a placement survives closing and opening again", async () => {
        await placed("ses-1", ANNA);
        await fixture.reopen();
        expect(await placementOf("ses-1")).toEqual(ANNA);
        expect(await fixture.storage.reader.sessions({ limit: 5, owner: "anna" })).toHaveLength(1);
      });
    }
  });

  describe("reaching others", () => {
    for (const [whose, placement] of [
      ["another owner", { owner: "bert" }],
      ["nobody", undefined],
    ] as const) {
      test(`ST36: an owner's session neither signals nor cancels one of ${whose}`, async () => {
        const asking = await placed("ses-1", ANNA);
        await placed("ses-2", placement);
        const before = await fixture.everything("ses-2");
        const received: unknown[] = [];
        fixture.storage.subscribe((arrival) => received.push(arrival));
        const effects = [signalling("ses-2", "sig-1"), cancelling("ses-2", { mode: "hard" })];
        expect(await asking.commit({ records: [STARTED], effects })).toMatchObject({ status: "committed" });
        expect(await fixture.everything("ses-2")).toEqual(before);
        expect(received).toEqual([]);
      });
    }

    test("ST36: it reaches those of its owner, and one of no owner reaches all", async () => {
      const asking = await placed("ses-1", ANNA);
      await placed("ses-2", { owner: "anna" });
      const unowned = await placed("ses-3", undefined);
      await asking.commit({ effects: [signalling("ses-2", "sig-1"), signalling("ses-none", "sig-1")] });
      await unowned.commit({ effects: [signalling("ses-2", "sig-2")] });
      expect(await fixture.sent("ses-2")).toHaveLength(2);
    });

    test("ST36: a child reaches its parent of any owner, and tells it its end", async () => {
      await placed("ses-1", undefined);
      const parent = { sessionId: "ses-1", child: 0, onEnd: "cancel" } as const;
      await fixture.apply(creating("ses-2", { parent, placement: ANNA }), 0);
      const child = await fixture.claim("ses-2", "owner-1", 0);
      await child.commit({ effects: [signalling("ses-1", "sig-1")] });
      await child.commit({ session: PATCH_TO.completed });
      expect((await fixture.sent("ses-1")).map(([name]) => name)).toEqual(["go", "child:0", "child-end:0"]);
    });

    test("ST36: a cancel reaches those below of its owner, and all below one of no owner", async () => {
      const bert = { placement: { owner: "bert" } };
      const below = (sessionId: string) => ({ parent: { sessionId, child: 0, onEnd: "leave" } }) as const;
      await placed("ses-1", ANNA);
      await placed("ses-2", undefined);
      await fixture.apply(creating("ses-1-annas", below("ses-1")), 0);
      await fixture.apply(creating("ses-1-berts", { ...below("ses-1"), ...bert }), 0);
      await fixture.apply(creating("ses-2-berts", { ...below("ses-2"), ...bert }), 0);
      for (const sessionId of ["ses-1", "ses-2"]) await fixture.apply(cancelling(sessionId));
      const statusOf = async (sessionId: string) => (await fixture.session(sessionId)).status;
      expect(await statusOf("ses-1-annas")).toBe("cancelling");
      expect(await statusOf("ses-1-berts")).toBe("submitted");
      expect(await statusOf("ses-2-berts")).toBe("cancelling");
    });

    test("ST36: an owner's schedule signals nobody else's session", async () => {
      await placed("ses-1", { owner: "bert" });
      const action = { type: "signal", sessionId: "ses-1", name: "go", payload: undefined } as const;
      const times = { nextAt: 100, createdAt: 0 };
      const schedule = {
        scheduleId: "poke",
        owner: "anna",
        cron: "* * * * *",
        timeZone: "UTC",
        action,
        ...times,
      };
      await fixture.apply({ type: "put_schedule", schedule });
      const effect = signalling("ses-1", "sig-1");
      const firing = { type: "fire_schedule", scheduleId: "poke", dueAt: 100, nextAt: 200, effect } as const;
      expect(await fixture.apply(firing)).toEqual({ status: "done" });
      expect(await fixture.sent("ses-1")).toEqual([]);
    });
  });

  describe("filters", () => {
    const found = async (query: Parameters<Fixture["storage"]["reader"]["sessions"]>[0]) =>
      (await fixture.storage.reader.sessions(query)).map(({ sessionId }) => sessionId);

    /** By owner, agent, status and parent: every combination of two of each. */
    async function sixteen(): Promise<void> {
      const root = await fixture.createClaimed("ses-root");
      await root.commit({ records: [spawning("agent")] });
      for (let n = 0; n < 16; n++) {
        const [owner, name] = [n & 1 ? "anna" : "bert", n & 2 ? "a" : "b"];
        const parent = n & 4 ? { parent: { sessionId: "ses-root", child: n, onEnd: "leave" as const } } : {};
        const more = { placement: { owner }, agent: { name, version: "1" }, ...parent };
        await fixture.apply(creating(`ses-${n}`, more), n);
        if (n & 8) await fixture.apply(cancelling(`ses-${n}`, { mode: "hard" }));
      }
    }

    test("ST60: sessions are counted by status, all of them and with each filter, to a limit", async () => {
      await sixteen();
      const { counts } = fixture.storage.reader;
      const count = (query: Omit<Parameters<typeof counts>[0], "limit">, limit = 100) =>
        fixture.storage.reader.counts({ limit, ...query });
      expect(await count({})).toEqual({ submitted: 9, cancelled: 8 }); // With the parent.
      expect(await count({}, 3)).toEqual({ submitted: 3, cancelled: 3 });
      expect(await count({}, 0)).toEqual({});
      const half = { submitted: 4, cancelled: 4 };
      expect(await count({ owner: "anna" })).toEqual(half);
      expect(await count({ agent: "a" })).toEqual(half);
      expect(await count({ parent: "ses-root" })).toEqual(half);
      expect(await count({ owner: "bert", agent: "b", parent: "ses-root" })).toEqual({
        submitted: 1,
        cancelled: 1,
      });
      expect(await count({ owner: "anna" }, 5)).toEqual({ submitted: 1, cancelled: 4 }); // The newest five.
      expect(await count({ owner: "carl" })).toEqual({});
    });

    test("ST44: each filter leaves those that fit, newest first", async () => {
      await sixteen();
      const limit = 100;
      expect(await found({ limit, owner: "anna" })).toEqual(
        [15, 13, 11, 9, 7, 5, 3, 1].map((n) => `ses-${n}`),
      );
      expect(await found({ limit, agent: "a" })).toEqual([15, 14, 11, 10, 7, 6, 3, 2].map((n) => `ses-${n}`));
      expect(await found({ limit, parent: "ses-root" })).toHaveLength(8);
      expect(await found({ limit, status: "cancelled" })).toHaveLength(8);
      expect(await found({ limit, owner: "nobody" })).toEqual([]);
      expect(await found({ limit, agent: "none" })).toEqual([]);
    });

    test("ST44: filters hold together, and over pages", async () => {
      await sixteen();
      const query = { owner: "anna", agent: "a", parent: "ses-root" };
      expect(await found({ ...query, limit: 100 })).toEqual(["ses-15", "ses-7"]);
      expect(await found({ ...query, limit: 100, status: "submitted" })).toEqual(["ses-7"]);
      expect(await found({ ...query, limit: 1 })).toEqual(["ses-15"]);
      expect(await found({ ...query, limit: 1, before: "ses-15" })).toEqual(["ses-7"]);
      expect(await found({ ...query, limit: 1, before: "ses-7" })).toEqual([]);
      expect(await found({ limit: 3, owner: "bert", agent: "b", before: "ses-12" })).toEqual([
        "ses-8",
        "ses-4",
        "ses-0",
      ]);
    });
  });
}
