// Sessions that no runner fits, while the coordinator restarts and runners come and leave: over HTTP, by a
// fake clock.

import { MemoryStorage, TestClock } from "@holdfast/testkit/test-runtime";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openFleet, Person, type FakeRunner, type Fleet } from "../testing/fleet.ts";

const MINUTE = 60_000;
const DEMANDS = { gpu: "a100" };

let clock: TestClock;
let storage: MemoryStorage;
let fleet: Fleet;
let admin: Person;
let lives: number;
beforeEach(async () => {
  [clock, storage, lives] = [new TestClock(), new MemoryStorage(), 0];
  fleet = await openFleet({ clock, storage });
  admin = fleet.admin;
});
afterEach(() => fleet.close());

async function restart(awayMs = 0): Promise<void> {
  await fleet.close();
  await clock.advance(awayMs);
  fleet = await openFleet({ clock, storage, seed: 100 * ++lives });
  admin = new Person(fleet.url, admin.token);
}

const sessionOf = async (sessionId: string) => (await admin.get(`/v1/sessions/${sessionId}`)).body;
const statusOf = async (sessionId: string): Promise<string> => (await sessionOf(sessionId)).status;

/** A parent, its child that asks for what no runner has, and the runner that can run the parent. */
async function family() {
  const runner = await fleet.runner();
  const parentId = await admin.start();
  const { claims } = await runner.poll({ free: 1 });
  const childId = await admin.start({
    invocation: "async_callback",
    parentSessionId: parentId,
    demands: DEMANDS,
  });
  const { parent } = (await storage.reader.session(childId))!;
  const end = `child-end:${parent!.child}`;
  await runner.say(claims[0]!, { status: "waiting", waits: [{ type: "signal", id: 0, name: end }] });
  await runner.release(claims[0]!);
  return { parentId, childId, end, runner };
}

const leave = (runner: FakeRunner) => runner.person.post(`/v1/runners/${runner.runnerId}/deregister`);

test("a restart costs an unmatched session at most a minute of its wait, which ends and notifies its parent", async () => {
  const { parentId, childId, end } = await family();
  await clock.advance(4 * MINUTE);
  await restart();
  await clock.advance(50_000);
  expect(await sessionOf(childId)).toMatchObject({ status: "submitted", blocked: expect.any(String) });
  await clock.advance(MINUTE + 20_000);
  const { body } = await admin.get(`/v1/sessions/${childId}/result`);
  expect(body).toMatchObject({ status: "failed", ended: true, error: { code: "no_matching_runner" } });
  expect(body.error.message).toContain("gpu=a100");
  await restart();
  const { claims } = await (await fleet.runner()).poll({ free: 1 });
  expect(claims.map(({ sessionId }) => sessionId)).toEqual([parentId]);
  const ends = claims[0]!.snapshot.signals.filter(({ name }) => name === end);
  expect(ends.map(({ payload }) => JSON.parse(payload ?? "null"))).toMatchObject([
    { type: "failed", error: { code: "no_matching_runner" } },
  ]);
});

test("a run says the end of the wait before and after a restart, which is at most a minute later", async () => {
  const sessionId = await admin.start({ demands: DEMANDS });
  await clock.advance(10_000);
  const endsAt = async () =>
    Number((await admin.get(`/v1/runs?sessionId=${sessionId}`)).body.runs[0].blockedUntil);
  const before = await endsAt();
  await clock.advance(MINUTE);
  await restart();
  await clock.advance(10_000);
  const after = await endsAt();
  expect(after).toBeGreaterThanOrEqual(before);
  expect(after).toBeLessThan(before + MINUTE + 10_000);
});

test("the time in which a coordinator is away does not count, and runners get a minute to return to it", async () => {
  const [first, second] = [await admin.start({ demands: DEMANDS }), await admin.start({ agent: "unknown" })];
  await clock.advance(5 * MINUTE - 10_000);
  await restart(60 * MINUTE);
  await clock.advance(50_000);
  expect(await statusOf(first)).toBe("submitted");
  const back = await fleet.runner({ labels: DEMANDS });
  expect((await back.poll({ free: 1 })).claims.map(({ sessionId }) => sessionId)).toEqual([first]);
  await clock.advance(20_000);
  expect(await statusOf(first)).toBe("submitted");
  await clock.advance(20_000);
  expect(await statusOf(second)).toBe("failed");
});

test("a coordinator that finds a session unmatched for the first time gives it five minutes, however old it is", async () => {
  await fleet.runner({ labels: DEMANDS });
  const sessionId = await admin.start({ demands: DEMANDS });
  await restart(60 * MINUTE);
  const [{ runnerId }] = (await admin.get("/v1/runners")).body.runners;
  await admin.call("DELETE", `/v1/runners/${runnerId}`);
  await clock.advance(4 * MINUTE);
  expect(await statusOf(sessionId)).toBe("submitted");
  await clock.advance(MINUTE + 20_000);
  expect(await statusOf(sessionId)).toBe("failed");
});

test("runners that come and leave at once postpone the end of an unmatched session by their stay alone", async () => {
  const sessionId = await admin.start({ demands: DEMANDS });
  for (let visits = 0; visits < 4; visits++) {
    await clock.advance(MINUTE);
    const runner = await fleet.runner({ labels: DEMANDS });
    await clock.advance(10_000);
    expect(await sessionOf(sessionId)).not.toHaveProperty("blocked");
    await leave(runner);
  }
  await clock.advance(55_000);
  expect(await statusOf(sessionId)).toBe("submitted");
  await clock.advance(MINUTE);
  expect(await statusOf(sessionId)).toBe("failed");
});

test("a session that waits for a runner which crashes again and again goes on waiting, also over restarts", async () => {
  const sessionId = await admin.start({ demands: DEMANDS });
  for (let crashes = 0; crashes < 12; crashes++) {
    const runner = await fleet.runner({ labels: DEMANDS });
    await clock.advance(50_000);
    await leave(runner);
    await clock.advance(10_000);
    if (crashes % 4 === 3) await restart();
  }
  await clock.advance(MINUTE); // It ends nothing before.
  expect(await statusOf(sessionId)).toBe("submitted");
});

test("an unmatched session gets five more minutes when a runner that fits stays and then leaves", async () => {
  const sessionId = await admin.start({ demands: DEMANDS });
  await clock.advance(4 * MINUTE);
  const runner = await fleet.runner({ labels: DEMANDS });
  await clock.advance(MINUTE + 20_000);
  await leave(runner);
  await clock.advance(4 * MINUTE);
  expect(await statusOf(sessionId)).toBe("submitted");
  await clock.advance(MINUTE + 20_000);
  expect(await statusOf(sessionId)).toBe("failed");
});

test("an unmatched session gets five more minutes after a run, also across a restart", async () => {
  const sessionId = await admin.start({ demands: DEMANDS });
  await clock.advance(4 * MINUTE);
  const runner = await fleet.runner({ labels: DEMANDS });
  const { claims } = await runner.poll({ free: 1 });
  await runner.say(claims[0]!, { status: "working", waits: [] });
  await runner.release(claims[0]!);
  await leave(runner);
  await restart();
  await clock.advance(4 * MINUTE);
  expect(await statusOf(sessionId)).toBe("working");
  await clock.advance(MINUTE + 20_000);
  expect(await sessionOf(sessionId)).toMatchObject({ status: "paused", pauseReason: "no_matching_runner" });
});

test("nothing is stored of a session whose wait for a runner is over", async () => {
  const stored = () => storage.reader.documents({ collection: "unmet", limit: 9 });
  const ids = [await admin.start({ demands: DEMANDS }), await admin.start({ demands: DEMANDS })];
  await clock.advance(10_000);
  expect((await stored()).map(({ id }) => id)).toEqual(ids.toSorted());
  await admin.post(`/v1/sessions/${ids[0]}/cancel`, { mode: "hard" });
  await clock.advance(6 * MINUTE);
  expect(await stored()).toEqual([]);
});
