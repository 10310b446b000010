// The removal of ended sessions and of old audit rows, as people see it over REST. Everything that is younger,
// or has not ended, stays.

import { hash } from "node:crypto";
import { verifyAudit, type CreateSession } from "@holdfast/core";
import { MemoryStorage, TestClock } from "@holdfast/testkit/test-runtime";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { CoordinatorConfig } from "../coordinator.ts";
import { openFleet, Person, type Fleet } from "../testing/fleet.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const SWEEP = 5_000;

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

/** Another coordinator after some days: it begins a pass at once. */
async function daysLater(days: number, retention?: CoordinatorConfig["retention"]): Promise<void> {
  await fleet.close();
  await clock.advance(days * DAY);
  const config = retention === undefined ? {} : { retention };
  fleet = await openFleet({ clock, storage, seed: 1_000 * ++lives, config });
  admin = new Person(fleet.url, admin.token);
  await clock.advance(2 * SWEEP);
}

const creating = (sessionId: string, more: Partial<CreateSession> = {}): CreateSession => {
  const agent = { name: "greeter", version: "1" };
  return { type: "create_session", sessionId, agent, input: "1", seed: 1, flags: 0, format: 1, ...more };
};

const end = async (sessionId: string): Promise<void> => {
  expect((await admin.post(`/v1/sessions/${sessionId}/cancel`, { mode: "hard" })).status).toBeLessThan(300);
};
const removals = async (): Promise<readonly object[]> =>
  (await admin.get("/v1/audit?before=0&limit=50")).body.rows.filter(
    ({ action }: { readonly action: string }) => action === "session.expire",
  );
const statusOf = async (sessionId: string): Promise<number> =>
  (await admin.get(`/v1/sessions/${sessionId}`)).status;

test("ended sessions go after their time with all that was theirs, and active ones stay", async () => {
  const [old, young, active, parent] = [
    await admin.start(),
    await admin.start(),
    await admin.start(),
    await admin.start(),
  ];
  await end(old);
  await end(parent);
  const child = "ses-child";
  const above = { sessionId: parent, child: 1, onEnd: "leave" } as const;
  await storage.commit([creating(child, { parent: above })], clock.now());
  await daysLater(20);
  await end(young);
  await daysLater(20);
  expect(await statusOf(old)).toBe(200); // Without the setting nothing is removed.
  await daysLater(0, { sessionsMs: 30 * DAY });
  expect(await statusOf(old)).toBe(404);
  expect((await admin.get(`/v1/sessions/${old}/events`)).status).toBe(404);
  for (const kept of [young, active, parent, child]) expect(await statusOf(kept)).toBe(200);
  const written = await removals();
  expect(written).toMatchObject([{ actor: "coordinator", object: "sessions", details: '{"sessions":1}' }]);
  await daysLater(0, { sessionsMs: 30 * DAY }); // A pass that finds nothing writes nothing.
  expect(await removals()).toEqual(written);
});

test("the outcome of a queued task stays until the session that asked for it has ended", async () => {
  const asker = await admin.start();
  const input = JSON.stringify({ task: { sessionId: asker, taskId: `${asker}-3`, attempt: 1 } });
  const queued = creating("ses-task", { agent: { name: "task:resize", version: "1" }, input });
  const cancel = { type: "request_cancel", sessionId: "ses-task", mode: "hard", graceMs: 0 } as const;
  await storage.commit([queued, cancel], clock.now());
  await daysLater(2, { sessionsMs: DAY });
  expect(await statusOf("ses-task")).toBe(200);
  await end(asker);
  await daysLater(0, { sessionsMs: DAY });
  expect(await statusOf("ses-task")).toBe(404);
});

test("more sessions than one step takes are removed sweep by sweep", async () => {
  const ended: string[] = [];
  for (let n = 0; n < 120; n++) ended.push(`ses-${n}`);
  for (const sessionId of ended)
    await storage.commit(
      [creating(sessionId), { type: "request_cancel", sessionId, mode: "hard", graceMs: 0 }],
      clock.now(),
    );
  await daysLater(2, { sessionsMs: DAY });
  expect(await storage.reader.sessions({ limit: 200 })).toEqual([]);
});

test("old rows of the audit go, the others stay a chain, and a page ends where they begin", async () => {
  for (let n = 0; n < 3; n++) await admin.start();
  const before = (await admin.get("/v1/audit")).body.rows.length;
  await daysLater(40);
  const kept = await admin.start();
  await daysLater(10, { auditMs: 30 * DAY });
  const { rows } = (await admin.get("/v1/audit")).body;
  expect(rows[0].seq).toBe(before + 1);
  expect(rows.some(({ object }: { readonly object: string }) => object === `session:${kept}`)).toBe(true);
  expect(rows.at(-1)).toMatchObject({ actor: "coordinator", action: "audit.trim", object: "audit" });
  const sha256 = (text: string): string => hash("sha256", text, "base64url");
  expect(verifyAudit(rows, sha256)).toMatchObject({ status: "intact" });
  expect(verifyAudit(rows.slice(1), sha256)).toMatchObject({ status: "broken" });
  const paged = (await admin.get("/v1/audit?before=0&limit=100")).body;
  expect(paged.rows).toEqual(rows.toReversed());
  expect(paged.nextBefore).toBeUndefined();
  expect((await admin.get(`/v1/audit?before=2`)).body.rows).toEqual([]);
});

test("nobody removes rows of the audit over the API, not even an admin", async () => {
  const trim = { type: "trim_audit", before: 9e15, limit: 1_000, actor: "coordinator" };
  const audit = { actor: "anna", action: "look", object: "all" };
  for (const change of [trim, { type: "audited", change: trim, audit }])
    expect((await admin.post("/v1/storage/commit", { changes: [change] })).status).toBe(403);
});
