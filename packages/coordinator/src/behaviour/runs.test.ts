// Runs as people see them over real HTTP: queued, claimed and ended.

import { afterEach, expect, test } from "vitest";
import { openFleet, type Fleet, type FakeRunner } from "../testing/fleet.ts";

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
  expect((await fleet.admin.get(`/v1/runs/${runId}`)).body).toMatchObject({
    runId,
    status: "ended",
    outcome: "completed",
    holder: runner.runnerId,
    since: run.since,
    endedAt: expect.any(Number),
  });
});

test("each run of a session has an end of its own, which can be read when later runs have ended", async () => {
  const fleet = await open();
  const runner = await fleet.runner();
  const sessionId = await fleet.admin.start({ sessionId: "ses-1" });
  const ids: string[] = [];
  for (const name of ["go", "on"]) {
    const [claim] = (await runner.poll()).claims;
    ids.push(`run_${sessionId}.${claim!.token}`);
    await runner.say(claim!, { status: "waiting", waits: [{ id: 1, type: "signal", name }] });
    await runner.release(claim!);
    await fleet.admin.post(`/v1/sessions/${sessionId}/signals`, { name });
  }
  const [last] = (await runner.poll()).claims;
  ids.push(`run_${sessionId}.${last!.token}`);
  await runner.complete(last!, "done");

  const ended = await runsOf(fleet, "?status=ended");
  expect(ended.map(({ runId, outcome }) => [runId, outcome])).toEqual([
    [ids[2], "completed"],
    [ids[1], "waiting"],
    [ids[0], "waiting"],
  ]);
  expect(await runsOf(fleet, "?status=ended&sessionId=ses-1")).toEqual(ended);
  expect(await runsOf(fleet, "?status=ended&agent=other")).toEqual([]);
  const result = async (runId: string) => (await fleet.admin.get(`/v1/runs/${runId}/result`)).body;
  expect(await result(ids[2]!)).toMatchObject({ ended: true, run: { runId: ids[2] }, output: "done" });
  // The output of the session is not the answer of a run that only suspended it.
  expect(await result(ids[0]!)).toEqual({ ended: true, run: ended[2] });
});

test("a caller that waits for one run is answered when that run ends, and for no other run", async () => {
  const fleet = await open();
  const runner = await fleet.runner();
  const sessionId = await fleet.admin.start();
  const waited = fleet.admin.get(`/v1/runs/run_${sessionId}.next/result?waitMs=30000`);
  const [claim] = (await runner.poll()).claims;
  await runner.say(claim!, { status: "waiting", waits: [{ id: 1, type: "signal", name: "go" }] });
  await runner.release(claim!);
  const runId = `run_${sessionId}.${claim!.token}`;
  expect((await waited).body).toMatchObject({ ended: true, run: { runId, outcome: "waiting" } });

  await fleet.admin.post(`/v1/sessions/${sessionId}/signals`, { name: "go" });
  const [next] = (await runner.poll()).claims;
  const now = await fleet.admin.get(`/v1/runs/run_${sessionId}.${next!.token}/result`);
  expect(now.body).toMatchObject({ ended: false, run: { status: "claimed", token: next!.token } });
  const again = await fleet.admin.get(`/v1/runs/${runId}/result`);
  expect(again.body).toMatchObject({ ended: true, run: { runId, outcome: "waiting" } });
});

test("a run that a hard cancel ended is answered at once, and once more after its runner released it", async () => {
  const fleet = await open();
  const runner = await fleet.runner();
  const sessionId = await fleet.admin.start();
  const [claim] = (await runner.poll()).claims;
  await runner.say(claim!, { status: "working", waits: [] });
  const runId = `run_${sessionId}.${claim!.token}`;
  const waited = fleet.admin.get(`/v1/runs/${runId}/result?waitMs=30000`);
  await fleet.admin.post(`/v1/sessions/${sessionId}/cancel`, { mode: "hard" });
  const run = { runId, holder: runner.runnerId, outcome: "cancelled" };
  expect(await waited).toMatchObject({ status: 200, body: { ended: true, run } });
  await runner.release(claim!);
  expect(await runsOf(fleet, `?status=ended&sessionId=${sessionId}`)).toMatchObject([run]);
});

test("defect 5.2 g: a cancel stops the session at the runner that holds it now, and not its run that has ended", async () => {
  const fleet = await open();
  const [first, second] = [await fleet.runner(), await fleet.runner()];
  const sessionId = await fleet.admin.start();
  const [ended] = (await first.poll({ free: 1 })).claims;
  await first.release(ended!);
  expect((await second.poll({ free: 1 })).claims).toHaveLength(1);
  await fleet.admin.post(`/v1/sessions/${sessionId}/cancel`, { mode: "hard" });
  expect((await second.poll({ free: 0 })).commands).toMatchObject([{ type: "stop", sessionId }]);
  expect((await first.poll({ free: 0, waitMs: 0 })).commands).toEqual([]);
});

test("defect 5.2 m: a session of a runner that deregisters goes to another, and a late report changes nothing", async () => {
  const fleet = await open();
  const [first, second] = [await fleet.runner(), await fleet.runner()];
  const sessionId = await fleet.admin.start();
  const [claim] = (await first.poll({ free: 1 })).claims;
  await first.person.post(`/v1/runners/${first.runnerId}/deregister`);
  const [successor] = (await second.poll({ free: 1 })).claims;
  expect(successor!.token).toBeGreaterThan(claim!.token);
  await first.complete(claim!, "late").catch(() => "refused"); // Its token is gone, too.
  await second.complete(successor!, "right");
  expect((await fleet.admin.get(`/v1/sessions/${sessionId}/result`)).body.output).toBe("right");
});

test("a run whose claim passed on is lost, and a run that there never was is not found", async () => {
  const before = await open();
  const { storage } = before;
  const sessionId = await before.admin.start();
  const [lost] = (await (await before.runner()).poll()).claims;
  // As when the lease of the first runner has passed.
  await storage.commit([{ type: "release_claim", sessionId, token: lost!.token }], Date.now());
  const fleet = await open({ storage, seed: 1_000 });
  const [claim] = (await (await fleet.runner()).poll()).claims;
  const { body } = await fleet.admin.get(`/v1/runs/run_${sessionId}.${lost!.token}`);
  expect(body).toMatchObject({ status: "ended", outcome: "lost", token: lost!.token });
  for (const never of [`${claim!.token + 1}`, "0", `0${lost!.token}`]) {
    const none = await fleet.admin.get(`/v1/runs/run_${sessionId}.${never}/result`);
    expect([never, none.status]).toEqual([never, 404]);
  }
});

test("the runs of another user's session are found neither by their ids nor in a list", async () => {
  const fleet = await open();
  const runner = await fleet.runner();
  const ada = await fleet.user("ada");
  const sessionId = await ada.start();
  const [claim] = (await runner.poll()).claims;
  await runner.complete(claim!);
  const runId = `run_${sessionId}.${claim!.token}`;
  expect((await ada.get(`/v1/runs/${runId}`)).body).toMatchObject({ outcome: "completed" });
  const bob = await fleet.user("bob");
  expect((await bob.get(`/v1/runs/${runId}`)).status).toBe(404);
  expect((await bob.get(`/v1/runs/${runId}/result`)).status).toBe(404);
  expect((await bob.get("/v1/runs?status=ended")).body.runs).toEqual([]);
  expect((await ada.get("/v1/runs?status=ended")).body.runs).toHaveLength(1);
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
  expect(await why()).toBe(
    "a matching runner has a free slot and will claim this session or one ahead of it in the queue",
  );
  await fleet.admin.start({ sessionId: "first", demands: { gpu: "yes" }, priority: 9 });
  expect((await fitting.poll({ free: 1 })).claims).toMatchObject([{ sessionId: "first" }]);
  expect(await why()).toBe("every matching runner is full");
  await fleet.admin.post(`/v1/runners/${fitting.runnerId}/drain`);
  expect(await why()).toBe("every matching runner is draining or silent");
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
