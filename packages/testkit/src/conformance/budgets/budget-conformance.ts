// ST28 to ST30: what sessions may spend. Too much spent is money gone; too little admitted is an agent that
// stands still.

import type { Budget, ChangeResult, Charge } from "@holdfast/core";
import { describe, expect, test } from "vitest";
import { listen } from "../arrival-listener.ts";
import {
  cancelling,
  Claimant,
  creating,
  PATCH_TO,
  raising,
  reserving,
  resuming,
  scheduling,
  settling,
  spawning,
  STARTED,
  tokenOf,
  tokens,
  type Fixture,
} from "../fixture.ts";

const ADMITTED = { status: "admitted" };
const QUEUED = { status: "queued" };
const STEP: Charge = { type: "reserve", task: 77, amount: { ...tokens(0), steps: 1 } };

export function budgetConformance(fixture: Fixture): void {
  async function payer(budget: Budget, sessionId = "ses-root"): Promise<Claimant> {
    const claimFor = { owner: "owner-1", leaseMs: Infinity };
    const created = await fixture.apply(creating(sessionId, { budget, claimFor }), 0);
    return new Claimant(fixture, sessionId, tokenOf(created));
  }
  const charge = (claimant: Claimant, ...charges: readonly Charge[]): Promise<ChangeResult> =>
    claimant.commit({ records: [scheduling("model")], charges });
  const spending = (task: number, count: number) => [reserving(task, 0), settling(task, count)];
  const accountOf = async (sessionId: string) => (await fixture.session(sessionId)).account;
  const loaded = async (sessionId: string) => (await fixture.storage.load(sessionId))!;
  const refusedBy = (payerId: string, limit: string, used: number, max: number) => {
    return { status: "refused", payer: payerId, limit, used, max, then: "park" };
  };

  describe("one payer", () => {
    test("ST28: where nobody pays, everything is admitted and nothing is kept", async () => {
      const claimant = await fixture.createClaimed();
      expect(await charge(claimant, reserving(0, 1_000_000), { type: "turn" }, settling(0, 5))).toEqual({
        status: "committed",
        inbox: 0,
        admissions: [ADMITTED, ADMITTED],
      });
      const { holds, session } = await loaded("ses-1");
      expect(holds).toEqual([]);
      expect(session).not.toHaveProperty("account");
    });

    test("ST28: a reserve is reserved, a settled task is spent, and the remainder is answered", async () => {
      const root = await payer({ maxTokens: 100 });
      expect(await charge(root, reserving(0, 60))).toEqual({
        status: "committed",
        inbox: 0,
        admissions: [ADMITTED],
        remaining: { tokens: 40 },
      });
      expect(await loaded("ses-root")).toMatchObject({
        holds: [{ task: 0, amount: tokens(60) }],
        remaining: { tokens: 40 },
        session: { payers: ["ses-root"], account: { spent: tokens(0), reserved: tokens(60) } },
      });
      expect(await charge(root, settling(0, 25))).toMatchObject({
        admissions: [],
        remaining: { tokens: 75 },
      });
      expect(await loaded("ses-root")).toMatchObject({
        holds: [],
        session: { account: { spent: tokens(25), reserved: tokens(0) } },
      });
    });

    test("ST28: charges are decided in order, later ones seeing earlier ones", async () => {
      const root = await payer({ maxTokens: 100 });
      const result = await charge(
        root,
        reserving(0, 60),
        reserving(1, 60),
        settling(0, 10),
        reserving(2, 60),
        reserving(3, 91),
        reserving(4, 30),
      );
      expect(result).toMatchObject({
        admissions: [ADMITTED, QUEUED, ADMITTED, refusedBy("ses-root", "maxTokens", 10, 100), ADMITTED],
      });
      expect((await loaded("ses-root")).holds.map(({ task }) => task)).toEqual([2, 4]);
    });

    test("ST28: the limit itself may be reached, and not one more", async () => {
      const root = await payer({ maxTokens: 100 });
      expect(await charge(root, reserving(0, 100))).toMatchObject({ admissions: [ADMITTED] });
      expect(await charge(root, settling(0, 100))).toMatchObject({ remaining: { tokens: 0 } });
      expect(await charge(root, reserving(1, 1))).toMatchObject({
        admissions: [refusedBy("ses-root", "maxTokens", 100, 100)],
      });
    });

    test("ST28: asking again for what is held for is admitted, and holds nothing more", async () => {
      const root = await payer({ maxTokens: 100 });
      await charge(root, reserving(0, 60));
      expect(await charge(root, reserving(0, 60), reserving(0, 60))).toMatchObject({
        admissions: [ADMITTED, ADMITTED],
        remaining: { tokens: 40 },
      });
      await charge(root, settling(0, 60));
      expect((await accountOf("ses-root"))?.reserved).toEqual(tokens(0));
    });

    test("ST28: settling twice is settling once", async () => {
      const root = await payer({ maxTokens: 100 });
      await charge(root, reserving(0, 10), reserving(5, 10));
      await charge(root, settling(5, 7));
      await charge(root, settling(5, 7), settling(5, 7));
      expect(await accountOf("ses-root")).toMatchObject({ spent: tokens(7), reserved: tokens(10) });
    });

    test("ST28: a refusal says what is to be done then", async () => {
      const root = await payer({ maxTokens: 100, onExhausted: "cancel" });
      const result = await charge(root, reserving(0, 101));
      expect(result).toMatchObject({ admissions: [{ status: "refused", then: "cancel" }] });
    });

    test("ST28: steps and turns are counted when they begin, and never given back", async () => {
      const root = await payer({ maxSteps: 2, maxTurns: 1 });
      expect(await charge(root, STEP, { type: "turn" }, { type: "turn" })).toMatchObject({
        admissions: [ADMITTED, ADMITTED, refusedBy("ses-root", "maxTurns", 1, 1)],
        remaining: { steps: 1, turns: 0 },
      });
      await charge(root, settling(77, 5));
      expect((await accountOf("ses-root"))?.spent).toEqual({
        tokens: 5,
        costMicroUsd: 0,
        steps: 1,
        turns: 1,
      });
    });

    test("ST28: a batch sent again charges nothing again, and says which of its tasks are held for", async () => {
      const root = await payer({ maxTokens: 100 });
      const batch = root.batch({
        records: [scheduling("a")],
        charges: [reserving(0, 60), reserving(1, 60), { type: "turn" }],
      });
      await fixture.apply(batch);
      const before = await fixture.everything("ses-root");
      expect(await fixture.apply(batch, 9)).toEqual({
        status: "committed",
        inbox: 0,
        admissions: [ADMITTED, QUEUED, QUEUED],
        remaining: { tokens: 40 },
      });
      expect(await fixture.everything("ses-root")).toEqual(before);
    });

    test("ST28: a batch that is refused charges nothing", async () => {
      const root = await payer({ maxTokens: 100 });
      const before = await fixture.everything("ses-root");
      expect(await root.commit({ consumed: ["sig-none"], charges: [reserving(0, 60)] })).toMatchObject({
        status: "invalid",
      });
      expect(await fixture.everything("ses-root")).toEqual(before);
    });

    test("ST28: a first batch is charged and told too", async () => {
      const claimFor = { owner: "owner-1", leaseMs: Infinity };
      const records = [{ type: "started", seq: 0, at: 1 }] as const;
      const first = { records, entries: [], charges: [reserving(0, 60), reserving(1, 60)] };
      const created = await fixture.apply(creating("ses-1", { budget: { maxTokens: 100 }, claimFor, first }));
      expect(created).toMatchObject({
        status: "created",
        admissions: [ADMITTED, QUEUED],
        remaining: { tokens: 40 },
      });
      expect((await loaded("ses-1")).holds).toEqual([{ task: 0, amount: tokens(60) }]);
    });

    for (const [how, end] of [
      ["its agent", (root: Claimant) => root.commit({ session: PATCH_TO.completed })],
      ["a hard cancel", () => fixture.apply(cancelling("ses-root", { mode: "hard" }))],
      [
        "its deadline",
        async () => {
          await fixture.apply(cancelling("ses-root", { graceMs: 5 }));
          return fixture.storage.due({ now: 100, limit: 1 });
        },
      ],
    ] as const) {
      test(`ST28: the reservations count as spent when ${how} ends the session`, async () => {
        const root = await payer({ maxTokens: 100 });
        await charge(root, reserving(0, 60), reserving(1, 10));
        await end(root);
        expect(await loaded("ses-root")).toMatchObject({
          holds: [],
          session: { account: { spent: tokens(70), reserved: tokens(0) } },
        });
      });
    }
  });

  describe("payers above", () => {
    async function threeLevels() {
      const root = await payer({ maxTokens: 100 });
      const child = await fixture.spawn(root, "ses-child");
      const leaf = await fixture.spawn(child, "ses-leaf", { budget: { maxTokens: 50 } });
      return { root, child, leaf };
    }

    test("ST28: every payer pays, the nearest first", async () => {
      const { leaf } = await threeLevels();
      expect((await fixture.session("ses-leaf")).payers).toEqual(["ses-leaf", "ses-root"]);
      expect((await fixture.session("ses-child")).payers).toEqual(["ses-root"]);
      expect(await charge(leaf, reserving(0, 40))).toMatchObject({ remaining: { tokens: 10 } });
      await charge(leaf, settling(0, 30));
      expect((await accountOf("ses-leaf"))?.spent).toEqual(tokens(30));
      expect((await accountOf("ses-root"))?.spent).toEqual(tokens(30));
      expect(await accountOf("ses-child")).toBeUndefined();
    });

    test("ST28: with what has arrived is answered what others have left", async () => {
      const { root, child } = await threeLevels();
      await charge(child, reserving(0, 70));
      const { remaining } = await fixture.storage.arrivals("ses-root", 0);
      expect(remaining).toEqual({ tokens: 30 });
      await charge(root, reserving(0, 10));
      expect((await fixture.storage.arrivals("ses-leaf", 0)).remaining).toEqual({ tokens: 20 });
    });

    test("ST28: a successor has the payers and the deadline of its predecessor, besides its own", async () => {
      const root = await payer({ maxTokens: 100 });
      const child = await fixture.spawn(root, "ses-child", { budget: { maxTokens: 50 }, deadlineAt: 900 });
      await charge(child, reserving(0, 40));
      await charge(child, settling(0, 40));
      const parent = { sessionId: "ses-root", child: 0, onEnd: "cancel" } as const;
      const own = { budget: { maxTokens: 500 }, deadlineAt: 1_000 };
      await child.commit({
        records: [spawning("agent")],
        effects: [creating("ses-heir", { parent, ...own })],
        session: { ...PATCH_TO.completed, handedOffTo: "ses-heir" },
      });
      expect(await fixture.session("ses-heir")).toMatchObject({
        payers: ["ses-heir", "ses-child", "ses-root"],
        deadlineAt: 900,
      });
      const successor = await fixture.claim("ses-heir", "owner-1", 2);
      const refusal = refusedBy("ses-child", "maxTokens", 40, 50);
      expect(await charge(successor, reserving(0, 20))).toMatchObject({ admissions: [refusal] });
      expect(await fixture.apply(raising("ses-child", { maxTokens: 90 }), 3)).toMatchObject({
        status: "requested",
      });
      expect(await charge(successor, reserving(1, 20))).toMatchObject({
        admissions: [ADMITTED],
        remaining: { tokens: 30 },
      });
    });

    test("ST29: a successor sends the signal for a payer that has ended", async () => {
      const root = await payer({ maxTokens: 1_000 });
      const child = await fixture.spawn(root, "ses-child", { budget: { maxTokens: 100 } });
      const parent = { sessionId: "ses-root", child: 0, onEnd: "cancel" } as const;
      await child.commit({
        records: [spawning("agent")],
        effects: [creating("ses-heir", { parent })],
        session: { ...PATCH_TO.completed, handedOffTo: "ses-heir" },
      });
      const successor = await fixture.claim("ses-heir", "owner-1", 2);
      await charge(successor, ...spending(0, 95));
      expect(await fixture.sent("ses-root")).toEqual([
        ["child:0", { type: "signal", name: "budget-low", payload: { tokens: 5 } }],
      ]);
    });

    test("ST28: a reservation of one child is not available to another", async () => {
      const { root, child, leaf } = await threeLevels();
      await charge(child, reserving(0, 70));
      expect(await charge(leaf, reserving(0, 40))).toMatchObject({
        admissions: [QUEUED],
        remaining: { tokens: 30 },
      });
      expect(await charge(leaf, reserving(0, 60))).toMatchObject({
        admissions: [refusedBy("ses-leaf", "maxTokens", 0, 50)],
      });
      await charge(child, settling(0, 70));
      expect(await charge(leaf, reserving(0, 40))).toMatchObject({
        admissions: [refusedBy("ses-root", "maxTokens", 70, 100)],
      });
      expect(await charge(root, reserving(0, 30))).toMatchObject({ admissions: [ADMITTED] });
    });

    test("ST28: neighbours in a group cannot both have the last of it", async () => {
      const { child, leaf } = await threeLevels();
      const batches = [child, leaf].map((one) =>
        one.batch({ records: [STARTED], charges: [reserving(0, 50), reserving(1, 20)] }),
      );
      const results = await fixture.storage.commit(batches, 1);
      expect(results).toMatchObject([
        { admissions: [ADMITTED, ADMITTED] },
        { admissions: [QUEUED, ADMITTED] },
      ]);
      expect((await accountOf("ses-root"))?.reserved).toEqual(tokens(90));
    });

    test("ST28: the reservations of a child that ends are spent for its payers, and free for no session", async () => {
      const { leaf } = await threeLevels();
      await charge(leaf, reserving(0, 40));
      await fixture.apply(cancelling("ses-root", { mode: "hard" }));
      expect(await accountOf("ses-root")).toMatchObject({ spent: tokens(40), reserved: tokens(0) });
      expect((await loaded("ses-leaf")).holds).toEqual([]);
    });

    if (fixture.subject.reopen !== undefined) {
      test("ST28: accounts and holds survive closing and opening again", async () => {
        const { root, leaf } = await threeLevels();
        await charge(leaf, reserving(0, 40));
        await charge(root, settling(9, 10));
        const before = await Promise.all(["ses-root", "ses-child", "ses-leaf"].map(loaded));
        await fixture.reopen();
        expect(await Promise.all(["ses-root", "ses-child", "ses-leaf"].map(loaded))).toEqual(before);
        const again = await fixture.claim("ses-leaf", "owner-2", 9);
        expect(await charge(again, reserving(0, 40), reserving(1, 20))).toMatchObject({
          admissions: [ADMITTED, QUEUED],
          remaining: { tokens: 10 },
        });
      });
    }
  });

  describe("running low", () => {
    const lowSignals = async (sessionId: string) =>
      (await fixture.sent(sessionId)).filter(
        ([, event]) => (event as { name?: string }).name === "budget-low",
      );

    test("ST29: below a tenth of a limit the payer's parent is told, once until it is raised", async () => {
      const parent = await fixture.createClaimed("ses-parent");
      const child = await fixture.spawn(parent, "ses-child", { budget: { maxTokens: 100 } });
      const leaf = await fixture.spawn(child, "ses-leaf");
      await charge(leaf, ...spending(0, 90));
      expect(await lowSignals("ses-parent"), "a tenth is left").toEqual([]);
      await charge(leaf, ...spending(1, 1));
      const notifications = ["child:0", { type: "signal", name: "budget-low", payload: { tokens: 9 } }];
      expect(await lowSignals("ses-parent")).toEqual([notifications]);
      await charge(child, ...spending(2, 1));
      expect(await lowSignals("ses-parent")).toEqual([notifications]);
      await fixture.apply(raising("ses-child", { maxTokens: 1_000 }));
      await charge(child, ...spending(3, 807));
      expect(await lowSignals("ses-parent")).toEqual([notifications]);
      await charge(child, ...spending(4, 2));
      expect(await lowSignals("ses-parent")).toHaveLength(2);
    });

    test("ST29: a payer that nobody asked for tells nobody", async () => {
      const root = await payer({ maxTokens: 100 });
      expect(await charge(root, ...spending(0, 95))).toMatchObject({ status: "committed", inbox: 0 });
      expect((await accountOf("ses-root"))?.low).toBe(true);
    });
  });

  describe("raising", () => {
    const exhausted = {
      payer: "ses-root",
      limit: "maxTokens",
      used: 100,
      max: 100,
      then: "park",
    } as const;
    const PARKED = { status: "paused", pauseReason: "budget_exceeded", exhausted } as const;

    test("ST30: a raised limit resumes those below that were paused for want of it, and nobody else", async () => {
      const root = await payer({ maxTokens: 100 });
      const child = await fixture.spawn(root, "ses-child");
      const leaf = await fixture.spawn(child, "ses-leaf", { budget: { maxTokens: 5 } });
      const other = await fixture.spawn(root, "ses-other");
      await root.commit({ session: PARKED });
      await leaf.commit({ session: PARKED });
      await child.commit({ session: { ...PARKED, exhausted: { ...exhausted, payer: "ses-leaf" } } });
      await other.commit({ session: PATCH_TO.paused });
      const { received } = listen(fixture);
      const raised = await fixture.apply(raising("ses-root", { maxTokens: 200, maxSteps: 9 }), 7);
      expect(raised).toEqual({ status: "requested", sessionStatus: "paused" });
      expect((await received(2)).map(({ sessionId }) => sessionId)).toEqual(["ses-root", "ses-leaf"]);
      const statuses = await Promise.all(
        ["ses-root", "ses-leaf", "ses-child", "ses-other"].map(async (sessionId) => {
          return (await fixture.session(sessionId)).status;
        }),
      );
      expect(statuses).toEqual(["working", "working", "paused", "paused"]);
      expect(await fixture.session("ses-root")).toMatchObject({
        account: { limits: { maxTokens: 200, maxSteps: 9 } },
        updatedAt: 7,
      });
      expect(await fixture.session("ses-root")).not.toHaveProperty("exhausted");
    });

    // The sessions that it left spend its account, which no other session can raise.
    test("ST30: the budget of an ended payer can be raised while a session that it left, or one below that, is active", async () => {
      const root = await payer({ maxTokens: 100 });
      const leave = (sessionId: string) => ({ parent: { sessionId, child: 0, onEnd: "leave" } as const });
      const child = await fixture.spawn(root, "ses-child", leave("ses-root"));
      const leaf = await fixture.spawn(child, "ses-leaf", leave("ses-child"));
      await leaf.commit({ session: PARKED });
      await child.commit({ session: PATCH_TO.failed });
      await root.commit({ session: PATCH_TO.completed }, 5);
      const raised = await fixture.apply(raising("ses-root", { maxTokens: 200 }), 7);
      expect(raised).toEqual({ status: "requested", sessionStatus: "completed" });
      expect((await fixture.session("ses-leaf")).status).toBe("working");
      expect(await fixture.session("ses-root")).toMatchObject({ status: "completed", updatedAt: 5 });
      expect((await accountOf("ses-root"))?.limits).toEqual({ maxTokens: 200 });
      await leaf.commit({ session: PATCH_TO.completed });
      expect(await fixture.apply(raising("ses-root", { maxTokens: 300 }))).toMatchObject({ status: "ended" });
      expect((await accountOf("ses-root"))?.limits).toEqual({ maxTokens: 200 });
    });

    // It was refused, then somebody raised the limit, then it said that it was paused: nobody would ever
    // raise it again.
    test("ST30: a session that pauses for a limit that was raised meanwhile continues", async () => {
      const root = await payer({ maxTokens: 100 });
      const child = await fixture.spawn(root, "ses-child");
      await fixture.apply(raising("ses-root", { maxTokens: 200 }));
      await child.commit({ records: [STARTED], session: PARKED });
      await child.release();
      expect((await fixture.session("ses-child")).status).toBe("working");
      expect(await fixture.sent("ses-root")).toEqual([]);
      expect((await fixture.storage.due({ now: 2, limit: 10 })).sessionIds).toEqual(["ses-child"]);
    });

    // Nobody asks for it again: its agent stands at the checkpoint already.
    test("ST30: a turn that was refused counts when it begins after all, and begins when all payers can pay it", async () => {
      const root = await payer({ maxTurns: 2 });
      const child = await fixture.spawn(root, "ses-child", { budget: { maxTurns: 1 } });
      const turn = { type: "turn" } as const;
      await charge(child, turn);
      expect(await charge(child, turn)).toMatchObject({ admissions: [{ status: "refused" }] });
      const used = { used: 1, max: 1, limit: "maxTurns", then: "park" } as const;
      await child.commit({ session: { ...PARKED, exhausted: { ...used, payer: "ses-child" } } });
      const resume = { type: "resume_session", sessionId: "ses-child" } as const;
      expect(await fixture.apply(resume)).toEqual({ status: "requested", sessionStatus: "paused" });
      await charge(root, turn);
      await fixture.apply(raising("ses-child", { maxTurns: 9 }), 8);
      expect(await fixture.session("ses-child")).toMatchObject({
        status: "paused",
        exhausted: { payer: "ses-root", used: 2, max: 2 },
      });
      await fixture.apply(raising("ses-root", { maxTurns: 3 }));
      expect((await fixture.session("ses-child")).status).toBe("working");
      expect([
        (await accountOf("ses-root"))?.spent.turns,
        (await accountOf("ses-child"))?.spent.turns,
      ]).toEqual([3, 2]);
    });

    // Nobody asks for it again: its agent stands at the checkpoint already.
    test("ST30: a turn that was refused counts when it begins after all, and begins when all payers can pay it", async () => {
      const root = await payer({ maxTurns: 2 });
      const child = await fixture.spawn(root, "ses-child", { budget: { maxTurns: 1 } });
      const turn = { type: "turn" } as const;
      await charge(child, turn);
      expect(await charge(child, turn)).toMatchObject({ admissions: [{ status: "refused" }] });
      const used = { used: 1, max: 1, limit: "maxTurns", then: "park" } as const;
      await child.commit({ session: { ...PARKED, exhausted: { ...used, payer: "ses-child" } } });
      const resume = { type: "resume_session", sessionId: "ses-child" } as const;
      expect(await fixture.apply(resume)).toEqual({ status: "requested", sessionStatus: "paused" });
      await charge(root, turn);
      await fixture.apply(raising("ses-child", { maxTurns: 9 }), 8);
      expect(await fixture.session("ses-child")).toMatchObject({
        status: "paused",
        exhausted: { payer: "ses-root", used: 2, max: 2 },
      });
      await fixture.apply(raising("ses-root", { maxTurns: 3 }));
      expect((await fixture.session("ses-child")).status).toBe("working");
      expect([
        (await accountOf("ses-root"))?.spent.turns,
        (await accountOf("ses-child"))?.spent.turns,
      ]).toEqual([3, 2]);
    });

    test("ST30: a pause for want of a budget names the limit, and tells the parent which", async () => {
      const root = await payer({ maxTokens: 100 });
      const child = await fixture.spawn(root, "ses-child");
      const unnamed = { status: "paused", pauseReason: "budget_exceeded" } as const;
      expect(await child.commit({ session: unnamed })).toMatchObject({ status: "invalid" });
      await child.commit({ session: PARKED });
      expect(await fixture.session("ses-child")).toMatchObject(PARKED);
      expect(await fixture.sent("ses-root")).toEqual([
        ["child:0", { type: "budget_exceeded", limit: "maxTokens", used: 100, max: 100 }],
      ]);
      await fixture.apply(resuming("ses-child"));
      expect(await fixture.session("ses-child")).not.toHaveProperty("exhausted");
    });

    test("ST30: there is nothing to raise where there is no budget, no session, or an end", async () => {
      await fixture.createClaimed("ses-1");
      expect(await fixture.apply(raising("ses-1", { maxTokens: 5 }))).toMatchObject({ status: "invalid" });
      expect(await fixture.apply(raising("ses-none", { maxTokens: 5 }))).toEqual({ status: "not_found" });
      const root = await payer({ maxTokens: 100 });
      await root.commit({ session: PATCH_TO.completed });
      expect(await fixture.apply(raising("ses-root", { maxTokens: 500 }))).toEqual({
        status: "ended",
        sessionStatus: "completed",
      });
    });
  });
}
