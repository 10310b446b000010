// Dispatch as runners see it: over real HTTP, with time that moves when a test says so.

import { MemoryStorage, TestClock, until } from "@holdfast/testkit/test-runtime";
import { afterEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { ACK_MS } from "../dispatch/claiming.ts";
import {
  openFleet,
  Person,
  type FakeClaim,
  type FakeRunner,
  type Fleet,
  type FleetOptions,
} from "../testing/fleet.ts";

const LEASE_MS = 15_000;

const opened: Fleet[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((fleet) => fleet.close()));
});
async function open(options: FleetOptions = {}): Promise<Fleet & { readonly clock: TestClock }> {
  const clock = (options.clock as TestClock | undefined) ?? new TestClock();
  const fleet = await openFleet({ ...options, clock });
  opened.push(fleet);
  return { ...fleet, clock };
}

/** Ids of what a poll is given. */
async function given(
  runner: FakeRunner,
  body: Parameters<FakeRunner["poll"]>[0] = {},
): Promise<readonly string[]> {
  return (await runner.poll(body)).claims.map(({ sessionId }) => sessionId);
}

describe("polls", () => {
  test("a waiting poll is answered as soon as there is a session", async () => {
    const fleet = await open();
    const ada = await fleet.user("ada");
    const runner = await fleet.runner();
    const waits = given(runner);
    await until(async () => (await metric(fleet, "holdfast_polls_waiting")) === 1, "a poll waits");
    const sessionId = await ada.start();
    await fleet.clock.advance(100); // The cycle after the first one waits a moment for others to join.
    expect(await waits).toEqual([sessionId]);
  });

  test("nothing comes of a poll whose time is up", async () => {
    const fleet = await open();
    const runner = await fleet.runner();
    const waits = runner.poll({ waitMs: 5_000 });
    await until(async () => (await metric(fleet, "holdfast_polls_waiting")) === 1, "a poll waits");
    await fleet.clock.advance(5_000);
    expect(await waits).toMatchObject({ claims: [], arrivals: [], commands: [] });
  });

  test("the same poll gets the same answer, and claims nothing more", async () => {
    const fleet = await open();
    const ada = await fleet.user("ada");
    const runner = await fleet.runner();
    await Promise.all([ada.start(), ada.start()]);
    const poll = { pollId: "mine", free: 1, ackPollId: null };
    const [first, again] = [await runner.poll(poll), await runner.poll(poll)];
    expect(first.claims).toHaveLength(1);
    expect(again.claims).toEqual(first.claims);
  });

  test("unacknowledged claims are released after two seconds, and the next poll gets them", async () => {
    const fleet = await open();
    const ada = await fleet.user("ada");
    const [deaf, other] = [await fleet.runner(), await fleet.runner()];
    const sessionId = await ada.start();
    expect(await given(deaf, { free: 1 })).toEqual([sessionId]);
    await fleet.clock.advance(ACK_MS + 100);
    expect(await given(other)).toEqual([sessionId]);
  });

  test("a claim that the next poll or a commit acknowledges is not released", async () => {
    const fleet = await open();
    const ada = await fleet.user("ada");
    const [runner, other] = [await fleet.runner(), await fleet.runner()];
    const [first] = (await ada.start(), (await runner.poll({ free: 1 })).claims);
    await runner.poll({ free: 0, waitMs: 0 });
    await ada.start();
    const [second] = (await runner.poll({ free: 1 })).claims;
    await runner.say(second!, { status: "working", waits: [] });
    await fleet.clock.advance(ACK_MS + 100);
    expect(await given(other, { waitMs: 0 })).toEqual([]);
    for (const claim of [first!, second!]) expect((await runner.complete(claim)).status).toBe("committed");
  });

  test("a claim that the next poll does not acknowledge is released at once, and its arrivals are sent again", async () => {
    const fleet = await open();
    const ada = await fleet.user("ada");
    const runner = await fleet.runner();
    const held = await ada.start();
    const [claim] = (await runner.poll({ free: 1 })).claims;
    await runner.say(claim!, { status: "waiting", waits: [{ type: "signal", id: 0, name: "go" }] });
    await ada.post(`/v1/sessions/${held}/signals`, { name: "go" });
    const lost = await runner.poll({ pollId: "lost", free: 1 });
    expect(lost.arrivals).toEqual([{ sessionId: held, awaited: true }]);
    const again = await runner.poll({ ackPollId: "p1", free: 1 });
    expect(again.arrivals).toEqual(lost.arrivals);
  });

  test("a poll ends the one before it", async () => {
    const fleet = await open();
    const ada = await fleet.user("ada");
    const runner = await fleet.runner();
    const before = given(runner);
    await until(async () => (await metric(fleet, "holdfast_polls_waiting")) === 1, "a poll waits");
    const after = given(runner);
    expect(await before).toEqual([]);
    const sessionId = await ada.start();
    await fleet.clock.advance(100);
    expect(await after).toEqual([sessionId]);
  });

  test("a draining runner gets no new session, and is sent the command to drain", async () => {
    const fleet = await open();
    const ada = await fleet.user("ada");
    const runner = await fleet.runner();
    const drained = await fleet.admin.post(`/v1/runners/${runner.runnerId}/drain`);
    expect(drained).toMatchObject({ status: 202, body: { status: "draining" } });
    await ada.start();
    const answer = await runner.poll();
    expect(answer.claims).toEqual([]);
    expect(answer.commands.map(({ type }) => type)).toEqual(["drain"]);
  });

  test("a draining runner is sent the command by every coordinator until it acknowledges it there", async () => {
    const fleet = await open();
    const runner = await fleet.runner();
    await runner.poll({ waitMs: 0 });
    const other = await open({ clock: fleet.clock, storage: fleet.storage, seed: 1_000 });
    await other.admin.post(`/v1/runners/${runner.runnerId}/drain`);
    await fleet.clock.advance(10_000); // The coordinator knows of the drain by then.
    for (const at of [runner, runner.at(other.url)]) {
      const { commands } = await at.poll({ waitMs: 0 });
      expect(commands.map(({ type }) => type)).toEqual(["drain"]);
      const ackCommandIds = commands.map(({ commandId }) => commandId);
      expect((await at.poll({ waitMs: 0, ackCommandIds })).commands).toEqual([]);
      expect((await at.poll({ waitMs: 0 })).commands).toEqual([]);
    }
  });

  test("a runner that is drained through another coordinator gets the command within seconds, and no new session", async () => {
    const fleet = await open();
    const [ada, runner] = [await fleet.user("ada"), await fleet.runner()];
    const full = await fleet.runner();
    const waiting = [runner.poll(), full.poll({ free: 0 })];
    const other = await open({ clock: fleet.clock, storage: fleet.storage, seed: 1_000 });
    for (const { runnerId } of [runner, full]) await other.admin.post(`/v1/runners/${runnerId}/drain`);
    await fleet.clock.advance(7_000);
    await ada.start();
    for (const { claims, commands } of await Promise.all(waiting))
      expect([claims, commands.map(({ type }) => type)]).toEqual([[], ["drain"]]);
  });

  test("a runner that returns after it was drained is not sent the command again by any coordinator", async () => {
    const fleet = await open();
    const first = await fleet.runner({ process: "1".repeat(32) });
    const other = await open({ clock: fleet.clock, storage: fleet.storage, seed: 1_000 });
    await fleet.admin.post(`/v1/runners/${first.runnerId}/drain`);
    const { commands } = await first.at(other.url).poll({ waitMs: 0 });
    expect(commands.map(({ type }) => type)).toEqual(["drain"]);
    await first.person.post(`/v1/runners/${first.runnerId}/deregister`);
    const second = first.at(fleet.url, "2".repeat(32));
    await second.register(first.person.token);
    for (const url of [other.url, fleet.url])
      expect((await second.at(url).poll({ pollId: "again", waitMs: 0 })).commands).toEqual([]);
  });

  test("O4: a runner that registered under a longer lease is given claims of that lease", async () => {
    const before = await open({ config: { leaseMs: 60_000 } });
    const { clock, storage } = before;
    const runner = await before.runner();
    const now = await open({ clock, storage, seed: 1_000 }); // The coordinator has another configuration.
    const sessionId = await (await now.user("ada")).start();
    const { claims } = await runner.at(now.url).poll();
    expect(claims.map(({ leaseMs }) => leaseMs)).toEqual([60_000]);
    const held = await storage.heldClaims({ now: clock.now(), limit: 1, sessionId });
    expect(held.map((claim) => claim.until - clock.now())).toEqual([60_000]);
  });

  test("O4: a runner with a long lease renews its claims for the whole lease", async () => {
    const leaseMs = 3_600_000;
    const { clock, storage, runner: register, user } = await open({ config: { leaseMs } });
    const runner = await register();
    const sessionId = await (await user("ada")).start();
    await runner.poll();
    await clock.advance(1_000);
    await runner.person.post("/v1/storage/renew", { owner: "x", leaseMs, sessionIds: [sessionId] });
    const held = await storage.heldClaims({ now: clock.now(), limit: 1, sessionId });
    expect(held.map((claim) => claim.until - clock.now())).toEqual([leaseMs]);
  });

  test("never more than it has slots for, whatever it asks", async () => {
    const fleet = await open();
    const ada = await fleet.user("ada");
    const runner = await fleet.runner({ maxRuns: 2 });
    await Promise.all([ada.start(), ada.start(), ada.start()]);
    expect(await given(runner, { free: 99 })).toHaveLength(2);
    expect(await given(runner, { free: 0, waitMs: 0 })).toEqual([]);
  });
});

describe("arrivals", () => {
  test("an arrival for a held session is sent to its holder alone", async () => {
    const fleet = await open();
    const ada = await fleet.user("ada");
    const [holder, other] = [await fleet.runner(), await fleet.runner()];
    const sessionId = await ada.start();
    const [claim] = (await holder.poll({ free: 1 })).claims;
    await holder.say(claim!, { status: "waiting", waits: [{ type: "signal", id: 0, name: "go" }] });
    await ada.post(`/v1/sessions/${sessionId}/signals`, { name: "go" });
    expect((await holder.poll({ free: 0 })).arrivals).toEqual([{ sessionId, awaited: true }]);
    expect((await other.poll({ waitMs: 0 })).arrivals).toEqual([]);
    expect((await ada.get(`/v1/sessions/${sessionId}`)).body.runnerId).toBe(holder.runnerId);
  });

  test("an arrival is sent with its notice to a runner that asks for it, each time the part not sent before", async () => {
    const fleet = await open();
    const ada = await fleet.user("ada");
    const holder = await fleet.runner();
    const sessionId = await ada.start();
    const [claim] = (await holder.poll({ free: 1 })).claims;
    await holder.say(claim!, { status: "waiting", waits: [{ type: "signal", id: 0, name: "go" }] });
    const sent = async (name: string) => {
      await ada.post(`/v1/sessions/${sessionId}/signals`, { name });
      const [notice] = (await holder.poll({ free: 0, withArrivals: true })).arrivals;
      const { after, arrivals } = notice ?? {};
      return { after, names: arrivals?.signals.map((signal) => signal.name), inbox: arrivals?.inbox };
    };
    const first = await sent("go");
    expect(first).toMatchObject({ after: 0, names: ["go"] });
    expect(await sent("on")).toMatchObject({ after: first.inbox, names: ["on"] });
    // The runner asks for large arrivals.
    await ada.post(`/v1/sessions/${sessionId}/signals`, { name: "much", payload: "x".repeat(100_000) });
    const [notice] = (await holder.poll({ free: 0, withArrivals: true })).arrivals;
    expect(notice).toEqual({ sessionId, awaited: expect.any(Boolean) });
  });

  test("for a session that nobody holds goes to a runner, the one that had it first", async () => {
    const fleet = await open();
    const ada = await fleet.user("ada");
    const first = await fleet.runner();
    const sessionId = await ada.start();
    const [claim] = (await first.poll({ free: 1 })).claims;
    await first.say(claim!, { status: "waiting", waits: [{ type: "signal", id: 0, name: "go" }] });
    await first.release(claim!);
    const second = await fleet.runner();
    const [others, its] = [given(second, { free: 5 }), given(first, { free: 1 })];
    await until(async () => (await metric(fleet, "holdfast_polls_waiting")) === 2, "two polls wait");
    await ada.post(`/v1/sessions/${sessionId}/signals`, { name: "go" });
    await fleet.clock.advance(200);
    expect(await its).toEqual([sessionId]);
    await first.poll({ free: 0, waitMs: 0 });
    await fleet.clock.advance(10_000);
    void fleet.coordinator.close();
    expect(await others).toEqual([]);
  });

  test("a timer that is due, without a word", async () => {
    const fleet = await open();
    const ada = await fleet.user("ada");
    const runner = await fleet.runner();
    const sessionId = await ada.start();
    const [claim] = (await runner.poll({ free: 1 })).claims;
    const at = fleet.clock.now() + 20_000;
    await runner.say(claim!, { status: "waiting", waits: [{ type: "timer", id: 0, at }], wakeAt: at });
    await runner.release(claim!);
    const waits = given(runner);
    await until(async () => (await metric(fleet, "holdfast_polls_waiting")) === 1, "a poll waits");
    await fleet.clock.advance(19_000);
    expect(await metric(fleet, "holdfast_polls_waiting")).toBe(1);
    await fleet.clock.advance(2_000);
    expect(await waits).toEqual([sessionId]);
  });

  test("a session that is cancelled hard is stopped by its holder", async () => {
    const fleet = await open();
    const ada = await fleet.user("ada");
    const runner = await fleet.runner();
    const sessionId = await ada.start();
    await runner.poll({ free: 1 });
    await ada.post(`/v1/sessions/${sessionId}/cancel`, { mode: "hard" });
    const { commands } = await runner.poll({ free: 0 });
    expect(commands).toMatchObject([{ type: "stop", sessionId }]);
  });
});

describe("L10: poison", () => {
  // Each runner of the session takes its other sessions with it.
  test("only the session that ends a full runner repeatedly becomes poison", ofCampaign, async () => {
    const fleet = await open();
    const ada = await fleet.user("ada");
    const started = await Promise.all(Array.from({ length: 8 }, () => ada.start()));
    const guilty = started[3]!;
    let runner = await fleet.runner({ maxRuns: 8 });
    let [held, died]: [FakeClaim[], number] = [[], 0];
    const statusOf = async (sessionId: string) =>
      (await ada.get(`/v1/sessions/${sessionId}`)).body.status as string;
    const isOver = async () =>
      (await Promise.all(started.map(statusOf))).every(
        (status) => !["submitted", "working"].includes(status),
      );
    for (let polls = 0; !(await isOver()); polls++) {
      expect(polls, "polls until nothing was left to do").toBeLessThan(100);
      const { claims } = await runner.poll({ free: 8 - held.length, waitMs: 0 });
      held.push(...claims);
      if (held.some(({ sessionId }) => sessionId === guilty)) {
        [held, died] = [[], died + 1];
        await runner.poll({ free: 0, waitMs: 0 }); // It has heard of them.
        await fleet.clock.advance(LEASE_MS);
        runner = await fleet.runner({ maxRuns: 8 });
      } else if (claims.length === 0) {
        for (const claim of held) expect((await runner.complete(claim)).status).toBe("committed");
        held = [];
      }
      await fleet.clock.advance(1_000);
    }
    expect(died).toBe(2 + 5); // Twice with others, and five times alone.
    for (const sessionId of started)
      expect(await statusOf(sessionId)).toBe(sessionId === guilty ? "paused" : "completed");
    expect((await ada.get(`/v1/sessions/${guilty}`)).body.pauseReason).toBe("poison");
  });
});

describe("O12, O14: coordinators", () => {
  test("a restart takes no claim from a runner that lives: its commits count, and nobody else gets the session", async () => {
    const clock = new TestClock();
    const storage = new MemoryStorage();
    const first = await open({ clock, storage });
    const ada = await first.user("ada");
    const before = await first.runner();
    const sessionId = await ada.start();
    const [claim] = (await before.poll({ free: 1 })).claims;
    await before.say(claim!, { status: "waiting", waits: [{ type: "signal", id: 0, name: "go" }] });
    await first.close();

    const second = await open({ clock, storage, seed: 7 });
    const runner = before.at(second.url);
    const rival = await second.runner();
    await second.admin.post(`/v1/sessions/${sessionId}/signals`, { name: "go" });
    expect(await given(rival, { waitMs: 0 })).toEqual([]);
    await runner.person.post("/v1/storage/renew", { owner: "x", leaseMs: LEASE_MS, sessionIds: [sessionId] });
    // Arrivals before the holder was known are sent to the holder now.
    expect((await runner.poll({ free: 0 })).arrivals.map((arrival) => arrival.sessionId)).toEqual([
      sessionId,
    ]);
    expect((await runner.complete(claim!, "same claim")).status).toBe("committed");
  });

  test("two over one storage: each session goes to one runner, and what one commits the other tells", async () => {
    const clock = new TestClock();
    const storage = new MemoryStorage();
    const [one, two] = [await open({ clock, storage }), await open({ clock, storage, seed: 7 })];
    const ada = await one.user("ada");
    const runners = [await one.runner(), await two.runner()];
    const started = await Promise.all(Array.from({ length: 12 }, () => ada.start()));
    await clock.advance(1_000);
    const got: string[] = [];
    for (let round = 0; round < 8; round++) {
      const polls = await Promise.all(runners.map((runner) => runner.poll({ free: 3, waitMs: 0 })));
      for (const [i, { claims }] of polls.entries()) {
        for (const claim of claims) {
          got.push(claim.sessionId);
          expect((await runners[i]!.complete(claim, i)).status).toBe("committed");
        }
      }
      await clock.advance(1_100);
    }
    expect(got.toSorted()).toEqual(started.toSorted());
    for (const url of [one.url, two.url]) {
      const { body } = await new Person(url, ada.token).get(`/v1/sessions/${started[0]}/result`);
      expect(body).toMatchObject({ status: "completed", ended: true });
    }
  });
});

async function metric(fleet: Fleet, name: string): Promise<number | undefined> {
  const response = await fetch(`${fleet.url}/metrics`, {
    headers: { authorization: `Bearer ${fleet.admin.token}` },
  });
  const value = new RegExp(`^${name} (.*)$`, "m").exec(await response.text())?.[1];
  return value === undefined ? undefined : Number(value);
}
