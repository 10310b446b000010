// ST37 to ST39, and ST48: claims with leases. A live runner keeps all of its sessions with one call, and a
// dead runner loses them in time. A session that costs one runner after the other is noticed.

import { expect, test } from "vitest";
import type { AgentStorage } from "@holdfast/core";
import {
  creating,
  ENDINGS,
  LEASE_MS,
  PATCH_TO,
  scheduling,
  signalling,
  STARTED,
  type Fixture,
} from "./fixture.ts";

export function leaseConformance(fixture: Fixture): void {
  const claim = (owner: string, now: number, sessionId = "ses-1", leaseMs = LEASE_MS) =>
    fixture.storage.claim({ sessionId, owner, now, leaseMs });
  const renew = (owner: string, now: number, leaseMs = LEASE_MS) =>
    fixture.storage.renew({ owner, now, leaseMs });
  const busy = (owner: string) => ({ status: "busy", owner });

  test("ST37: one call renews every claim of an owner, and nobody else's", async () => {
    for (const n of [1, 2, 3]) await fixture.apply(creating(`ses-${n}`), 0);
    await fixture.claim("ses-1", "owner-1", 0);
    await fixture.claim("ses-2", "owner-1", 0, LEASE_MS / 2);
    await fixture.claim("ses-3", "owner-2", 0);
    expect(await renew("owner-1", 400)).toEqual({ sessions: 2 });
    for (const sessionId of ["ses-1", "ses-2"])
      expect(await claim("owner-3", 400 + LEASE_MS - 1, sessionId)).toEqual(busy("owner-1"));
    expect((await fixture.storage.due({ now: 400 + LEASE_MS - 1, limit: 10 })).sessionIds).toEqual(["ses-3"]);
    expect([...(await fixture.storage.due({ now: 400 + LEASE_MS, limit: 10 })).sessionIds].sort()).toEqual([
      "ses-1",
      "ses-2",
      "ses-3",
    ]);
    expect(await renew("owner-none", 400)).toEqual({ sessions: 0 });
  });

  // It was claimed for a process that never received it, or has been restarted. No process runs it, so its
  // lease must run out.
  test("ST37: a renewal that names sessions renews only these", async () => {
    for (const n of [1, 2]) await fixture.apply(creating(`ses-${n}`), 0);
    await fixture.claim("ses-1", "owner-1", 0);
    await fixture.claim("ses-2", "owner-1", 0);
    const renewal = { owner: "owner-1", now: 400, leaseMs: LEASE_MS };
    expect(await fixture.storage.renew({ ...renewal, sessionIds: ["ses-1", "ses-none"] })).toEqual({
      sessions: 1,
    });
    expect((await fixture.storage.due({ now: LEASE_MS, limit: 10 })).sessionIds).toEqual(["ses-2"]);
    expect(await claim("owner-2", LEASE_MS, "ses-1")).toEqual(busy("owner-1"));
    expect(await claim("owner-2", LEASE_MS, "ses-2")).toMatchObject({ status: "claimed" });
    expect(await fixture.storage.renew({ ...renewal, sessionIds: [] })).toEqual({ sessions: 0 });
  });

  // The coordinator was away for longer than a lease: the runner lives, and nobody else came.
  test("ST37: a claim whose lease has passed is renewed as long as nobody else took it", async () => {
    await fixture.apply(creating("ses-1"), 0);
    const first = await fixture.claim("ses-1", "owner-1", 0);
    expect((await fixture.storage.due({ now: 2 * LEASE_MS, limit: 10 })).sessionIds).toEqual(["ses-1"]);
    expect(await renew("owner-1", 2 * LEASE_MS)).toEqual({ sessions: 1 });
    expect(await fixture.storage.due({ now: 2 * LEASE_MS, limit: 10 })).toEqual({
      sessionIds: [],
      schedules: [],
      nextAt: 3 * LEASE_MS,
    });
    expect(await claim("owner-2", 2 * LEASE_MS)).toEqual(busy("owner-1"));
    expect(await first.commit({ records: [STARTED] }, 2 * LEASE_MS)).toMatchObject({ status: "committed" });
  });

  test("ST37: a claim is renewed also when an end under it was refused", async () => {
    await fixture.apply(creating("ses-1"), 0);
    const claimant = await fixture.claim("ses-1", "owner-1", 0);
    const refused = claimant.batch({ consumed: ["sig-none"], session: PATCH_TO.completed });
    expect(await fixture.apply(refused, 1)).toMatchObject({ status: "invalid" });
    expect(await renew("owner-1", 2)).toEqual({ sessions: 1 });
  });

  test("ST37: a claim that was taken over or released, or whose session ended, is not renewed", async () => {
    for (const n of [1, 2, 3, 4]) await fixture.apply(creating(`ses-${n}`), 0);
    const [lost, released, ended] = [
      await fixture.claim("ses-1", "owner-1", 0),
      await fixture.claim("ses-2", "owner-1", 0),
      await fixture.claim("ses-3", "owner-1", 0),
    ];
    await fixture.claim("ses-4", "owner-1", 0);
    const taken = await fixture.claim("ses-1", "owner-2", LEASE_MS);
    await released.release();
    await ended.commit({ session: PATCH_TO.completed });
    expect(await renew("owner-1", LEASE_MS)).toEqual({ sessions: 1 });
    expect(await lost.commit({ records: [STARTED] }, LEASE_MS)).toEqual({ status: "fenced" });
    expect(await taken.commit({ records: [STARTED] }, LEASE_MS)).toMatchObject({ status: "committed" });
    expect(await claim("owner-3", LEASE_MS, "ses-2")).toMatchObject({ status: "claimed" });
  });

  // Answers overtake each other, and clocks of several machines differ.
  test("ST37: a renewal never shortens a lease, nor one without end", async () => {
    await fixture.createClaimed("ses-1", "owner-1");
    await fixture.apply(creating("ses-2"), 0);
    await fixture.claim("ses-2", "owner-1", 0);
    expect(await renew("owner-1", 10, 5)).toEqual({ sessions: 1 });
    expect(await claim("owner-2", LEASE_MS - 1, "ses-2")).toEqual(busy("owner-1"));
    expect(await claim("owner-2", 1_000_000)).toEqual(busy("owner-1"));
  });

  test("ST37: renewing leaves the session's row as it is", async () => {
    await fixture.apply(creating("ses-1"), 0);
    await fixture.claim("ses-1", "owner-1", 0);
    const before = await fixture.everything("ses-1");
    await renew("owner-1", 500);
    expect(await fixture.everything("ses-1")).toEqual(before);
  });

  test("ST48: claims with a lease are listed with holder, token and end", async () => {
    for (const n of [1, 2, 3, 4, 5]) await fixture.apply(creating(`ses-${n}`), 0);
    await fixture.createClaimed("ses-6", "owner-1"); // For ever.
    const one = await fixture.claim("ses-1", "owner-1", 0);
    const two = await fixture.claim("ses-2", "owner-2", 0);
    await (await fixture.claim("ses-3", "owner-1", 0)).release();
    await (await fixture.claim("ses-4", "owner-1", 0)).commit({ session: PATCH_TO.completed });
    const both = { until: LEASE_MS, leaseMs: LEASE_MS, inbox: 0, losses: 0 };
    const first = { sessionId: "ses-1", owner: "owner-1", token: one.token, ...both };
    const second = { sessionId: "ses-2", owner: "owner-2", token: two.token, ...both };
    expect(await held()).toEqual([first, second]);
    expect(await held({ owner: "owner-2" })).toEqual([second]);
    expect(await held({ sessionId: "ses-1" })).toEqual([first]);
    expect(await held({ sessionId: "ses-1", owner: "owner-2" })).toEqual([]);
    expect(await held({ limit: 1 })).toEqual([first]);
    expect(await held({ limit: 1, after: "ses-1" })).toEqual([second]);
    expect(await held({ after: "ses-2" })).toEqual([]);
    await renew("owner-1", 400);
    expect(await held({ now: LEASE_MS })).toEqual([{ ...first, until: 400 + LEASE_MS }]);
    expect(await held({ now: 400 + LEASE_MS })).toEqual([]);
  });

  test("ST48: a held claim tells the length of the lease that its last renewal gave", async () => {
    await fixture.apply(creating("ses-1", { claimFor: { owner: "owner-1", leaseMs: LEASE_MS } }), 0);
    expect(await held()).toMatchObject([{ leaseMs: LEASE_MS }]);
    await fixture.storage.renew({ owner: "owner-1", now: 10, leaseMs: 3 * LEASE_MS });
    expect(await held()).toMatchObject([{ until: 10 + 3 * LEASE_MS, leaseMs: 3 * LEASE_MS }]);
  });

  test("ST48: the list tells how much has arrived, and changes nothing", async () => {
    await fixture.apply(creating("ses-1"), 0);
    const holder = await fixture.claim("ses-1", "owner-1", 0);
    await fixture.apply(signalling("ses-1", "sig-1"), 0);
    const { inbox } = (await fixture.storage.reader.session("ses-1"))!;
    const before = await fixture.everything("ses-1");
    expect(inbox).toBeGreaterThan(0);
    expect(await held({ sessionId: "ses-1" })).toMatchObject([{ token: holder.token, inbox }]);
    expect(await fixture.everything("ses-1")).toEqual(before);
    expect(await claim("owner-2", LEASE_MS)).toMatchObject({ status: "claimed", losses: 1 });
  });

  test("ST48: the list tells the losses before a claim, until its holder has committed", async () => {
    await fixture.apply(creating("ses-1"), 0);
    await claim("owner-1", 0);
    const holder = await fixture.claim("ses-1", "owner-2", LEASE_MS);
    expect(await held({ now: LEASE_MS })).toMatchObject([{ owner: "owner-2", losses: 1 }]);
    await holder.commit({ records: [STARTED] }, LEASE_MS);
    expect(await held({ now: LEASE_MS })).toMatchObject([{ owner: "owner-2", losses: 0 }]);
  });

  // Adapters may keep those of a tree together.
  test("ST48: the holder of a child is found by its id as well", async () => {
    await fixture.apply(creating("ses-1"), 0);
    const ids = [1, 2, 3, 4].map((child) => `child-${child}`);
    for (const [child, sessionId] of ids.entries())
      await fixture.apply(creating(sessionId, { parent: { sessionId: "ses-1", child, onEnd: "leave" } }), 0);
    for (const sessionId of ids) await fixture.claim(sessionId, "owner-1", 0);
    for (const sessionId of ids) expect(await held({ sessionId })).toMatchObject([{ sessionId }]);
  });

  const held = (query: Partial<Parameters<AgentStorage["heldClaims"]>[0]> = {}) =>
    fixture.storage.heldClaims({ now: 0, limit: 100, ...query });

  if (fixture.subject.reopen !== undefined) {
    test("ST48: claims that survive opening again are listed", async () => {
      await fixture.apply(creating("ses-1"), 0);
      const { token } = await fixture.claim("ses-1", "owner-1", 0);
      await fixture.reopen();
      expect(await held({ now: 10 })).toEqual([
        {
          sessionId: "ses-1",
          owner: "owner-1",
          token,
          until: 10 + LEASE_MS,
          leaseMs: LEASE_MS,
          inbox: 0,
          losses: 0,
        },
      ]);
    });

    // A coordinator restarts. Its runners are at work, and do not notice.
    test("ST38: a claim survives opening again, and its holder goes on under its token", async () => {
      await fixture.apply(creating("ses-1"), 0);
      const claimFor = { owner: "owner-2", leaseMs: LEASE_MS };
      await fixture.apply(creating("ses-2", { claimFor }), 0);
      const holder = await fixture.claim("ses-1", "owner-1", 0);
      await holder.commit({ records: [STARTED] });
      await fixture.reopen();
      expect(await claim("owner-3", 10)).toEqual(busy("owner-1"));
      expect(await claim("owner-3", 10, "ses-2")).toEqual(busy("owner-2"));
      expect(await holder.commit({ records: [STARTED] }, 10)).toMatchObject({ status: "committed" });
      expect(await renew("owner-1", 10)).toEqual({ sessions: 1 });
      expect(await holder.release()).toEqual({ status: "released" });
      expect(await claim("owner-3", 10)).toMatchObject({ status: "claimed" });
    });

    test("ST38: after opening again it lasts its lease from the first time that is told", async () => {
      await fixture.apply(creating("ses-1"), 0);
      await fixture.apply(creating("ses-2"), 0);
      await fixture.claim("ses-1", "owner-1", 0);
      await fixture.claim("ses-2", "owner-2", 0, 2 * LEASE_MS);
      await fixture.reopen();
      const later = 1_000_000;
      const due = (now: number) => fixture.storage.due({ now, limit: 10 });
      expect(await due(later)).toEqual({ sessionIds: [], schedules: [], nextAt: later + LEASE_MS });
      expect(await claim("owner-3", later + LEASE_MS - 1)).toEqual(busy("owner-1"));
      expect((await due(later + LEASE_MS)).sessionIds).toEqual(["ses-1"]);
      expect(await claim("owner-3", later + LEASE_MS)).toMatchObject({ status: "claimed", losses: 1 });
      expect(await claim("owner-3", later + LEASE_MS, "ses-2")).toEqual(busy("owner-2"));
    });

    test("ST38: a claim that was released or taken over does not come back", async () => {
      for (const n of [1, 2, 3]) await fixture.apply(creating(`ses-${n}`), 0);
      await (await fixture.claim("ses-1", "owner-1", 0)).release();
      await fixture.claim("ses-2", "owner-1", 0);
      await fixture.claim("ses-2", "owner-2", LEASE_MS);
      // Claims without end are those of one process, and die with it.
      await fixture.claim("ses-3", "owner-1", 0);
      await fixture.claim("ses-3", "owner-2", LEASE_MS, Infinity);
      await fixture.reopen();
      expect(await renew("owner-1", LEASE_MS)).toEqual({ sessions: 0 });
      expect(await claim("owner-3", LEASE_MS)).toMatchObject({ status: "claimed", losses: 0 });
      expect(await claim("owner-3", LEASE_MS, "ses-2")).toEqual(busy("owner-2"));
      expect(await claim("owner-3", LEASE_MS, "ses-3")).toMatchObject({ status: "claimed" });
    });

    // The last thing a runner did was answered by a coordinator that ended before the answer was heard.
    test("ST38: a repeated batch that ended a session is answered as committed", async () => {
      await fixture.apply(creating("ses-1"), 0);
      const holder = await fixture.claim("ses-1", "owner-1", 0);
      const last = holder.batch({ records: [STARTED], session: PATCH_TO.completed });
      expect(await fixture.apply(last)).toMatchObject({ status: "committed" });
      await fixture.reopen();
      expect(await fixture.apply(last)).toMatchObject({ status: "committed" });
    });

    test("ST39: losses are counted over opening again", async () => {
      await fixture.apply(creating("ses-1"), 0);
      await claim("owner-1", 0);
      await fixture.reopen();
      await fixture.storage.due({ now: 0, limit: 1 });
      expect(await claim("owner-2", LEASE_MS)).toMatchObject({ losses: 1 });
      await fixture.reopen();
      await fixture.storage.due({ now: LEASE_MS, limit: 1 });
      const third = await fixture.claim("ses-1", "owner-3", 2 * LEASE_MS);
      await third.release();
      await fixture.reopen();
      const fourth = await fixture.claim("ses-1", "owner-4", 3 * LEASE_MS);
      await fourth.commit({ records: [STARTED] });
      await fixture.reopen();
      await fixture.storage.due({ now: 3 * LEASE_MS, limit: 1 });
      expect(await claim("owner-5", 4 * LEASE_MS)).toMatchObject({ losses: 1 });
    });
  }

  test("ST39: a claim is told how many before it ran out in a row", async () => {
    await fixture.apply(creating("ses-1"), 0);
    for (const losses of [0, 1, 2, 3])
      expect(await claim(`owner-${losses}`, losses * LEASE_MS)).toMatchObject({ status: "claimed", losses });
  });

  test("ST39: a commit takes the losses back", async () => {
    await fixture.apply(creating("ses-1"), 0);
    await claim("owner-1", 0);
    await claim("owner-2", LEASE_MS);
    const third = await fixture.claim("ses-1", "owner-3", 2 * LEASE_MS);
    await third.commit({ records: [STARTED] }, 2 * LEASE_MS);
    // It ran out itself, after that.
    expect(await claim("owner-4", 3 * LEASE_MS)).toMatchObject({ losses: 1 });
  });

  // Otherwise a task that crashes its process would crash one runner after the other, without end.
  test("ST39: a commit of nothing but lost attempts proves nothing", async () => {
    await fixture.apply(creating("ses-1"), 0);
    await (await fixture.claim("ses-1", "owner-1", 0)).commit({ records: [STARTED, scheduling("work")] });
    const lost = { type: "attempt_lost", task: 1, attempt: 1, at: 1 } as const;
    await (await fixture.claim("ses-1", "owner-2", LEASE_MS)).commit({ records: [lost] }, LEASE_MS);
    expect(await claim("owner-3", 2 * LEASE_MS)).toMatchObject({ losses: 2 });
  });

  // A trial whose runner died stops in order. Otherwise each of two sessions that crash their process would make
  // the other one innocent, without end.
  test("ST39: a commit of nothing but attempts that are handed over proves nothing", async () => {
    await fixture.apply(creating("ses-1"), 0);
    await (await fixture.claim("ses-1", "owner-1", 0)).commit({ records: [STARTED, scheduling("work")] });
    await claim("owner-2", LEASE_MS);
    const third = await fixture.claim("ses-1", "owner-3", 2 * LEASE_MS);
    const note = { type: "attempt_failed", task: 1, attempt: 1, at: 1, retryAt: 1 } as const;
    const committed = await third.commit({ records: [{ ...note, handedOver: "running" }] }, 2 * LEASE_MS);
    expect(committed).toMatchObject({ status: "committed" });
    await third.release();
    expect(await claim("owner-4", 2 * LEASE_MS)).toMatchObject({ losses: 2 });
  });

  test("ST39: a batch that was refused, or only sent again, proves nothing", async () => {
    await fixture.apply(creating("ses-1"), 0);
    const first = await fixture.claim("ses-1", "owner-1", 0);
    const sent = first.batch({ records: [STARTED] });
    await fixture.apply(sent);
    const second = await fixture.claim("ses-1", "owner-2", LEASE_MS);
    expect(await second.commit({ consumed: ["sig-none"] })).toMatchObject({ status: "invalid" });
    expect(await fixture.apply({ ...sent, token: second.token })).toMatchObject({ status: "committed" });
    expect(await claim("owner-3", 2 * LEASE_MS)).toMatchObject({ losses: 2 });
  });

  // Handed back unused, as by a runner that never heard that it was given the session: neither a loss nor a
  // proof.
  test("ST39: a claim that was released is no loss, and takes none back", async () => {
    await fixture.apply(creating("ses-1"), 0);
    await claim("owner-1", 0);
    const second = await fixture.claim("ses-1", "owner-2", LEASE_MS);
    await second.release();
    expect(await claim("owner-3", LEASE_MS)).toMatchObject({ losses: 1 });
  });

  // A supervisor saw the holder's process die: no lease has to pass, and the death still counts.
  test("ST39: a claim that is released as lost is a loss, once, and can be claimed at once", async () => {
    await fixture.apply(creating("ses-1"), 0);
    const first = await fixture.claim("ses-1", "owner-1", 0);
    const lost = { type: "release_claim", sessionId: "ses-1", token: first.token, isLost: true } as const;
    expect(await fixture.apply(lost)).toEqual({ status: "released" });
    expect(await fixture.apply(lost)).toEqual({ status: "released" });
    expect(await first.commit({ records: [STARTED] })).toMatchObject({ status: "fenced" });
    expect(await claim("owner-2", 1)).toMatchObject({ status: "claimed", losses: 1 });
    const second = await fixture.claim("ses-1", "owner-2", 1);
    expect(await fixture.apply(lost)).toEqual({ status: "fenced" });
    await second.commit({ records: [STARTED] }, 1);
    await fixture.apply({ ...lost, token: second.token });
    expect(await claim("owner-3", 1)).toMatchObject({ losses: 1 });
  });

  test("ST39: a claim that its owner claims again before its end is no loss, one that it renewed neither", async () => {
    await fixture.apply(creating("ses-1"), 0);
    await claim("owner-1", 0);
    expect(await claim("owner-1", 1)).toMatchObject({ losses: 0 });
    await renew("owner-1", 3 * LEASE_MS);
    expect(await claim("owner-1", 3 * LEASE_MS)).toMatchObject({ losses: 0 });
    expect(await claim("owner-1", 5 * LEASE_MS)).toMatchObject({ losses: 1 });
  });

  for (const status of ENDINGS) {
    test(`ST37: there is nothing to renew of a session that is ${status}`, async () => {
      await fixture.apply(creating("ses-1"), 0);
      const holder = await fixture.claim("ses-1", "owner-1", 0);
      await holder.commit({ session: PATCH_TO[status] });
      expect(await renew("owner-1", 1)).toEqual({ sessions: 0 });
    });
  }
}
