// ST53, ST54: budgets per window. A session that nobody resumes when its window has rolled on sleeps without
// end.

import type { Budget, Change, Charge, Exhausted } from "@holdfast/core";
import { describe, expect, test } from "vitest";
import { listen } from "../arrival-listener.ts";
import {
  cancelling,
  checkpointing,
  Claimant,
  creating,
  PATCH_TO,
  pausing,
  raising,
  reserving,
  scheduling,
  settling,
  signalling,
  spawning,
  tokenOf,
  tokens,
  type Fixture,
} from "../fixture.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** A day's beginning, so that clock hours are easy to count. */
const T = 20_000 * DAY;
const ADMITTED = { status: "admitted" };

export function windowConformance(fixture: Fixture): void {
  async function payer(budget: Budget, sessionId = "ses-root"): Promise<Claimant> {
    const claimFor = { owner: "owner-1", leaseMs: Infinity };
    const created = await fixture.apply(creating(sessionId, { budget, claimFor }), T);
    return new Claimant(fixture, sessionId, tokenOf(created));
  }
  const charge = (claimant: Claimant, now: number, ...charges: readonly Charge[]) =>
    claimant.commit({ records: [scheduling("model")], charges }, now);
  const spending = (task: number, count: number) => [reserving(task, count), settling(task, count)];
  const granting = (sessionId: string, grant: "day" | "hour" | "month" | "run" | "turn"): Change => {
    return { type: "set_budget", sessionId, limits: {}, grant };
  };
  const spentOf = async (sessionId = "ses-root") => (await fixture.session(sessionId)).account?.spent.tokens;
  const remaining = async (sessionId = "ses-root") =>
    (await fixture.storage.load(sessionId))?.remaining?.tokens;
  const due = (now: number) => fixture.storage.due({ now, limit: 100 });
  const tenPerDay: Budget = { windows: [{ per: "day", maxTokens: 10 }] };

  /** Exhaust the window, and pause as a driver does. */
  async function park(claimant: Claimant, now: number, count = 10): Promise<Exhausted> {
    const result = await charge(claimant, now, ...spending(0, 10), reserving(1, count));
    const [, refused] = (result as { admissions?: readonly unknown[] }).admissions ?? [];
    const { status, ...exhausted } = refused as Exhausted & { readonly status: string };
    expect(status).toBe("refused");
    const session = { status: "paused", pauseReason: "budget_exceeded", exhausted } as const;
    expect(await claimant.commit({ session }, now)).toMatchObject({ status: "committed" });
    await claimant.release();
    return exhausted;
  }

  describe("windows that roll", () => {
    test("ST53: a refusal names the window, and the time when enough of it is free", async () => {
      const root = await payer(tenPerDay);
      expect(await charge(root, T, ...spending(0, 4))).toMatchObject({ remaining: { tokens: 6 } });
      expect(await charge(root, T + HOUR, ...spending(1, 6))).toMatchObject({ remaining: { tokens: 0 } });
      expect(await charge(root, T + DAY - 1, reserving(2, 1))).toMatchObject({
        admissions: [
          {
            status: "refused",
            payer: "ses-root",
            limit: "maxTokens",
            per: "day",
            used: 10,
            max: 10,
            until: T + DAY,
            then: "park",
          },
        ],
      });
      expect(await charge(root, T + DAY, reserving(2, 4), reserving(3, 1))).toMatchObject({
        admissions: [ADMITTED, { status: "queued" }],
      });
    });

    test("ST53: the whole tree draws from the window of the payer", async () => {
      const root = await payer(tenPerDay);
      const child = await fixture.spawn(root, "ses-child");
      const leaf = await fixture.spawn(child, "ses-leaf", {
        budget: { windows: [{ per: "hour", maxTokens: 5 }] },
      });
      await charge(leaf, T, ...spending(0, 5));
      expect(await charge(leaf, T, reserving(1, 1))).toMatchObject({
        admissions: [{ payer: "ses-leaf", per: "hour", until: T + HOUR }],
      });
      await charge(leaf, T + HOUR, ...spending(1, 5));
      expect(await charge(child, T + HOUR, reserving(0, 1))).toMatchObject({
        admissions: [{ payer: "ses-root", per: "day", until: T + DAY }],
      });
      expect(await spentOf()).toBe(10);
    });

    test("ST53: the remaining amount is as of the latest time that was told", async () => {
      const root = await payer(tenPerDay);
      await charge(root, T, ...spending(0, 10));
      expect([await remaining(), (await fixture.storage.arrivals("ses-root", 0)).remaining]).toEqual([
        0,
        { tokens: 0 },
      ]);
      await due(T + DAY);
      expect([await remaining(), (await fixture.storage.arrivals("ses-root", 0)).remaining]).toEqual([
        10,
        { tokens: 10 },
      ]);
    });

    test("ST53: a paused session resumes when its window has rolled on, and not before", async () => {
      const root = await payer(tenPerDay);
      const exhausted = await park(root, T);
      expect(exhausted).toMatchObject({ per: "day", until: T + DAY });
      const listener = listen(fixture);
      expect(await due(T + DAY - 1)).toEqual({ sessionIds: [], schedules: [], nextAt: T + DAY });
      expect((await fixture.session("ses-root")).status).toBe("paused");
      expect((await due(T + DAY)).sessionIds).toEqual(["ses-root"]);
      const resumed = await fixture.session("ses-root");
      expect(resumed).toMatchObject({ status: "working", updatedAt: T + DAY });
      expect(resumed).not.toHaveProperty("exhausted");
      expect(await listener.received(1)).toEqual([{ sessionId: "ses-root", awaited: true }]);
      const again = await fixture.claim("ses-root", "owner-2", T + DAY);
      expect(await charge(again, T + DAY, reserving(1, 10))).toMatchObject({ admissions: [ADMITTED] });
    });

    test("ST53: a refused turn is paid for when its window has rolled on, or waits for the next", async () => {
      const root = await payer({ windows: [{ per: "hour", maxTurns: 1 }] });
      const turn = { type: "turn" } as const;
      const result = await charge(root, T, turn, turn);
      const [, refused] = (result as { admissions?: readonly unknown[] }).admissions ?? [];
      const { status: _, ...exhausted } = refused as Exhausted & { readonly status: string };
      expect(exhausted).toMatchObject({ limit: "maxTurns", per: "hour", until: T + HOUR });
      await root.commit({ session: { status: "paused", pauseReason: "budget_exceeded", exhausted } }, T);
      await root.release();
      expect((await due(T + HOUR)).sessionIds).toEqual(["ses-root"]);
      expect((await fixture.session("ses-root")).account?.spent.turns).toBe(2);
      const again = await fixture.claim("ses-root", "owner-2", T + HOUR);
      expect(await charge(again, T + HOUR, turn)).toMatchObject({ admissions: [{ until: T + 2 * HOUR }] });
    });

    test("ST53: a session that is paused for more than the whole limit waits for a person", async () => {
      const root = await payer(tenPerDay);
      const exhausted = await park(root, T, 11);
      expect(exhausted).not.toHaveProperty("until");
      expect(await due(T + 100 * DAY)).toEqual({ sessionIds: [], schedules: [] });
    });

    test("ST53: a person who pauses such a session keeps it paused", async () => {
      const root = await payer(tenPerDay);
      await park(root, T);
      expect(await fixture.apply(pausing("ses-root"), T)).toEqual({
        status: "requested",
        sessionStatus: "paused",
      });
      expect(await due(T + 100 * DAY)).toEqual({ sessionIds: [], schedules: [] });
      expect(await fixture.session("ses-root")).toMatchObject({ pauseReason: "budget_exceeded" });
    });

    test("ST53: a deadline or a cancel ends such a session before its window rolls on", async () => {
      const root = await payer(tenPerDay);
      await park(root, T);
      await fixture.apply(cancelling("ses-root", { graceMs: HOUR }), T);
      await due(T + HOUR);
      expect(await fixture.session("ses-root")).toMatchObject({ status: "cancelled" });
      expect(await due(T + 100 * DAY)).toEqual({ sessionIds: [], schedules: [] });
    });

    test("ST53: the parent of a low account is told again when the window has rolled on", async () => {
      const root = await payer({});
      const child = await fixture.spawn(root, "ses-child", { budget: tenPerDay });
      const lows = async () => (await fixture.sent("ses-root")).length;
      await charge(child, T, ...spending(0, 10));
      expect(await lows()).toBe(1);
      await charge(child, T + DAY, ...spending(1, 1));
      expect(await lows()).toBe(1);
      await charge(child, T + DAY, ...spending(2, 9));
      expect(await lows()).toBe(2);
    });

    if (fixture.subject.reopen !== undefined) {
      test("ST53: windows and the time of a resume survive closing and opening again", async () => {
        const root = await payer({ ...tenPerDay, maxTokens: 1_000 });
        await park(root, T);
        const before = await fixture.session("ses-root");
        await fixture.reopen();
        expect(await fixture.session("ses-root")).toEqual(before);
        expect((await due(T + DAY - 1)).nextAt).toBe(T + DAY);
        expect((await due(T + DAY)).sessionIds).toEqual(["ses-root"]);
      });
    }
  });

  describe("runs and turns", () => {
    const perRun: Budget = { windows: [{ per: "run", maxTokens: 10 }] };

    test("ST53: a run ends when the session is blocked and none of its tasks runs", async () => {
      const root = await payer(perRun);
      await charge(root, T, ...spending(0, 10));
      expect(await charge(root, T, reserving(1, 1))).toMatchObject({
        admissions: [{ per: "run", used: 10 }],
      });
      expect(await root.commit({ session: PATCH_TO.waiting }, T)).toMatchObject({
        remaining: { tokens: 10 },
      });
      await fixture.apply(signalling("ses-root", "sig-1"), T);
      expect(await charge(root, T, reserving(1, 10))).toMatchObject({ admissions: [ADMITTED] });
      // A person is asked while the task runs, so this run continues.
      await root.commit({ session: PATCH_TO.input_required }, T);
      expect(await charge(root, T, settling(1, 10), reserving(2, 1))).toMatchObject({
        admissions: [{ status: "refused", per: "run" }],
      });
    });

    test("ST53: neither a new claim nor a run of a child ends the run of a payer", async () => {
      const root = await payer(perRun);
      const child = await fixture.spawn(root, "ses-child");
      await charge(child, T, ...spending(0, 10));
      await child.commit({ session: PATCH_TO.waiting }, T);
      await root.commit({ session: PATCH_TO.working }, T);
      await root.release();
      const again = await fixture.claim("ses-root", "owner-2", T);
      expect(await charge(again, T, reserving(0, 1))).toMatchObject({ admissions: [{ per: "run" }] });
    });

    test("ST53: a turn of the payer's own session empties the window of a turn", async () => {
      const root = await payer({ windows: [{ per: "turn", maxTokens: 10 }] });
      const child = await fixture.spawn(root, "ses-child");
      await charge(root, T, ...spending(0, 10));
      await charge(child, T, { type: "turn" });
      expect(await charge(root, T, reserving(1, 1))).toMatchObject({ admissions: [{ per: "turn" }] });
      const charges = [{ type: "turn" } as const, reserving(2, 10)];
      expect(await root.commit({ records: [checkpointing("1")], charges }, T)).toMatchObject({
        admissions: [ADMITTED, ADMITTED],
      });
    });

    test("ST53: a successor's runs and turns are those of its predecessor's account", async () => {
      const top = await payer({});
      const budget: Budget = {
        windows: [
          { per: "turn", maxTokens: 10 },
          { per: "run", maxTokens: 20 },
        ],
      };
      const child = await fixture.spawn(top, "ses-child", { budget });
      await charge(child, T, ...spending(0, 10));
      const parent = { sessionId: "ses-root", child: 0, onEnd: "cancel" } as const;
      await child.commit({
        records: [spawning("agent")],
        effects: [creating("ses-successor", { parent })],
        session: { ...PATCH_TO.completed, handedOffTo: "ses-successor" },
      });
      const successor = await fixture.claim("ses-successor", "owner-1", T);
      expect(await charge(successor, T, reserving(0, 1))).toMatchObject({ admissions: [{ per: "turn" }] });
      expect(await charge(successor, T, { type: "turn" }, ...spending(1, 10))).toMatchObject({
        admissions: [ADMITTED, ADMITTED],
      });
      expect(await charge(successor, T, { type: "turn" }, reserving(2, 1))).toMatchObject({
        admissions: [ADMITTED, { status: "refused", payer: "ses-child", per: "run" }],
      });
      await successor.commit({ session: PATCH_TO.waiting }, T);
      expect(await charge(successor, T, reserving(2, 10))).toMatchObject({ admissions: [ADMITTED] });
    });
  });

  describe("grants", () => {
    test("ST54: a grant empties one window, and resumes what is paused for it", async () => {
      const root = await payer({ maxTokens: 25, windows: [{ per: "day", maxTokens: 10 }] });
      const child = await fixture.spawn(root, "ses-child");
      await park(child, T);
      expect(await fixture.apply(granting("ses-root", "day"), T + HOUR)).toMatchObject({
        status: "requested",
      });
      expect((await fixture.session("ses-child")).status).toBe("working");
      const again = await fixture.claim("ses-child", "owner-2", T + HOUR);
      expect(await charge(again, T + HOUR, ...spending(1, 10))).toMatchObject({
        admissions: [ADMITTED],
        remaining: { tokens: 0 },
      });
      expect(await charge(again, T + DAY, reserving(2, 1))).toMatchObject({
        admissions: [{ status: "refused", per: "day", until: T + HOUR + DAY }],
      });
      expect(await spentOf()).toBe(20);
    });

    test("ST54: a session that pauses for a window that was granted meanwhile continues", async () => {
      const root = await payer(tenPerDay);
      const result = await charge(root, T, ...spending(0, 10), reserving(1, 10));
      const [, refused] = (result as { admissions?: readonly unknown[] }).admissions ?? [];
      const { status: _, ...exhausted } = refused as Exhausted & { readonly status: string };
      await fixture.apply(granting("ses-root", "day"), T);
      const session = { status: "paused", pauseReason: "budget_exceeded", exhausted } as const;
      await root.commit({ session }, T);
      expect((await fixture.session("ses-root")).status).toBe("working");
    });

    test("ST54: a raise of a window resumes what is paused for it, and its ledger stays", async () => {
      const root = await payer(tenPerDay);
      await park(root, T);
      await fixture.apply(raising("ses-root", { windows: [{ per: "day", maxTokens: 15 }] }), T);
      expect(await fixture.session("ses-root")).toMatchObject({
        status: "working",
        account: { limits: { windows: [{ per: "day", maxTokens: 15 }] } },
      });
      const again = await fixture.claim("ses-root", "owner-2", T);
      expect(await charge(again, T, reserving(1, 5), reserving(2, 1))).toMatchObject({
        admissions: [ADMITTED, { status: "queued" }],
      });
      expect(await charge(again, T, reserving(3, 6))).toMatchObject({ admissions: [{ used: 10, max: 15 }] });
    });

    test("ST54: there is no window to grant where there is no limit", async () => {
      await payer(tenPerDay);
      expect(await fixture.apply(granting("ses-root", "month"), T)).toMatchObject({ status: "invalid" });
    });
  });

  test("ST53: an account without windows has no ledgers", async () => {
    const root = await payer({ maxTokens: 100 });
    await charge(root, T, ...spending(0, 5), { type: "turn" });
    expect((await fixture.session("ses-root")).account).toEqual({
      limits: { maxTokens: 100 },
      spent: { ...tokens(5), turns: 1 },
      reserved: tokens(0),
      low: false,
    });
  });
}
