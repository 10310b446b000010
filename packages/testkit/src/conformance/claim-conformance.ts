// ST6 and ST7: the right to advance a session, and its end.

import { expect, test } from "vitest";
import {
  creating,
  ENDINGS,
  LEASE_MS,
  releasing,
  signalling,
  STARTED,
  tokenOf,
  type Claimant,
  type Fixture,
} from "./fixture.ts";

export function claimConformance(fixture: Fixture): void {
  const claim = (owner: string, now: number, leaseMs = LEASE_MS, sessionId = "ses-1") =>
    fixture.storage.claim({ sessionId, owner, now, leaseMs });

  test("ST7: a claim that is not to be made twice is refused to its own owner, until its lease has passed", async () => {
    await fixture.apply(creating("ses-1"));
    const asked = { sessionId: "ses-1", owner: "owner-1", leaseMs: LEASE_MS, unlessHeld: true };
    expect(await fixture.storage.claim({ ...asked, now: 0 })).toMatchObject({ status: "claimed" });
    expect(await fixture.storage.claim({ ...asked, now: 1 })).toEqual({ status: "busy", owner: "owner-1" });
    expect(await fixture.storage.claim({ ...asked, now: LEASE_MS })).toMatchObject({ status: "claimed" });
  });

  test("ST6: every claim of a session has a higher token than the one before", async () => {
    const created = await fixture.createClaimed("ses-1", "owner-1");
    const tokens = [created.token];
    await created.release();
    const released = await fixture.claim("ses-1", "owner-2", 0);
    tokens.push(released.token);
    const lapsed = await fixture.claim("ses-1", "owner-3", LEASE_MS);
    tokens.push(lapsed.token);
    tokens.push((await fixture.claim("ses-1", "owner-3", LEASE_MS)).token);
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
    expect(tokens[0]).toBeGreaterThan(0);
  });

  // A process that lost sight of the session learns whether anybody held it meanwhile.
  test("ST6: a claim is told the token of the claim before it, however that one ended", async () => {
    const created = await fixture.createClaimed("ses-1", "owner-1");
    await fixture.createClaimed("ses-2", "owner-1");
    await created.release();
    const released = await claim("owner-2", 0);
    expect(released).toMatchObject({ status: "claimed", before: created.token });
    const lapsed = await claim("owner-3", LEASE_MS);
    expect(lapsed).toMatchObject({ before: tokenOf(released) });
    expect(await claim("owner-3", LEASE_MS)).toMatchObject({ before: tokenOf(lapsed) });
  });

  if (fixture.subject.reopen !== undefined) {
    // A process that was cut off before the machine restarted still holds its token, and may wake up.
    test("ST6: a claim after opening again has a higher token than any before it", async () => {
      const before = await fixture.createClaimed("ses-1");
      await before.release();
      const last = await fixture.claim("ses-1", "owner-1", 0);
      await fixture.reopen();
      await fixture.storage.due({ now: 0, limit: 1 }); // Its lease begins again (ST38).
      const after = await fixture.claim("ses-1", "owner-2", LEASE_MS);
      expect(after.token).toBeGreaterThan(last.token);
      expect(await last.commit({ records: [STARTED] }, LEASE_MS)).toEqual({ status: "fenced" });
      expect(await after.commit({ records: [STARTED] }, LEASE_MS)).toMatchObject({ status: "committed" });
    });
  }

  test("ST7: a claimed session is busy until its lease has passed, and free from then on", async () => {
    await fixture.apply(creating("ses-1"), 0);
    await fixture.claim("ses-1", "owner-1", 0);
    expect(await claim("owner-2", 0)).toEqual({ status: "busy", owner: "owner-1" });
    expect(await claim("owner-2", LEASE_MS - 1)).toEqual({ status: "busy", owner: "owner-1" });
    expect(await claim("owner-2", LEASE_MS)).toMatchObject({ status: "claimed" });
    expect(await claim("owner-1", LEASE_MS)).toEqual({ status: "busy", owner: "owner-2" });
  });

  test("ST7: a lease without end does not pass", async () => {
    await fixture.createClaimed("ses-1", "owner-1");
    expect(await claim("owner-2", Number.MAX_SAFE_INTEGER)).toEqual({ status: "busy", owner: "owner-1" });
  });

  test("ST7: a released session is free at once", async () => {
    const claimant = await fixture.createClaimed("ses-1", "owner-1");
    expect(await claimant.release()).toEqual({ status: "released" });
    expect(await claim("owner-2", 0)).toMatchObject({ status: "claimed" });
  });

  test("ST7: releasing twice is releasing once", async () => {
    const claimant = await fixture.createClaimed("ses-1");
    expect(await claimant.release()).toEqual({ status: "released" });
    expect(await claimant.release()).toEqual({ status: "released" });
  });

  // The late release of a runner that was overtaken would otherwise hand the session to a third.
  test("ST7: a release under an older token frees nothing", async () => {
    const overtaken = await fixture.createClaimed("ses-1", "owner-1");
    await overtaken.release();
    await fixture.claim("ses-1", "owner-2", 0);
    expect(await overtaken.release()).toEqual({ status: "fenced" });
    expect(await claim("owner-3", 1)).toEqual({ status: "busy", owner: "owner-2" });
  });

  // A coordinator releases a claim that no runner confirms, but not when a runner begins to use it at that
  // moment.
  test("ST7: a release of what is to be unchanged frees nothing that is used, nor what something arrived for", async () => {
    for (const [sessionId, use] of [
      ["ses-batch", (one: Claimant) => one.commit({ records: [STARTED] }, 5)],
      ["ses-empty", (one: Claimant) => one.commit({ records: [] }, 5)],
      ["ses-told", () => fixture.apply(signalling("ses-told", "sig-1"), 5)],
    ] as const) {
      await fixture.apply(creating(sessionId), 1);
      const claimant = await fixture.claim(sessionId, "owner-1", 2);
      const { nextSeq, updatedAt } = await fixture.session(sessionId);
      const release = { ...releasing(claimant), ifUnchanged: { nextSeq, updatedAt } };
      await use(claimant);
      expect(await fixture.apply(release, 6), sessionId).toEqual({ status: "fenced" });
      expect(await claim("owner-2", 6, LEASE_MS, sessionId)).toMatchObject({ status: "busy" });
    }
  });

  test("ST7: a release of what is to be unchanged frees what nobody has used", async () => {
    await fixture.apply(creating("ses-1"), 1);
    const claimant = await fixture.claim("ses-1", "owner-1", 2);
    const { nextSeq, updatedAt } = await fixture.session("ses-1");
    const release = { ...releasing(claimant), ifUnchanged: { nextSeq, updatedAt } };
    expect(await fixture.apply(release, 6)).toEqual({ status: "released" });
    await fixture.claim("ses-1", "owner-2", 6);
  });

  test("ST7: there is nothing to release in a session that was never claimed", async () => {
    await fixture.apply(creating("ses-1"), 0);
    expect(await fixture.apply(releasing({ sessionId: "ses-1", token: 0 }))).toEqual({ status: "fenced" });
  });

  test("ST7: exactly one of two simultaneous claims succeeds", async () => {
    await fixture.apply(creating("ses-1"), 0);
    const both = await Promise.all([claim("owner-1", 0), claim("owner-2", 0)]);
    expect(both.map(({ status }) => status).sort()).toEqual(["busy", "claimed"]);
  });

  test("ST7: claims of different sessions have nothing to do with each other", async () => {
    await fixture.createClaimed("ses-1", "owner-1");
    await fixture.apply(creating("ses-2"), 0);
    expect(await claim("owner-2", 0, LEASE_MS, "ses-2")).toMatchObject({ status: "claimed" });
  });

  // The reply to its claim was lost. Under one owner the lease never passes, so a refused owner would wait
  // for itself without end.
  test("ST7: its own owner may claim it again, and the token it had is fenced", async () => {
    const first = await fixture.createClaimed("ses-1", "owner-1");
    const again = await claim("owner-1", 1, Infinity);
    expect(again).toMatchObject({ status: "claimed" });
    expect(tokenOf(again as { status: "claimed"; token: number })).toBeGreaterThan(first.token);
    expect(await first.commit({ records: [STARTED] })).toEqual({ status: "fenced" });
  });

  test("ST7: a session created for an owner is claimed by it from the beginning", async () => {
    const claimFor = { owner: "owner-1", leaseMs: LEASE_MS };
    expect(await fixture.apply(creating("ses-1", { claimFor }), 10)).toEqual({
      status: "created",
      token: expect.any(Number),
    });
    expect(await claim("owner-2", 10 + LEASE_MS - 1)).toEqual({ status: "busy", owner: "owner-1" });
    expect(await claim("owner-2", 10 + LEASE_MS)).toMatchObject({ status: "claimed" });
  });

  test("ST7: a session created for nobody comes without a token", async () => {
    expect(await fixture.apply(creating("ses-1"), 0)).toEqual({ status: "created" });
    expect(await claim("owner-1", 0)).toMatchObject({ status: "claimed" });
  });

  for (const status of ENDINGS) {
    test(`ST7: a session that is ${status} is not claimed any more`, async () => {
      const claimant = await fixture.createIn(status);
      expect(await claim("owner-2", 1)).toEqual({ status: "ended", sessionStatus: status });
      expect(await claimant.release()).toEqual({ status: "released" });
      expect(await claim("owner-1", 1)).toEqual({ status: "ended", sessionStatus: status });
    });
  }

  test("ST7: a claim of a session that does not exist is not_found", async () => {
    expect(await claim("owner-1", 0, LEASE_MS, "ses-none")).toEqual({ status: "not_found" });
  });

  test("ST7: claiming and releasing leave the session's row as it is", async () => {
    await fixture.apply(creating("ses-1"), 0);
    const before = await fixture.session("ses-1");
    const claimant = await fixture.claim("ses-1", "owner-1", 5);
    await claimant.release();
    expect(await fixture.session("ses-1")).toEqual(before);
  });
}
