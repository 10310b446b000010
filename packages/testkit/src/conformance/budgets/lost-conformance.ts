// ST51, ST56: charges that no admission precedes. They are those for attempts that were lost with their
// process, which a person takes back, and those that signals bring while a task runs.

import type { Budget, Change, Charge } from "@holdfast/core";
import { describe, expect, test } from "vitest";
import {
  Claimant,
  creating,
  PATCH_TO,
  raising,
  reserving,
  scheduling,
  settling,
  signalling,
  tokenOf,
  tokens,
  type Fixture,
} from "../fixture.ts";

const PARENT = { sessionId: "ses-root", child: 0, onEnd: "cancel" } as const;

export function lostConformance(fixture: Fixture): void {
  async function payer(budget: Budget, sessionId = "ses-root"): Promise<Claimant> {
    const claimFor = { owner: "owner-1", leaseMs: Infinity };
    const created = await fixture.apply(creating(sessionId, { budget, claimFor }), 0);
    return new Claimant(fixture, sessionId, tokenOf(created));
  }
  const charge = (claimant: Claimant, ...charges: readonly Charge[]) =>
    claimant.commit({ records: [scheduling("model")], charges });
  const losing = (task: number, count: number): readonly Charge[] => [
    reserving(task, count),
    { type: "settle", task, used: tokens(count), lost: true },
  ];
  const releasing = (sessionId: string, limits: Budget = {}): Change => {
    return { type: "set_budget", sessionId, limits, releaseLost: true };
  };
  const accountOf = async (sessionId: string) => (await fixture.session(sessionId)).account;

  test("ST51: the charge for lost attempts is a part of the spent amount, and absent without any", async () => {
    const root = await payer({ maxTokens: 100 });
    await charge(root, reserving(0, 40), settling(0, 10));
    expect(await accountOf("ses-root")).not.toHaveProperty("lost");
    await charge(root, ...losing(1, 20));
    await charge(root, ...losing(2, 5), reserving(3, 7));
    expect(await accountOf("ses-root")).toEqual({
      limits: { maxTokens: 100 },
      spent: tokens(35),
      reserved: tokens(7),
      lost: tokens(25),
      low: false,
    });
    expect((await fixture.storage.load("ses-root"))?.remaining).toEqual({ tokens: 58 });
  });

  test("ST56: a signal that spends is charged once to all payers, and answers what is not spent", async () => {
    const root = await payer({ maxTokens: 100 });
    await charge(root, reserving(0, 60));
    await fixture.apply(creating("ses-child", { parent: PARENT, budget: { maxTokens: 50 } }));
    const first = signalling("ses-child", "sig-1", { dedupKey: "k", spends: tokens(30) });
    expect(await fixture.apply(first)).toMatchObject({ status: "stored", unspent: { tokens: 20 } });
    for (const again of [first, { ...first, signalId: "sig-2" }])
      expect(await fixture.apply(again)).toEqual({ status: "duplicate", unspent: { tokens: 20 } });
    // It is a report, so nothing refuses it.
    const late = signalling("ses-root", "sig-3", { spends: tokens(90) });
    expect(await fixture.apply(late)).toMatchObject({ status: "stored", unspent: { tokens: 0 } });
    expect(await accountOf("ses-child")).toMatchObject({ spent: tokens(30) });
    expect(await accountOf("ses-root")).toMatchObject({ spent: tokens(120), reserved: tokens(60) });
    expect(await charge(root, settling(0, 10), reserving(1, 5))).toMatchObject({
      admissions: [{ status: "refused", limit: "maxTokens", used: 130, max: 100, asked: 5 }],
    });
    await fixture.createClaimed();
    const unpaid = await fixture.apply(signalling("ses-1", "sig-4", { spends: tokens(5) }));
    expect(unpaid).not.toHaveProperty("unspent");
  });

  test("ST51: a step is counted though its attempt is lost, and is not released", async () => {
    const root = await payer({ maxSteps: 9 });
    const amount = { ...tokens(20), steps: 1 };
    await charge(root, { type: "reserve", task: 0, amount });
    await charge(root, { type: "settle", task: 0, used: amount, lost: true });
    expect(await accountOf("ses-root")).toMatchObject({ spent: amount, lost: tokens(20) });
    await fixture.apply(releasing("ses-root"));
    expect((await accountOf("ses-root"))?.spent).toEqual({ ...tokens(0), steps: 1 });
  });

  test("ST51: a release makes the lost part unspent, and a second one changes nothing", async () => {
    const root = await payer({ maxTokens: 100 });
    await charge(root, reserving(0, 10), settling(0, 10), ...losing(1, 85), reserving(2, 5));
    expect(await accountOf("ses-root")).toMatchObject({ lost: tokens(85), low: true });
    const released = {
      limits: { maxTokens: 100 },
      spent: tokens(10),
      reserved: tokens(5),
      low: false,
    };
    for (const now of [3, 4]) {
      expect(await fixture.apply(releasing("ses-root"), now)).toMatchObject({ status: "requested" });
      expect(await accountOf("ses-root")).toEqual(released);
    }
    expect(await charge(root, reserving(3, 85))).toMatchObject({
      admissions: [{ status: "admitted" }],
      remaining: { tokens: 0 },
    });
    await charge(root, ...losing(4, 0), settling(3, 85));
    expect(await accountOf("ses-root")).not.toHaveProperty("lost");
  });

  test("ST51: limits are replaced and the lost part is released in one change", async () => {
    const root = await payer({ maxTokens: 100 });
    await charge(root, ...losing(0, 60));
    await fixture.apply(raising("ses-root", { maxTokens: 150 }));
    expect(await accountOf("ses-root"), "a raise releases nothing").toMatchObject({ lost: tokens(60) });
    await fixture.apply(releasing("ses-root", { maxTokens: 200 }));
    expect(await accountOf("ses-root")).toMatchObject({ limits: { maxTokens: 200 }, spent: tokens(0) });
  });

  test("ST51: each payer is charged for itself, and one is released alone", async () => {
    const root = await payer({ maxTokens: 100 });
    const child = await fixture.spawn(root, "ses-child", { budget: { maxTokens: 50 } });
    await charge(root, ...losing(0, 10));
    await charge(child, ...losing(0, 30));
    expect(await accountOf("ses-root")).toMatchObject({ spent: tokens(40), lost: tokens(40) });
    await fixture.apply(releasing("ses-child"));
    expect(await accountOf("ses-child")).toMatchObject({ spent: tokens(0) });
    expect(await accountOf("ses-root")).toMatchObject({ spent: tokens(40), lost: tokens(40) });
  });

  test("ST51: a release resumes those below that were paused for want of this budget", async () => {
    const root = await payer({ maxTokens: 100 });
    const child = await fixture.spawn(root, "ses-child");
    await charge(root, ...losing(0, 100));
    const exhausted = { payer: "ses-root", limit: "maxTokens", used: 100, max: 100, then: "park" } as const;
    await child.commit({ session: { status: "paused", pauseReason: "budget_exceeded", exhausted } });
    await fixture.apply(releasing("ses-root"), 7);
    const resumed = await fixture.session("ses-child");
    expect(resumed.status).toBe("working");
    expect(resumed).not.toHaveProperty("exhausted");
  });

  test("ST51: the reservations of an ephemeral session are charged as lost when its process dies", async () => {
    const root = await payer({ maxTokens: 100 });
    const child = await fixture.spawn(root, "ses-child");
    await charge(child, reserving(0, 40));
    const error = { name: "HoldfastError", message: "gone", code: "session_lost" };
    await child.commit({ session: { ...PATCH_TO.failed, error } });
    expect(await accountOf("ses-root")).toMatchObject({ spent: tokens(40), lost: tokens(40) });
  });

  test("ST51: a session without a budget has nothing to release", async () => {
    await fixture.createClaimed("ses-1");
    expect(await fixture.apply(releasing("ses-1"))).toMatchObject({ status: "invalid" });
    expect(await fixture.apply(releasing("ses-none"))).toEqual({ status: "not_found" });
  });

  describe("elsewhere", () => {
    async function imported(lost: number): Promise<Change> {
      const root = await payer({ maxTokens: 100 });
      await charge(root, ...losing(0, 30));
      const { checkpointSeq: _none, ...session } = await fixture.session("ses-root");
      const { account } = session;
      if (account === undefined) throw new Error("the session has no account");
      const sessionId = "ses-2";
      const row = { sessionId, payers: [sessionId], nextSeq: 0, entryCount: 0, inbox: 0 };
      return {
        type: "import_session",
        sessionId,
        session: { ...session, ...row, account: { ...account, lost: tokens(lost) } },
        records: [],
        entries: [],
      };
    }

    test("ST51: an imported session keeps its lost part", async () => {
      expect(await fixture.apply(await imported(30))).toMatchObject({ status: "created" });
      expect(await accountOf("ses-2")).toMatchObject({ spent: tokens(30), lost: tokens(30) });
    });

    test("ST51: a session that lost more than it has spent is not imported", async () => {
      expect(await fixture.apply(await imported(31))).toMatchObject({
        status: "invalid",
        reason: expect.stringContaining("more charged for lost attempts than it has spent"),
      });
    });

    if (fixture.subject.reopen !== undefined) {
      test("ST51: the lost part survives closing and opening again", async () => {
        const root = await payer({ maxTokens: 100 });
        await charge(root, ...losing(0, 30), reserving(1, 5));
        const before = await fixture.storage.load("ses-root");
        await fixture.reopen();
        expect(await fixture.storage.load("ses-root")).toEqual(before);
        await fixture.apply(releasing("ses-root"));
        await fixture.reopen();
        expect(await accountOf("ses-root")).toMatchObject({ spent: tokens(0), reserved: tokens(5) });
      });
    }
  });
}
