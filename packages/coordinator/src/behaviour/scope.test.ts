// The rights of two users, of runners and of running agents, over real HTTP.

import { verifyAudit, type Change, type Session } from "@holdfast/core";
import { MemoryStorage, TestClock } from "@holdfast/testkit/test-runtime";
import { createHash } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openFleet, Person, type FakeClaim, type FakeRunner, type Fleet } from "../testing/fleet.ts";

let fleet: Fleet;
let clock: TestClock;
let ada: Person;
let eve: Person;
beforeEach(async () => {
  clock = new TestClock();
  fleet = await openFleet({ clock, storage: new MemoryStorage() });
  [ada, eve] = [await fleet.user("ada"), await fleet.user("eve")];
});
afterEach(() => fleet.close());

async function held(runner: FakeRunner): Promise<FakeClaim> {
  const [claim] = (await runner.poll({ free: 1 })).claims;
  if (claim === undefined) throw new Error("the runner got nothing");
  return claim;
}

describe("X13: users", () => {
  test("lists hold one's own, also when another's are asked for", async () => {
    const [mine, theirs] = [await eve.start(), await ada.start()];
    for (const query of ["", "?owner=ada", "?agent=greeter", "?status=submitted"]) {
      const { sessions = [] } = (await eve.get(`/v1/sessions${query}`)).body;
      expect(
        sessions.every((session: { sessionId: string }) => session.sessionId === mine),
        query,
      ).toBe(true);
    }
    const all = (await fleet.admin.get("/v1/sessions")).body.sessions.map(
      (s: { sessionId: string }) => s.sessionId,
    );
    expect(all.toSorted()).toEqual([mine, theirs].toSorted());
    expect((await fleet.admin.get("/v1/sessions?owner=ada")).body.sessions).toHaveLength(1);
  });

  test("schedules are one's own", async () => {
    const nightly = { cron: "0 3 * * *", start: { agent: "greeter", input: { n: 1 } } };
    expect((await ada.call("PUT", "/v1/schedules/nightly", nightly)).status).toBe(200);
    expect((await eve.call("PUT", "/v1/schedules/nightly", nightly)).status).toBe(422);
    expect((await eve.get("/v1/schedules")).body.schedules ?? []).toEqual([]);
    expect((await eve.call("DELETE", "/v1/schedules/nightly")).status).toBe(404);
    const sessionId = await ada.start();
    const poke = { cron: "0 3 * * *", signal: { sessionId, name: "go" } };
    expect((await eve.call("PUT", "/v1/schedules/poke", poke)).status).toBe(404);
    expect((await ada.get("/v1/schedules")).body.schedules).toMatchObject([
      { scheduleId: "nightly", owner: "ada" },
    ]);
    // It fires as its owner.
    await clock.advance(2_000);
    const [fired] = await fleet.storage.reader.sessions({ limit: 1 });
    expect(fired).toMatchObject({ placement: { owner: "ada" }, input: '{"n":1}' });
    expect((await eve.post("/v1/schedules/nightly/pause")).status).toBe(404);
    expect((await ada.call("DELETE", "/v1/schedules/nightly")).status).toBe(200);
  });

  test("a schedule starts sessions with its demands, its priority and its budget", async () => {
    const wishes = { demands: { gpu: "a100" }, priority: 3, budget: { maxSteps: 5, ttlMs: 60_000 } };
    const start = { agent: "greeter", ...wishes };
    const put = await ada.call("PUT", "/v1/schedules/nightly", { cron: "0 3 * * *", start });
    expect(put.body).toMatchObject({ start: wishes });
    await clock.advance(2_000);
    const [fired] = await fleet.storage.reader.sessions({ limit: 1 });
    expect(fired).toMatchObject({
      placement: { owner: "ada", demands: { gpu: "a100" }, priority: 3 },
      account: { limits: { maxSteps: 5, ttlMs: 60_000 } },
      deadlineAt: fired!.createdAt + 60_000,
    });
    const endless = { ...start, budget: { ttlMs: Number.MAX_SAFE_INTEGER } };
    const refused = await ada.call("PUT", "/v1/schedules/endless", { cron: "0 3 * * *", start: endless });
    expect(refused.body).toMatchObject({ status: 422, errors: [{ pointer: "/start/budget/ttlMs" }] });
  });

  test("a runtime of a user has that user's sessions, and brings nothing in that refers to another's", async () => {
    const sessionId = await ada.start();
    const row = (await fleet.storage.reader.session(sessionId))!;
    const refused: readonly Change[] = [
      { type: "send_signal", sessionId, signalId: "s1", name: "go", payload: undefined },
      { type: "request_cancel", sessionId, mode: "hard", graceMs: 0 },
      { type: "delete_session", sessionId, subtree: "refuse" },
      creation("c1", { parent: { sessionId, child: 1, onEnd: "leave" } }),
      creation("c2", { shared: { kind: "conversation", sessionId } }),
      creation("c5", { under: { sessionId, token: 1 } }),
      imported("c3", { shared: { kind: "conversation", sessionId } }),
    ];
    expect(await eve.commit(...refused)).toEqual(refused.map(() => ({ status: "not_found" })));
    expect(await fleet.storage.reader.session(sessionId)).toEqual(row);
    const made = await eve.commit(creation("mine", { placement: { owner: "ada", priority: 3 } }));
    expect(made).toEqual([{ status: "created" }]);
    expect((await fleet.storage.reader.session("mine"))?.placement).toEqual({ owner: "eve", priority: 3 });
    const claim = { sessionId, owner: "x", leaseMs: 1_000 };
    expect((await eve.post("/v1/storage/claim", claim)).body.result).toEqual({ status: "not_found" });
    expect((await eve.post("/v1/storage/load", { sessionId })).body).toEqual({});
    expect((await eve.post("/v1/storage/read", { query: "audit", params: { limit: 1 } })).status).toBe(403);
    const documents = { type: "put_document", collection: "token", id: "x", body: "{}" };
    expect((await eve.post("/v1/storage/commit", { changes: [documents] })).status).toBe(403);
  });

  test("a runner of one owner learns by a claim nothing of another owner's session", async () => {
    const [theirs, own] = [await ada.start(), await eve.start()];
    const runner = await fleet.runner({ owner: "eve" });
    const answerTo = async (sessionId: string) =>
      (await runner.person.post("/v1/storage/claim", { sessionId, owner: "x", leaseMs: 1_000 })).body;
    expect(await answerTo(theirs)).toEqual(await answerTo("unknown"));
    expect((await answerTo(own)).result).toEqual({ status: "busy", owner: "coordinator" });
  });

  test("nobody keeps another's claims alive: owners of claims are apart", async () => {
    const runner = await fleet.runner();
    await ada.start();
    await held(runner);
    await runner.poll({ free: 0, waitMs: 0 });
    await clock.advance(14_000);
    await eve.post("/v1/storage/renew", { owner: runner.runnerId, leaseMs: 60_000 });
    await clock.advance(2_000);
    expect((await (await fleet.runner()).poll({ free: 1 })).claims).toHaveLength(1);
  });
});

test("D3: the coordinator's time applies, even if the caller's clock is wrong", async () => {
  const sessionId = await ada.start();
  const { token } = await held(await fleet.runner());
  const later = { now: clock.now() + 3_600_000 };
  const claim = { sessionId, owner: "laptop", leaseMs: 60_000, ...later };
  const taken = await fleet.admin.post("/v1/storage/claim", claim);
  expect(taken.body.result).toMatchObject({ status: "busy" });
  const { claims } = (await fleet.admin.post("/v1/storage/held-claims", { limit: 10, ...later })).body;
  expect(claims).toMatchObject([{ sessionId, token }]);
  await fleet.admin.post("/v1/storage/commit", {
    changes: [{ type: "pause_session", sessionId }],
    ...later,
  });
  expect((await fleet.storage.reader.session(sessionId))?.updatedAt).toBeLessThan(later.now);
});

describe("runners", () => {
  test("a runner of a user is given that user's sessions alone", async () => {
    const runner = await fleet.runner({ owner: "eve" });
    const [, mine] = [await ada.start(), await eve.start()];
    expect((await runner.poll()).claims.map(({ sessionId }) => sessionId)).toEqual([mine]);
    expect((await runner.poll({ waitMs: 0 })).claims).toEqual([]);
  });

  test("a runner of a user stays that user's when it registers again, and touches no other user's queued tasks", async () => {
    const runner = await fleet.runner({ owner: "eve", taskKinds: ["shell"] });
    expect((await runner.register(runner.person.token)).status).toBe(200);
    await ada.start();
    expect((await runner.poll({ waitMs: 0 })).claims).toEqual([]);

    // The sessions of these tasks are in their users' own storages.
    const task = async (person: Person, taskId: string) =>
      (await person.post("/v1/sessions", { agent: "task:shell", taskId })).body.sessionId as string;
    const [theirs, own] = [await task(ada, "adas-3"), await task(eve, "eves-3")];
    expect((await runner.person.get(`/v1/sessions/${theirs}/result`)).status).toBe(404);
    expect((await runner.person.post(`/v1/sessions/${theirs}/cancel`, { mode: "hard" })).status).toBe(404);
    expect((await runner.person.get(`/v1/sessions/${own}/result`)).status).toBe(200);
  });

  test("it speaks for itself alone, and reads what it holds alone", async () => {
    const [runner, other] = [await fleet.runner(), await fleet.runner()];
    const sessionId = await ada.start();
    await held(other);
    const polled = await runner.person.post(`/v1/runners/${other.runnerId}/poll`, {
      pollId: "x",
      free: 1,
      waitMs: 0,
    });
    expect(polled.status).toBe(404);
    expect((await runner.person.post(`/v1/runners/${other.runnerId}/drain`)).status).toBe(404);
    expect((await runner.person.post("/v1/storage/load", { sessionId })).body).toEqual({});
    expect((await runner.person.post("/v1/storage/arrivals", { sessionId, after: 0 })).status).toBe(404);
    expect(
      (await runner.person.post("/v1/storage/read", { query: "session", params: { sessionId } })).body,
    ).toEqual({});
    expect(
      (await runner.person.post("/v1/storage/read", { query: "sessions", params: { limit: 9 } })).status,
    ).toBe(403);
    const due = (await runner.person.post("/v1/storage/due", { limit: 9 })).body.due;
    expect(due.sessionIds).toEqual([]);
    const make = { changes: [creation("made", {})] };
    expect((await runner.person.post("/v1/storage/commit", make)).status).toBe(403);
    expect((await runner.person.post("/v1/sessions", { agent: "greeter" })).status).toBe(403);
  });

  test("a batch cannot show another session's conversation to a child", async () => {
    const runner = await fleet.runner();
    const sessionId = await ada.start();
    const claim = await held(runner);
    const foreign = await eve.start();
    const spawn = (shared: string) => ({
      effects: [creation(`${sessionId}-0`, { shared: { kind: "conversation", sessionId: shared } })],
    });
    const patch = { status: "working", waits: [] } as const;
    expect(await runner.say(claim, patch, spawn(foreign))).toEqual({ status: "not_found" });
    expect((await runner.say(claim, patch, spawn(sessionId))).status).toBe("committed");
    expect((await fleet.storage.reader.session(`${sessionId}-0`))?.placement).toEqual({ owner: "ada" });
  });

  test("a registration token is good for one runner; another protocol is refused and leaves it unused", async () => {
    const secret = (await fleet.admin.post("/v1/tokens", { kind: "registration", name: "box" })).body
      .secret as string;
    const box = new Person(fleet.url, secret);
    const hello = { protocol: 1, hostname: "box", agents: [{ name: "greeter" }], maxRuns: 1 };
    expect((await box.post("/v1/runners/register", { ...hello, protocol: 2 })).body.code).toBe(
      "unsupported_protocol",
    );
    expect((await box.post("/v1/runners/register", hello)).status).toBe(200);
    expect((await box.post("/v1/runners/register", hello)).status).toBe(401);
    expect((await fleet.admin.get("/v1/runners")).body.runners).toHaveLength(1);
  });

  test("a runner that registers again with its own token is the same runner, and a deleted runner's token is unknown", async () => {
    const runner = await fleet.runner();
    const again = await runner.register(runner.person.token);
    expect(again.body).toMatchObject({ runnerId: runner.runnerId });
    expect(again.body.token).toBeUndefined();
    expect((await fleet.admin.call("DELETE", `/v1/runners/${runner.runnerId}`)).status).toBe(200);
    expect((await runner.person.get(`/v1/runners/${runner.runnerId}`)).status).toBe(401);
  });

  test("a queued task is started once by the holder of its session, for the session's owner", async () => {
    const [runner, other] = [await fleet.runner(), await fleet.runner({ taskKinds: ["shell"], agents: [] })];
    const sessionId = await ada.start();
    const claim = await held(runner);
    const task = {
      agent: "task:shell",
      taskId: `${sessionId}-3`,
      claimToken: claim.token,
      input: ["ls"],
    };
    const notHeld = [409, "fenced"];
    const refusals = [
      await other.person.post("/v1/sessions", task),
      await other.person.post("/v1/sessions", { ...task, taskId: "nothing-3" }), // X13.
      await runner.person.post("/v1/sessions", { ...task, claimToken: claim.token + 1 }),
    ];
    expect(refusals.map(({ status, body }) => [status, body.code])).toEqual([notHeld, notHeld, notHeld]);
    const { claimToken: _claimToken, ...unclaimed } = task;
    expect((await runner.person.post("/v1/sessions", unclaimed)).status).toBe(422);
    expect((await ada.post("/v1/sessions", { agent: "greeter", claimToken: 1 })).status).toBe(422);
    expect(await fleet.storage.reader.sessions({ limit: 10, agent: "task:shell" })).toEqual([]);
    const [first, second] = [
      await runner.person.post("/v1/sessions", task),
      await runner.person.post("/v1/sessions", task),
    ];
    expect([first.status, second.body.sessionId]).toEqual([201, first.body.sessionId]);
    expect((await fleet.storage.reader.session(first.body.sessionId))?.placement).toEqual({ owner: "ada" });
    const done = await held(other);
    await other.complete(done, "files");
    expect((await runner.person.get(`/v1/sessions/${done.sessionId}/result`)).body).toMatchObject({
      output: "files",
    });
    expect((await runner.person.call("DELETE", `/v1/sessions/${done.sessionId}`)).status).toBe(200);
    // An ask that hung comes after that: H7.
    expect((await runner.person.post("/v1/sessions", task)).status).toBe(404);
    expect((await runner.complete(claim)).status).toBe("committed");
  });
});

describe("X4: an agent at work", () => {
  const jobOf = async (runner: FakeRunner, { sessionId, token }: Pick<FakeClaim, "sessionId" | "token">) => {
    const path = `/v1/runners/${runner.runnerId}/job-tokens`;
    const { status, body } = await runner.person.post(path, { sessionId, token });
    return { status, code: body.code as string | undefined, job: new Person(fleet.url, body.secret ?? "") };
  };

  test("a job token touches its session and descendants, starts children, and is invalid after the session's end", async () => {
    const runner = await fleet.runner();
    const [own, other] = [await ada.start(), await ada.start()];
    const claims = (await runner.poll()).claims;
    const { job } = await jobOf(
      runner,
      claims.find(({ sessionId }) => sessionId === own)!,
    );
    expect(job.token).toMatch(/^hf_job_/);
    expect((await job.get(`/v1/sessions/${own}`)).status).toBe(200);
    expect((await job.get(`/v1/sessions/${other}`)).status).toBe(404);
    expect((await job.post("/v1/sessions", { agent: "greeter" })).status).toBe(403);
    const child = { agent: "greeter", invocation: "async_callback" };
    expect((await job.post("/v1/sessions", { ...child, parentSessionId: other })).status).toBe(404);
    const made = await job.post("/v1/sessions", { ...child, parentSessionId: own });
    expect(made.body).toMatchObject({ parentSessionId: own, owner: "ada", depth: 1 });
    const listed = (await job.get("/v1/sessions")).body.sessions.map(
      (s: { sessionId: string }) => s.sessionId,
    );
    expect(listed).toEqual([own, made.body.sessionId]);
    const idsOf = async (query: string) =>
      ((await job.get(`/v1/sessions?${query}`)).body.sessions ?? []).map(
        ({ sessionId }: Session) => sessionId,
      );
    expect(await idsOf(`parentSessionId=${own}`)).toEqual([made.body.sessionId]);
    expect(await idsOf("status=completed")).toEqual([]);
    expect(await idsOf("limit=1")).toEqual([own]);
    expect(await idsOf(`limit=1&cursor=${own}`)).toEqual([made.body.sessionId]);
    expect((await job.get(`/v1/sessions?cursor=${other}`)).status).toBe(422);
    await runner.complete(claims.find(({ sessionId }) => sessionId === own)!);
    expect((await job.get(`/v1/sessions/${own}`)).status).toBe(401);
  });

  test("a job token reads and signals its session while its claim is the newest, and is invalid afterwards", async () => {
    const runner = await fleet.runner();
    const own = await ada.start();
    const [claim] = (await runner.poll()).claims;
    const { job } = await jobOf(runner, claim!);
    expect((await job.post(`/v1/sessions/${own}/signals`, { name: "note" })).status).toBe(202);
    expect((await job.get(`/v1/sessions/${own}/events`)).status).toBe(200);
    for (const [verb, path] of [
      ["POST", `/v1/sessions/${own}/answer`],
      ["POST", `/v1/sessions/${own}/pause`],
      ["DELETE", `/v1/sessions/${own}`],
      ["GET", "/v1/runs"],
      ["POST", "/v1/storage/commit"],
      ["POST", `/v1/runners/${runner.runnerId}/job-tokens`],
    ] as const)
      expect([verb, path, (await job.call(verb, path, verb === "POST" ? {} : undefined)).status]).toEqual([
        verb,
        path,
        403,
      ]);
    await runner.say(claim!, { status: "working" });
    await runner.release(claim!);
    expect((await job.get(`/v1/sessions/${own}`)).body.code).toBe("token_revoked");

    const [again] = (await runner.poll()).claims;
    expect(again!.sessionId).toBe(own);
    expect((await job.get(`/v1/sessions/${own}`)).status).toBe(401);
    const second = await jobOf(runner, again!);
    expect((await second.job.get(`/v1/sessions/${own}`)).status).toBe(200);
    await clock.advance(15_000);
    expect((await second.job.get(`/v1/sessions/${own}`)).status).toBe(401);
    const stored = await fleet.storage.reader.documents({ collection: "job_token", limit: 9 });
    expect(JSON.stringify(stored)).not.toContain(second.job.token.slice(7, 40)); // X11.
    await clock.advance(5_000);
    expect(await fleet.storage.reader.documents({ collection: "job_token", limit: 9 })).toEqual([]);
  });

  test("a job token is made only for a claim that its runner holds", async () => {
    const [runner, other] = [await fleet.runner(), await fleet.runner()];
    await ada.start();
    const [claim] = (await runner.poll()).claims;
    const reported = async (who: FakeRunner, change: Partial<FakeClaim>) => {
      const { status, code } = await jobOf(who, { ...claim!, ...change });
      return [status, code];
    };
    expect(await reported(other, {})).toEqual([409, "fenced"]);
    expect(await reported(runner, { token: claim!.token + 1 })).toEqual([409, "fenced"]);
    expect(await reported(runner, { sessionId: "ses_none" })).toEqual([409, "fenced"]);
    const path = `/v1/runners/${other.runnerId}/job-tokens`;
    expect(
      (await runner.person.post(path, { sessionId: claim!.sessionId, token: claim!.token })).status,
    ).toBe(404);
    expect((await ada.post(path, { sessionId: claim!.sessionId, token: claim!.token })).status).toBe(403);
    await runner.complete(claim!);
    expect(await reported(runner, {})).toEqual([409, "fenced"]);
  });
});

describe("L7: idempotency keys", () => {
  test("one key is one session, twenty at once; another body is a conflict, another user another session", async () => {
    const start = (person: Person, body: object) =>
      person.call("POST", "/v1/sessions", { agent: "greeter", ...body }, { "idempotency-key": "order-1" });
    const answers = await Promise.all(Array.from({ length: 20 }, () => start(ada, { input: 1 })));
    expect(new Set(answers.map(({ body }) => body.sessionId)).size).toBe(1);
    expect(answers.every(({ status }) => status === 201)).toBe(true);
    const conflict = await start(ada, { input: 2 });
    expect([conflict.status, conflict.body.code]).toEqual([409, "idempotency_conflict"]);
    expect((await start(eve, { input: 1 })).body.sessionId).not.toBe(answers[0]!.body.sessionId);
    expect(await fleet.storage.reader.sessions({ limit: 9 })).toHaveLength(2);
  });

  test("a session whose budget was changed since is the one that was asked for; another budget or time is a conflict", async () => {
    const body = { agent: "greeter", idempotencyKey: "order-4", budget: { maxSteps: 5 }, timeoutMs: 60_000 };
    const sessionId = await ada.start(body);
    expect((await ada.call("PATCH", `/v1/sessions/${sessionId}/budget`, { maxSteps: 9 })).status).toBe(200);
    expect((await ada.post("/v1/sessions", body)).body).toMatchObject({ sessionId });
    for (const other of [{ budget: { maxSteps: 9 } }, { timeoutMs: 90_000 }, { timeoutMs: undefined }])
      expect((await ada.post("/v1/sessions", { ...body, ...other })).body).toMatchObject({
        status: 409,
        code: "idempotency_conflict",
      });
  });

  test("a session that was to be kept whole meanwhile is the one that was asked for", async () => {
    const body = { agent: "greeter", persistence: "minimal", idempotencyKey: "order-2" };
    const sessionId = await ada.start(body);
    const claim = await held(await fleet.runner());
    await fleet.storage.commit(
      [
        {
          type: "commit_batch",
          sessionId,
          token: claim.token,
          firstSeq: 0,
          records: [],
          entries: [],
          consumed: [],
          session: { status: "working", persistence: "full" },
        },
      ],
      clock.now(),
    );
    const again = await ada.post("/v1/sessions", body);
    expect(again.body).toMatchObject({ sessionId, persistence: "full" });
    // A request for full persistence is not the same as one for minimal persistence.
    const other = { agent: "greeter", idempotencyKey: "order-3" };
    await ada.start({ ...other, persistence: "minimal" });
    expect((await ada.post("/v1/sessions", other)).status).toBe(409);
  });
});

describe("X14: the audit", () => {
  test("the audit has one row for each call that changes something, in an intact chain", async () => {
    const before = (await fleet.storage.reader.audit({ limit: 1_000 })).length;
    const sessionId = await ada.start();
    await ada.post(`/v1/sessions/${sessionId}/signals`, { name: "go", payload: "not in the audit" });
    await ada.post(`/v1/sessions/${sessionId}/cancel`, { mode: "hard" });
    await ada.post(`/v1/sessions/${sessionId}/cancel`, { mode: "hard" });
    await ada.get(`/v1/sessions/${sessionId}`);
    const rows = await fleet.storage.reader.audit({ limit: 1_000 });
    expect(
      rows.slice(before).map(({ actor, action, object, outcome }) => [actor, action, object, outcome]),
    ).toEqual([
      ["user:ada", "session.start", `session:${sessionId}`, "created"],
      ["user:ada", "session.signal", `session:${sessionId}`, "stored"],
      ["user:ada", "session.cancel", `session:${sessionId}`, "requested"],
      ["user:ada", "session.cancel", `session:${sessionId}`, "ended"],
    ]);
    const hash = (text: string) => createHash("sha256").update(text).digest("base64url");
    expect(verifyAudit(rows, hash).status).toBe("intact");
    const reported = (await fleet.admin.get("/v1/audit?limit=1000")).body.rows;
    expect(reported).toEqual(rows);
    expect(JSON.stringify(reported)).not.toContain("not in the audit");
    expect((await ada.get("/v1/audit")).status).toBe(403);
  });

  // Commits of runners are recorded in each session's journal. An audit row for each batch would repeat them.
  test("the audit has a row for each change by a person through any service, and none for commits of runners", async () => {
    const before = (await fleet.storage.reader.audit({ limit: 1_000 })).length;
    let asked = 0;
    const change = async (who: Person, verb: string, path: string, body?: unknown) => {
      asked++;
      const { status, body: answer } = await who.call(verb, path, body);
      expect([verb, path, status < 300]).toEqual([verb, path, true]);
      return answer;
    };
    const runner = await fleet.runner();
    const registering = (await fleet.storage.reader.audit({ limit: 1_000 })).length - before;
    for (const who of [ada, fleet.admin]) {
      const { sessionId } = await change(who, "POST", "/v1/sessions", { agent: "greeter" });
      const path = `/v1/sessions/${sessionId}`;
      await change(who, "POST", `${path}/signals`, { name: "go" });
      await change(who, "PUT", `${path}/title`, { title: "Greet" });
      for (const verb of ["pause", "unpause"]) await change(who, "POST", `${path}/${verb}`);
      const fork = await change(who, "POST", `${path}/fork`, {});
      await change(who, "POST", `/v1/sessions/${fork.sessionId}/cancel`, { mode: "hard" });
      await change(who, "DELETE", `/v1/sessions/${fork.sessionId}`);
      const nightly = { cron: "0 3 * * *", start: { agent: "greeter" } };
      await change(who, "PUT", `/v1/schedules/nightly-${who === ada}`, nightly);
      await change(who, "DELETE", `/v1/schedules/nightly-${who === ada}`);
      // A runtime of theirs, as the command is one.
      const signal = { type: "send_signal", sessionId, signalId: `sig-${who === ada}`, name: "go" };
      await change(who, "POST", "/v1/storage/commit", { changes: [signal] });
    }
    const token = await change(fleet.admin, "POST", "/v1/tokens", { kind: "user", name: "eve" });
    await change(fleet.admin, "DELETE", `/v1/tokens/${token.token.tokenId}`);
    await change(fleet.admin, "POST", `/v1/runners/${(await fleet.runner()).runnerId}/drain`);
    const claims = (await runner.poll()).claims;
    expect(claims).toHaveLength(2);
    for (const claim of claims) await runner.complete(claim);
    const rows = (await fleet.storage.reader.audit({ limit: 1_000 })).slice(before);
    expect(rows).toHaveLength(2 * registering + asked);
    expect(rows.filter(({ actor }) => /^(user|admin):/.test(actor))).toHaveLength(asked);
  });
});

function creation(
  sessionId: string,
  more: Partial<Extract<Change, { type: "create_session" }>>,
): Extract<Change, { type: "create_session" }> {
  return {
    type: "create_session",
    sessionId,
    agent: { name: "greeter", version: "1" },
    input: undefined,
    seed: 1,
    flags: 0,
    format: 1,
    ...more,
  };
}

function imported(sessionId: string, more: Partial<Session>): Change {
  const payers = more.payers ?? [];
  const session: Session = {
    sessionId,
    agent: { name: "greeter", version: "1" },
    input: undefined,
    status: "submitted",
    waits: [],
    nextSeq: 0,
    entryCount: 0,
    turn: 0,
    inbox: 0,
    seed: 1,
    flags: 0,
    format: 1,
    depth: 0,
    children: 0,
    createdAt: 1,
    updatedAt: 1,
    ...more,
    payers,
  };
  return { type: "import_session", sessionId, session, records: [], entries: [] };
}
