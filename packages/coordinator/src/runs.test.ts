// Runs: what is to be done and who does it, as people see it over real HTTP.

import { afterEach, expect, test } from "vitest";
import { openFleet, type Fleet, type FakeRunner } from "./testing/fleet.ts";

const fleets: Fleet[] = [];
afterEach(() => Promise.all(fleets.splice(0).map((fleet) => fleet.close())));

async function open(options?: Parameters<typeof openFleet>[0]): Promise<Fleet> {
  const fleet = await openFleet(options);
  fleets.push(fleet);
  return fleet;
}

const runsOf = async (fleet: Fleet, query = ""): Promise<readonly Record<string, unknown>[]> =>
  (await fleet.admin.get(`/v1/runs${query}`)).body.runs;

test("starting a session makes a run, claiming it gives it a holder, and its end ends it", async () => {
  const fleet = await open();
  const sessionId = await fleet.admin.start({ priority: 3, demands: { gpu: "yes" } });
  const queued = { runId: `run_${sessionId}.next`, sessionId, status: "queued", priority: 3 };
  expect(await runsOf(fleet)).toMatchObject([{ ...queued, agent: "greeter", demands: { gpu: "yes" } }]);
  expect((await fleet.admin.get(`/v1/runs/${queued.runId}`)).body).toMatchObject({
    ...queued,
    since: expect.any(Number),
  });

  const runner = await fleet.runner({ labels: { gpu: "yes" } });
  const before = Date.now();
  const [claim] = (await runner.poll()).claims;
  const runId = `run_${sessionId}.${claim!.token}`;
  const { body: run } = await fleet.admin.get(`/v1/runs/${runId}`);
  expect(run).toMatchObject({ runId, status: "claimed", holder: runner.runnerId, token: claim!.token });
  expect(run.since).toBeGreaterThanOrEqual(before);
  expect(run.leaseUntil).toBeGreaterThan(before);
  expect(run.blocked).toBeUndefined();
  expect(await runsOf(fleet)).toEqual([run]);
  expect((await fleet.admin.get(`/v1/runs/${queued.runId}`)).body).toMatchObject({
    status: 404,
    fix: `its session's run is ${runId}`,
  });

  await runner.complete(claim!);
  expect(await runsOf(fleet)).toEqual([]);
  expect((await fleet.admin.get(`/v1/runs/${runId}`)).status).toBe(404);
});

test("a session that waits has no run, and what arrives for its wait makes one", async () => {
  const fleet = await open();
  const runner = await fleet.runner();
  const sessionId = await fleet.admin.start();
  const [claim] = (await runner.poll()).claims;
  await runner.say(claim!, { status: "waiting", waits: [{ id: 1, type: "signal", name: "go" }] });
  await runner.release(claim!);
  expect(await runsOf(fleet)).toEqual([]);
  expect((await fleet.admin.get(`/v1/runs/run_${sessionId}.next`)).status).toBe(404);
  await fleet.admin.post(`/v1/sessions/${sessionId}/signals`, { name: "stop" });
  expect(await runsOf(fleet)).toEqual([]);
  await fleet.admin.post(`/v1/sessions/${sessionId}/signals`, { name: "go" });
  expect(await runsOf(fleet)).toMatchObject([{ sessionId, status: "queued" }]);
  expect((await fleet.admin.get(`/v1/runs/run_${sessionId}.next`)).body).toMatchObject({ status: "queued" });
  await fleet.admin.post(`/v1/sessions/${sessionId}/pause`);
  expect(await runsOf(fleet)).toEqual([]);
});

test("a queued run tells why nobody has taken it", async () => {
  const fleet = await open();
  await fleet.admin.start({ sessionId: "asks", demands: { gpu: "yes" } });
  const why = async () => (await runsOf(fleet, "?sessionId=asks"))[0]!["blocked"];
  expect(await why()).toBe('no registered runner offers the agent "greeter"');
  await fleet.runner();
  await fleet.admin.get("/v1/runners");
  expect(await why()).toBe("no registered runner has gpu=yes");
  const fitting = await fleet.runner({ labels: { gpu: "yes" }, maxRuns: 1 });
  expect(await why()).toBe("a runner that fits has room, and is about to take it, or what is before it");
  await fleet.admin.start({ sessionId: "first", demands: { gpu: "yes" }, priority: 9 });
  expect((await fitting.poll({ free: 1 })).claims).toMatchObject([{ sessionId: "first" }]);
  expect(await why()).toBe("every runner that fits is full");
  await fleet.admin.post(`/v1/runners/${fitting.runnerId}/drain`);
  expect(await why()).toBe("every runner that fits drains or is silent");
});

test("runs are listed page by page, by status, session, agent, runner and owner; a user sees own ones", async () => {
  const fleet = await open();
  const [ada, bob] = [await fleet.user("ada"), await fleet.user("bob")];
  for (const sessionId of ["a1", "a2", "a3"]) await ada.start({ sessionId });
  await bob.start({ sessionId: "b1", agent: "other" });
  const runner = await fleet.runner();
  const claims = (await runner.poll({ free: 2 })).claims.map(({ sessionId }) => sessionId);
  expect(claims.toSorted()).toEqual(["a1", "a2"]);

  const ids = async (person: { get: Fleet["admin"]["get"] }, query: string) =>
    (await person.get(`/v1/runs?${query}`)).body.runs.map(
      ({ sessionId }: { sessionId: string }) => sessionId,
    );
  expect(await ids(fleet.admin, "")).toEqual(["a1", "a2", "a3", "b1"]);
  expect(await ids(fleet.admin, "status=claimed")).toEqual(["a1", "a2"]);
  expect(await ids(fleet.admin, "status=queued")).toEqual(["a3", "b1"]);
  expect(await ids(fleet.admin, "agent=other")).toEqual(["b1"]);
  expect(await ids(fleet.admin, `runnerId=${runner.runnerId}`)).toEqual(["a1", "a2"]);
  expect(await ids(fleet.admin, "runnerId=rnr_other")).toEqual([]);
  expect(await ids(fleet.admin, "owner=bob")).toEqual(["b1"]);
  expect(await ids(fleet.admin, "sessionId=a3&status=claimed")).toEqual([]);
  expect(await ids(ada, "")).toEqual(["a1", "a2", "a3"]);
  expect(await ids(bob, "")).toEqual(["b1"]);
  expect(await ids(bob, "owner=ada")).toEqual([]);
  expect(await ids(bob, "sessionId=a1")).toEqual([]);
  expect((await bob.get("/v1/runs/run_a3.next")).body).toMatchObject({ status: 404 });
  expect((await runner.person.get("/v1/runs")).status).toBe(403);

  const paged: string[] = [];
  for (let cursor = ""; ;) {
    const { body } = await fleet.admin.get(`/v1/runs?limit=1${cursor}`);
    paged.push(...body.runs.map(({ sessionId }: { sessionId: string }) => sessionId));
    if (body.nextCursor === undefined) break;
    cursor = `&cursor=${encodeURIComponent(body.nextCursor)}`;
  }
  expect(paged).toEqual(["a1", "a2", "a3", "b1"]);
});

test("claims that another coordinator gave are told as well, without since when", async () => {
  const one = await open();
  const two = await open({ storage: one.storage, seed: 1_000 });
  const runner: FakeRunner = await one.runner();
  const sessionId = await one.admin.start();
  await runner.poll();
  const [run] = await runsOf(two);
  expect(run).toMatchObject({ sessionId, status: "claimed", holder: runner.runnerId });
  expect(run).not.toHaveProperty("since");
});
