// The view of runners for people: their names, their state, and the holder of a session or the reason why it
// has none.

import { VERSION } from "@holdfast/core";
import { MemoryStorage, TestClock } from "@holdfast/testkit/test-runtime";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { NO_MATCH_MS } from "../dispatch/rules.ts";
import { FakeRunner, openFleet, pollWaits, type Fleet, type RunnerOptions } from "../testing/fleet.ts";

const LEASE_MS = 15_000;
/** Longer than another coordinator is believed. */
const KNOWN_MS = 6_000;

let clock: TestClock;
let storage: MemoryStorage;
let opened: Fleet[];
let fleet: Fleet;
beforeEach(async () => {
  [clock, storage, opened] = [new TestClock(), new MemoryStorage(), []];
  fleet = await open();
});
afterEach(() => Promise.all(opened.map((one) => one.close())));

async function open(): Promise<Fleet> {
  const one = await openFleet({ clock, storage, seed: opened.length + 1 });
  opened.push(one);
  return one;
}

async function runnersSeen(at: Fleet = fleet): Promise<readonly unknown[]> {
  const { body } = await at.admin.get("/v1/runners");
  return body.runners.map(({ name, status, held, seenAt }: Record<string, unknown>) => {
    return { name, status, held, quietMs: clock.now() - Number(seenAt) };
  });
}

async function metrics(): Promise<string> {
  const { url, token } = fleet.admin;
  return (await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${token}` } })).text();
}

async function runOf(sessionId: string): Promise<Record<string, unknown>> {
  return (await fleet.admin.get(`/v1/runs?sessionId=${sessionId}`)).body.runs[0];
}

test("an admin sees the version of the coordinator and of each runner that said its own", async () => {
  await fleet.runner({ name: "new", version: "0.0.9" });
  await fleet.runner({ name: "old" });
  const { body } = await fleet.admin.get("/v1/runners");
  const versions = body.runners.map(({ name, version }: Record<string, unknown>) => [name, version]);
  expect(Object.fromEntries(versions)).toEqual({ new: "0.0.9", old: undefined });
  const about = await fleet.admin.get("/v1/version");
  expect(about.body).toEqual({ version: VERSION, now: clock.now() });
  expect((await fetch(`${fleet.url}/v1/version`)).status).toBe(401);
});

test("an admin and the runner see the agents that it refused when it registered last, and nobody else does", async () => {
  const refusedAgents = [{ name: "helper", problem: "it may not have <b>shell</b>" }];
  const runner = await fleet.runner({ name: "picky", refusedAgents });
  await fleet.runner({ name: "older" });
  await runner.poll({ waitMs: 0 }); // A poll announces none.
  const { body } = await fleet.admin.get("/v1/runners");
  const seen = body.runners.map((one: Record<string, unknown>) => [one["name"], one["refusedAgents"]]);
  expect(Object.fromEntries(seen)).toEqual({ picky: refusedAgents, older: [] });
  const path = `/v1/runners/${runner.runnerId}`;
  for (const person of [fleet.admin, runner.person])
    expect((await person.get(path)).body).toMatchObject({ refusedAgents });
  const user = await fleet.user("ada");
  for (const hidden of [path, "/v1/runners"]) expect((await user.get(hidden)).status).toBe(403);
  const again = new FakeRunner(fleet.url, { name: "picky" });
  expect((await again.register(runner.person.token)).status).toBe(200);
  expect((await fleet.admin.get(path)).body).toMatchObject({ refusedAgents: [] });
});

test.each([
  ["a name that no item of the catalogue has", "/refusedAgents/0/name", { name: "a b", problem: "no" }],
  ["a problem of several lines", "/refusedAgents/0/problem", { name: "a", problem: "no\nrnr_forged" }],
  ["a problem that is too long", "/refusedAgents/0/problem", { name: "a", problem: "n".repeat(1_001) }],
])("a registration with %s is refused", async (_, pointer, refused) => {
  const token = await fleet.coordinator.createToken({ kind: "registration", name: "box" });
  const { body } = await new FakeRunner(fleet.url, { refusedAgents: [refused] }).register(token);
  expect(body).toMatchObject({ status: 422, errors: [{ pointer }] });
});

describe("a runner's name", () => {
  test("a runner's name is its own or its host's, and stands for the runner if no other has it", async () => {
    const make = (options: RunnerOptions) => fleet.runner({ hostname: "host-1", ...options });
    const [named, one, other] = [await make({ name: "box-1" }), await make({}), await make({})];
    const names = (await runnersSeen()).map((runner) => (runner as { name: string }).name);
    expect(names.toSorted()).toEqual(["box-1", "host-1", "host-1"]);
    expect((await fleet.admin.get("/v1/runners/box-1")).body).toMatchObject({ runnerId: named.runnerId });
    const ambiguous = await fleet.admin.post("/v1/runners/host-1/drain");
    expect(ambiguous).toMatchObject({ status: 422, body: { detail: expect.stringContaining("2 runners") } });
    expect(JSON.stringify(ambiguous.body)).toContain(one.runnerId);
    expect(JSON.stringify(ambiguous.body)).toContain(other.runnerId);
    const drained = await fleet.admin.post("/v1/runners/box-1/drain");
    expect(drained).toMatchObject({ status: 202, body: { runnerId: named.runnerId, status: "draining" } });
    expect((await fleet.admin.call("DELETE", "/v1/runners/box-1")).status).toBe(200);
    expect((await fleet.admin.get("/v1/runners/box-1")).status).toBe(404);
    // Only an admin's word: a runner is itself, by its id.
    expect((await one.person.get("/v1/runners/host-1")).status).toBe(404);
  });

  test("a runner's name is shown for the sessions it holds, and finds them", async () => {
    const runner = await fleet.runner({ name: "box-1" });
    const sessionId = await fleet.admin.start();
    const { claims } = await runner.poll({ waitMs: 0 });
    await runner.say(claims[0]!, { status: "working", waits: [] });
    expect(await runOf(sessionId)).toMatchObject({ holder: runner.runnerId, runnerName: "box-1" });
    for (const text of ["box-1", runner.runnerId])
      expect((await fleet.admin.get(`/v1/runs?runnerId=${text}`)).body.runs).toHaveLength(1);
    expect((await fleet.admin.get("/v1/runs?runnerId=box-2")).body.runs ?? []).toEqual([]);
  });
});

describe("a runner that is gone", () => {
  test("a runner is silent after a lease without contact, and not while its poll waits", async () => {
    const runner = await fleet.runner();
    await runner.poll({ waitMs: 0 });
    const waiting = runner.poll();
    await pollWaits(fleet);
    await clock.advance(2 * LEASE_MS - 1);
    expect(await runnersSeen()).toMatchObject([{ status: "online", quietMs: 0 }]);
    await clock.advance(1);
    await waiting;
    await clock.advance(LEASE_MS);
    expect(await runnersSeen()).toEqual([{ name: "box", status: "silent", held: 0, quietMs: LEASE_MS }]);
    expect(await metrics()).toMatch(/holdfast_runners\{status="online"\} 0\n.*\n.*status="silent"\} 1\n/);
    expect(await runOf(await fleet.admin.start())).toMatchObject({
      status: "queued",
      blocked: "every matching runner is silent; the last call of one was 15 s ago",
    });
    await runner.poll({ waitMs: 0, free: 0 });
    expect(await runnersSeen()).toMatchObject([{ status: "online", quietMs: 0 }]);
  });

  test("a runner is silent at a restarted coordinator until it polls again", async () => {
    const runner = await fleet.runner();
    await runner.poll({ waitMs: 0 });
    await fleet.close();
    await clock.advance(1_000);
    const again = await open();
    expect(await runnersSeen(again)).toMatchObject([{ status: "silent", quietMs: 1_000 }]);
    await runner.at(again.url).poll({ waitMs: 0 });
    expect(await runnersSeen(again)).toMatchObject([{ status: "online" }]);
  });

  test("a runner that polls another coordinator is not silent", async () => {
    const runner = await fleet.runner();
    await runner.poll({ waitMs: 0 });
    const second = await open();
    await clock.advance(LEASE_MS - KNOWN_MS);
    const waiting = runner.at(second.url).poll();
    await pollWaits(second);
    await clock.advance(LEASE_MS);
    for (const one of [fleet, second]) expect(await runnersSeen(one)).toMatchObject([{ status: "online" }]);
    await clock.advance(LEASE_MS);
    await waiting;
    await clock.advance(LEASE_MS);
    expect(await runnersSeen(second)).toMatchObject([{ status: "silent" }]);
    // All that this one knows is when the other one wrote of it last.
    await clock.advance(NO_MATCH_MS);
    expect(await runnersSeen()).toMatchObject([{ status: "silent" }]);
  });
});

test("a session that no runner fits says until when it waits for one", async () => {
  const sessionId = await fleet.admin.start({ demands: { gpu: "yes" } });
  await fleet.runner();
  const endsAt = clock.now() + NO_MATCH_MS;
  const run = await runOf(sessionId);
  expect(run).toMatchObject({ blocked: "no registered runner has gpu=yes" });
  expect(Number(run["blockedUntil"]) - endsAt).toBe(0);
  await clock.advance(NO_MATCH_MS / 2);
  expect(Number((await runOf(sessionId))["blockedUntil"])).toBeLessThan(endsAt + LEASE_MS);
  await fleet.runner({ labels: { gpu: "yes" } });
  await clock.advance(KNOWN_MS);
  expect(await runOf(sessionId)).not.toHaveProperty("blockedUntil");
});
