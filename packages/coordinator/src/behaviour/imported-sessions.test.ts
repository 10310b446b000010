// X13: imported rows that name other users' sessions. They reach no other user, and cycles of rows end no
// request.

import { type Change, exportLines, type ImportSession, LIMITS, type Session } from "@holdfast/core";
import { MemoryStorage, TestClock } from "@holdfast/testkit/test-runtime";
import { createHash } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openFleet, Person, type FakeClaim, type Fleet } from "../testing/fleet.ts";

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

test("a session of a user's schedule is not below another user's session, and sees none", async () => {
  const sessionId = await ada.start({ budget: { maxTokens: 1_000 } });
  const nextAt = clock.now() + 1_000_000;
  const action = { type: "start", agent: { name: "greeter", version: "1" }, input: undefined } as const;
  const times = { cron: "* * * * *", timeZone: "UTC", nextAt, createdAt: 0 };
  await eve.commit({ type: "put_schedule", schedule: { scheduleId: "nightly", action, ...times } });
  const fire = (of: object): Change => ({
    type: "fire_schedule",
    scheduleId: "nightly",
    dueAt: nextAt,
    nextAt,
    effect: creation("fired", of),
  });
  const parent = { sessionId, child: 1, onEnd: "leave" };
  expect(await eve.commit(fire({ parent }), fire({ shared: { kind: "conversation", sessionId } }))).toEqual([
    { status: "not_found" },
    { status: "not_found" },
  ]);
  expect(await eve.commit(fire({}))).toEqual([{ status: "done" }]);
  expect((await fleet.storage.reader.session("fired"))?.placement).toEqual({ owner: "eve" });
});

test("a runner reads nothing of another user's session that one of its own named before it was there", async () => {
  const shared = { kind: "conversation", sessionId: "desk" } as const;
  await eve.commit(imported("eves", { parent: { sessionId: "desk", child: 1, onEnd: "leave" }, shared }));
  const runner = await fleet.runner({ owner: "eve" });
  expect((await runner.poll({ free: 1 })).claims).toHaveLength(1);
  await ada.start({ sessionId: "desk", input: { secret: 1 } });
  const read = { query: "session", params: { sessionId: "desk" } };
  expect((await runner.person.post("/v1/storage/read", read)).body).toEqual({});
  const conversation = { sessionId: "desk", leaf: 0 };
  expect((await runner.person.post("/v1/storage/conversation", conversation)).body.code).toBe(
    "session_not_found",
  );
});

test("a session that names a missing parent is not below a later session of that id, and takes no child's place", async () => {
  const parent = { sessionId: "desk", child: 1, onEnd: "leave" } as const;
  const names = Array.from({ length: LIMITS.children }, (_, i) => `eves-${i}`);
  const placement = { owner: "eve" };
  await fleet.storage.commit(
    names.map((name) => imported(name, { parent, placement, status: "completed", endedAt: 1 })),
    1,
  );
  await ada.start({ sessionId: "desk" });
  const runner = await fleet.runner({ owner: "ada" });
  const [{ sessionId, token }] = (await runner.poll()).claims as [FakeClaim];
  const { secret } = (
    await runner.person.post(`/v1/runners/${runner.runnerId}/job-tokens`, { sessionId, token })
  ).body;
  const job = new Person(fleet.url, secret);
  expect((await job.get("/v1/sessions/eves-0")).status).toBe(404);
  const listed = (await job.get("/v1/sessions")).body.sessions as Session[];
  expect(listed.map((session) => session.sessionId)).toEqual(["desk"]);
  const child = { agent: "greeter", invocation: "async_callback", parentSessionId: "desk" };
  expect((await ada.post("/v1/sessions", child)).status).toBe(201);
});

test("an imported session that names another user's as parent and payer is detached from both", async () => {
  const sessionId = await ada.start({ budget: { maxTokens: 1_000 } });
  const parent = { sessionId, child: 1, onEnd: "leave" } as const;
  expect(await eve.commit(imported("eves", { parent, payers: [sessionId] }))).toEqual([
    { status: "created" },
  ]);
  expect(await fleet.storage.reader.session("eves")).toMatchObject({ detachedFrom: parent, payers: [] });
});

test("all sessions of an imported tree belong to their user, and a runner gets each of them", async () => {
  await ada.start({ sessionId: "desk" });
  const parent = { sessionId: "root", child: 0, onEnd: "cancel" } as const;
  const placement = { owner: "ada" };
  const tree = (more: Partial<Session>): Change => ({
    type: "import_tree",
    sessionId: "root",
    sessions: [imported("root", { children: 1 }), imported("root-0", { parent, placement, ...more })],
  });
  const shared = { kind: "conversation", sessionId: "desk" } as const;
  expect(await eve.commit(tree({ shared }))).toEqual([{ status: "not_found" }]);
  expect(await fleet.storage.reader.sessions({ owner: "eve", limit: 9 })).toEqual([]);
  expect(await eve.commit(tree({ shared: { ...shared, sessionId: "root" } }))).toEqual([
    { status: "created" },
  ]);
  expect(await fleet.storage.reader.session("root-0")).toMatchObject({ parent, placement: { owner: "eve" } });
  const runner = await fleet.runner({ owner: "eve" });
  const { claims } = await runner.poll({ free: 2 });
  expect(claims.map(({ sessionId }) => sessionId).toSorted()).toEqual(["root", "root-0"]);
});

test("a file of a tree is imported over REST, once", async () => {
  const there = new MemoryStorage();
  const parent = { sessionId: "root", child: 0, onEnd: "cancel" } as const;
  const sessions = [imported("root", { children: 1 }), imported("root-0", { parent })];
  await there.commit([{ type: "import_tree", sessionId: "root", sessions }], 1);
  const lines: unknown[] = [];
  for await (const line of exportLines(there.reader, "root", createHash("sha256"), { tree: true }))
    lines.push(JSON.parse(line));
  const answer = await ada.post("/v1/sessions/import", { lines });
  expect(answer).toMatchObject({ status: 201, body: { sessionId: "root" } });
  expect(await fleet.storage.reader.session("root-0")).toMatchObject({ parent, placement: { owner: "ada" } });
  expect(await ada.post("/v1/sessions/import", { lines })).toMatchObject({ status: 409 });
});

test.each(["submitted", "working"] as const)(
  "an imported session that is %s has waited since its import, whatever times its row has",
  async (status) => {
    await clock.advance(60 * 60_000);
    const first = await ada.start({ priority: 1 });
    await eve.commit(imported("eves", { status, createdAt: 1, updatedAt: 2 }));
    const runner = await fleet.runner();
    expect((await runner.poll({ free: 1 })).claims.map(({ sessionId }) => sessionId)).toEqual([first]);
  },
);

test("an imported field of the wrong type is refused, and every list stays readable", async () => {
  const error = { name: "Error", message: "m", code: 5 } as unknown as NonNullable<Session["error"]>;
  const change = imported("b1", { status: "failed", endedAt: 1, error });
  expect((await eve.post("/v1/storage/commit", { changes: [change] })).status).toBe(422);
  const list = "/holdfast.v1.SessionService/List";
  expect((await fleet.admin.post(list)).status).toBe(200);
});

function creation(sessionId: string, more: object): Extract<Change, { type: "create_session" }> {
  const agent = { name: "greeter", version: "1" };
  return {
    type: "create_session",
    sessionId,
    agent,
    input: undefined,
    seed: 1,
    flags: 0,
    format: 1,
    ...more,
  };
}

function imported(sessionId: string, more: Partial<Session>): ImportSession {
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
    payers: [],
    createdAt: 1,
    updatedAt: 1,
    ...more,
  };
  return { type: "import_session", sessionId, session, records: [], entries: [] };
}
