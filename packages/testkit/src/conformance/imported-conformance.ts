// ST26, ST36 and ST43: imported rows may name sessions that do not exist yet, and trees may be circular. A name
// alone reaches no session of another owner, and no loop runs without end.

import type { Placement, Session } from "@holdfast/core";
import { describe, expect, test } from "vitest";
import {
  cancelling,
  Claimant,
  creating,
  PATCH_TO,
  raising,
  reserving,
  settling,
  signalling,
  STARTED,
  tokenOf,
  tokens,
  type Fixture,
} from "./fixture.ts";

const EVE: Placement = { owner: "eve" };
const CLAIM = { owner: "owner-1", leaseMs: Infinity };

export function importedRowConformance(fixture: Fixture): void {
  async function importSession(sessionId: string, more: Partial<Session>): Promise<void> {
    await fixture.apply(creating("ses-pattern"));
    const pattern = await fixture.session("ses-pattern");
    const session = { ...pattern, sessionId, ...more };
    const change = { type: "import_session", sessionId, session, records: [], entries: [] } as const;
    expect(await fixture.apply(change)).toEqual({ status: "created" });
  }
  const below = (sessionId: string) => ({ sessionId, child: 0, onEnd: "cancel" }) as const;
  const remove = (sessionId: string) =>
    fixture.apply({ type: "delete_session", sessionId, subtree: "delete" });
  const account = { limits: { maxTokens: 9 }, spent: tokens(0), reserved: tokens(0), low: false };

  describe("sessions that name others", () => {
    for (const [whose, placement] of [
      ["another owner's", { owner: "ada" }],
      ["their owner's", EVE],
    ] as const) {
      const isOwn = placement === EVE;
      test(`ST36: a session that is created later with the id of a parent and payer is notified and charged if it is ${whose}: ${isOwn}`, async () => {
        await importSession("ses-eves", { placement: EVE, parent: below("ses-desk"), payers: ["ses-desk"] });
        const budget = { maxTokens: 100 };
        const made = await fixture.apply(creating("ses-desk", { placement, budget, claimFor: CLAIM }));
        const before = await fixture.everything("ses-desk");
        const eves = await fixture.claim("ses-eves", "owner-1", 1, Infinity);
        const charges = [reserving(0, 60), settling(0, 95), reserving(1, 60)];
        await eves.commit({ records: [STARTED], charges, effects: [signalling("ses-desk", "sig-1")] });
        await eves.commit({ session: PATCH_TO.completed });
        if (!isOwn) return expect(await fixture.everything("ses-desk")).toEqual(before);
        const names = (await fixture.sent("ses-desk")).map(([name]) => name);
        expect(names).toEqual(["go", "child:0", "child-end:0"]);
        expect((await fixture.session("ses-desk")).account?.spent.tokens).toBe(95);
        expect(await new Claimant(fixture, "ses-desk", tokenOf(made)).commit({})).toMatchObject({
          status: "committed",
        });
      });
    }

    for (const [whose, placement] of [
      ["another owner's", EVE],
      ["their owner's", { owner: "ada" }],
    ] as const) {
      const isOwn = placement !== EVE;
      const made = () => importSession("ses-desk", { placement, account, payers: ["ses-desk"] });
      const ada = { placement: { owner: "ada" }, parent: below("ses-desk") };
      const hard = cancelling("ses-desk", { mode: "hard" });

      test(`ST36: rows that name a session that is created later as their parent are cancelled with it if it is ${whose}: ${isOwn}`, async () => {
        await importSession("ses-1", ada);
        await importSession("ses-2", { ...ada, status: "completed", endedAt: 1 });
        await importSession("ses-3", { ...ada, parent: below("ses-2") });
        await made();
        expect(await fixture.apply(hard)).toMatchObject({ status: "requested" });
        for (const sessionId of ["ses-1", "ses-3"])
          expect((await fixture.session(sessionId)).status).toBe(isOwn ? "cancelled" : "submitted");
      });

      test(`ST36: rows that name a session that is created later as their parent move and are deleted with it if it is ${whose}: ${isOwn}`, async () => {
        await importSession("ses-1", ada);
        await made();
        const move = { type: "begin_move", sessionId: "ses-desk", moveId: "mov-1" } as const;
        expect((await fixture.apply({ ...move, to: "elsewhere" })).status).toBe(
          isOwn ? "invalid" : "requested",
        );
        await fixture.apply({ ...move, type: "end_move", outcome: "stayed" });
        await fixture.apply(hard);
        expect(await fixture.apply(raising("ses-desk", { maxTokens: 95 }))).toMatchObject({
          status: "ended",
        });
        const deletion = { type: "delete_session", sessionId: "ses-desk", subtree: "refuse" } as const;
        expect((await fixture.apply(deletion)).status).toBe(isOwn ? "has_children" : "deleted");
        if (!isOwn) await made();
        await fixture.apply(hard);
        expect(await remove("ses-desk")).toEqual({ status: "deleted", sessions: isOwn ? 2 : 1 });
      });

      test(`ST36: a row that names a session that is created later as its payer is resumed with its budget if it is ${whose}: ${isOwn}`, async () => {
        const exhausted = { payer: "ses-desk", limit: "maxTokens", used: 50, max: 50, then: "park" } as const;
        const paused = { status: "paused", pauseReason: "budget_exceeded", exhausted } as const;
        await importSession("ses-1", { ...ada, ...paused, payers: ["ses-desk"] });
        await made();
        expect(await fixture.apply(raising("ses-desk", { maxTokens: 90 }))).toMatchObject({
          status: "requested",
        });
        expect((await fixture.session("ses-1")).status).toBe(isOwn ? "working" : "paused");
      });
    }

    test("ST36: the payer that a paused row names reveals nothing of another owner's limits", async () => {
      const budget = { maxTokens: 100 };
      await fixture.apply(creating("ses-desk", { placement: { owner: "ada" }, budget }));
      await importSession("ses-eves", { placement: EVE });
      const eves = await fixture.claim("ses-eves", "owner-1", 1, Infinity);
      const exhausted = { payer: "ses-desk", limit: "maxTokens", used: 50, max: 50, then: "park" } as const;
      await eves.commit({ session: { status: "paused", pauseReason: "budget_exceeded", exhausted } });
      expect((await fixture.session("ses-eves")).status).toBe("paused");
    });

    test("ST43: neither what another owner's session does nor heirs that go round stand in a deletion's way", async () => {
      await fixture.apply(creating("ses-desk", { placement: { owner: "ada" } }));
      const ended = { placement: EVE, status: "completed", endedAt: 1 } as const;
      await importSession("ses-1", { ...ended, handedOffTo: "ses-desk" });
      await importSession("ses-2", { ...ended, handedOffTo: "ses-2" });
      await importSession("ses-3", { ...ended, handedOffTo: "ses-4" });
      await importSession("ses-4", { ...ended, handedOffTo: "ses-3" });
      for (const sessionId of ["ses-1", "ses-2", "ses-3", "ses-4"])
        expect(await remove(sessionId)).toEqual({ status: "deleted", sessions: 1 });
    });

    for (const isParentFirst of [true, false]) {
      test(`ST46: an end that was told elsewhere is told again, and only to its own owner's (parent first: ${isParentFirst})`, async () => {
        const family = [
          ["ses-ada", { placement: { owner: "ada" } }],
          ["ses-ada-0", { placement: { owner: "ada" }, parent: below("ses-ada") }],
          ["ses-eve-0", { placement: EVE, parent: { ...below("ses-ada"), child: 1 } }],
        ] as const;
        const ended = { status: "completed", output: "5", endedAt: 1 } as const;
        for (const [sessionId, more] of isParentFirst ? family : family.toReversed())
          await importSession(sessionId, "parent" in more ? { ...more, ...ended } : more);
        expect((await fixture.sent("ses-ada")).map(([name]) => name)).toEqual(["child:0", "child-end:0"]);
      });
    }

    test("ST26: a signal to a session with circular successors reaches no session", async () => {
      await importSession("ses-1", { status: "completed", endedAt: 1, handedOffTo: "ses-2" });
      await importSession("ses-2", { status: "completed", endedAt: 1, handedOffTo: "ses-1" });
      const asking = await fixture.createClaimed("ses-asking");
      const effects = [signalling("ses-1", "sig-1"), cancelling("ses-2")];
      expect(await asking.commit({ records: [STARTED], effects })).toMatchObject({ status: "committed" });
    });

    test("ST26: a cancel and a budget go through a family that goes round, once", async () => {
      await importSession("ses-1", { parent: below("ses-2") });
      await importSession("ses-2", { parent: below("ses-1"), account, payers: ["ses-2"] });
      expect(await fixture.apply(cancelling("ses-1", { mode: "hard" }))).toMatchObject({
        status: "requested",
      });
      expect((await fixture.session("ses-2")).status).toBe("cancelled");
      expect(await fixture.apply(raising("ses-2", { maxTokens: 90 }))).toMatchObject({ status: "ended" });
    });
  });
}
