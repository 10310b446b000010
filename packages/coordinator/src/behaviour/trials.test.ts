// Runners for trials as runners and people see them (rules-6, admission-3, runner-service-7).

import { MemoryStorage, TestClock } from "@holdfast/testkit/test-runtime";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FakeRunner, openFleet, type Fleet } from "../testing/fleet.ts";

const LEASE_MS = 15_000;
const NOW = { waitMs: 0 };

let fleet: Fleet;
let clock: TestClock;
beforeEach(async () => {
  clock = new TestClock();
  fleet = await openFleet({ clock, storage: new MemoryStorage() });
});
afterEach(() => fleet.close());

/** A session that was lost twice, and a runner that starts trials. */
async function openTrial() {
  const suspect = await fleet.admin.start();
  for (let lost = 0; lost < 2; lost++) {
    const runner = await fleet.runner();
    expect((await runner.poll()).claims).toHaveLength(1);
    await runner.poll({ ...NOW, free: 0 }); // It has arrived.
    await clock.advance(LEASE_MS);
  }
  const runner = await fleet.runner();
  const starts = { ...NOW, startsTrials: true };
  const { claims, commands } = await runner.poll(starts);
  expect({ claims, commands }).toMatchObject({ claims: [], commands: [{ type: "try", sessionId: suspect }] });
  const forTrials = new FakeRunner(fleet.url, { forTrials: true, maxRuns: 1 });
  expect((await forTrials.register(runner.person.token)).status).toBe(200);
  return { suspect, runner, forTrials, starts };
}

const lossesOf = async (sessionId: string) =>
  (await fleet.storage.heldClaims({ now: clock.now(), limit: 1, sessionId }))[0]?.losses;
const ended = (processOf: FakeRunner, runner: FakeRunner) =>
  runner.person.post(`/v1/runners/${processOf.runnerId}/deregister`, { processEnded: true });

test("a runner that starts trials goes on with others, and its runner for trials gets the suspect alone", async () => {
  const { suspect, runner, forTrials, starts } = await openTrial();
  expect(forTrials.runnerId).not.toBe(runner.runnerId);
  const runs = async () => (await fleet.admin.get("/v1/runs")).body.runs as { blocked?: string }[];
  expect(await runs()).toMatchObject([
    {
      blocked:
        "it was lost with its runner 2 times in a row, and waits for a process that holds nothing else",
    },
  ]);
  const other = await fleet.admin.start();
  const later = await fleet.admin.start();
  expect((await forTrials.poll({ ...NOW, free: 1 })).claims).toMatchObject([{ sessionId: suspect }]);
  const given = (await runner.poll(starts)).claims.map(({ sessionId }) => sessionId);
  expect(given.toSorted()).toEqual([other, later].toSorted());
  expect((await fleet.admin.get(`/v1/runners/${forTrials.runnerId}`)).body).toMatchObject({
    trialsOf: runner.runnerId,
    held: 1,
  });
});

test("a runner reports the end of its own runner for trials, and only of that: its suspect has a loss more", async () => {
  const { suspect, runner, forTrials, starts } = await openTrial();
  expect((await forTrials.poll({ ...NOW, free: 1 })).claims).toHaveLength(1);
  const unrelated = await fleet.runner();
  expect((await ended(forTrials, unrelated)).status).toBe(404);
  expect((await ended(runner, unrelated)).status).toBe(404);
  expect(await lossesOf(suspect)).toBe(2);
  for (let reports = 0; reports < 2; reports++) expect((await ended(forTrials, runner)).status).toBe(200);
  const again = new FakeRunner(fleet.url, { forTrials: true, maxRuns: 1 });
  expect((await again.register(forTrials.person.token)).body).toMatchObject({ code: "token_revoked" });
  await again.register(runner.person.token);
  await runner.poll(starts);
  expect((await again.poll({ free: 1 })).claims).toHaveLength(1);
  expect(await lossesOf(suspect)).toBe(3);
});

test("the end of a runner's process is no loss of what its runner for trials tries", async () => {
  const { suspect, runner, forTrials } = await openTrial();
  expect((await forTrials.poll({ ...NOW, free: 1 })).claims).toHaveLength(1);
  expect((await fleet.admin.call("DELETE", `/v1/runners/${runner.runnerId}?processEnded=true`)).status).toBe(
    200,
  );
  expect((await fleet.admin.get(`/v1/runners/${forTrials.runnerId}`)).status).toBe(404);
  const next = await fleet.runner();
  expect((await next.poll(NOW)).claims).toMatchObject([{ sessionId: suspect }]);
  expect(await lossesOf(suspect)).toBe(2);
});

test("a runner for trials drains with the runner that started it", async () => {
  const { runner, forTrials } = await openTrial();
  expect((await fleet.admin.post(`/v1/runners/${runner.runnerId}/drain`)).status).toBe(202);
  expect((await forTrials.poll({ ...NOW, free: 1 })).commands).toMatchObject([{ type: "drain" }]);
});
