// Lists that a page reads in parts, over real HTTP: the audit backwards, sessions by filters without an
// index, and costs.

import { afterEach, beforeEach, expect, test } from "vitest";
import { openFleet, type Fleet, type Person } from "../testing/fleet.ts";

let fleet: Fleet;
let ada: Person;
beforeEach(async () => {
  fleet = await openFleet();
  ada = await fleet.user("ada");
});
afterEach(() => fleet.close());

test("an admin reads the audit backwards from its newest row, page by page, without a gap", async () => {
  for (let at = 0; at < 5; at++) await ada.start();
  const rows = await fleet.storage.reader.audit({ limit: 1_000 });
  const read: unknown[] = [];
  let before: number | undefined = 0;
  while (before !== undefined && read.length <= rows.length) {
    const { body } = await fleet.admin.get(`/v1/audit?before=${before}&limit=3`);
    read.push(...body.rows);
    before = body.nextBefore;
  }
  expect(read).toEqual(rows.toReversed());
  expect((await fleet.admin.get("/v1/audit?before=1000000&limit=1")).body.rows).toEqual(rows.slice(-1));
  expect((await fleet.admin.get("/v1/audit?before=1")).body).toEqual({ rows: [] });
  expect((await fleet.admin.get("/v1/audit?before=2&after=1")).status).toBe(422);
});

test("filters without an index find sessions of all statuses, only the caller's own, and page on", async () => {
  const start = async (who: Person, body: object): Promise<string> =>
    (await who.call("POST", "/v1/sessions", { agent: "greeter", ...body })).body.sessionId;
  const eve = await fleet.user("eve");
  const gpu = await start(ada, { input: { note: "Grüße An Alle" }, demands: { gpu: "a100", zone: "" } });
  const plain = await start(ada, { input: { note: "nothing" } });
  const theirs = await start(eve, { input: { note: "grüße" }, demands: { gpu: "a100" } });
  const ended = await start(ada, { input: "grüße" });
  await ada.call("POST", `/v1/sessions/${ended}/cancel`, { mode: "hard" });
  const found = async (who: Person, query: string) => {
    const { body } = await who.get(`/v1/sessions?${query}`);
    return body.sessions.map(({ sessionId }: { readonly sessionId: string }) => sessionId);
  };
  expect(await found(ada, `text=${encodeURIComponent("GRÜSSE")}`)).toEqual([]);
  expect(await found(ada, `text=${encodeURIComponent("GRÜßE")}`)).toEqual([ended, gpu]);
  expect(await found(fleet.admin, `text=${encodeURIComponent("grüße")}&owner=eve`)).toEqual([theirs]);
  expect(await found(ada, "label=gpu")).toEqual([gpu]);
  expect(await found(ada, "label=gpu%3Da100")).toEqual([gpu]);
  expect(await found(ada, "label=gpu%3Dh100")).toEqual([]);
  expect(await found(ada, "label=zone%3D")).toEqual([gpu]);
  expect(await found(ada, "label=toString")).toEqual([]);
  expect(await found(ada, "endedFrom=0")).toEqual([ended]);
  expect(await found(ada, "endedBefore=1")).toEqual([]);
  expect(await found(ada, "costFromMicroUsd=1")).toEqual([]);
  const first = (await ada.get("/v1/sessions?text=greeter&limit=2")).body;
  expect([first.sessions.length, first.searched]).toEqual([2, 2]);
  const second = (await ada.get(`/v1/sessions?text=greeter&limit=2&cursor=${first.nextCursor}`)).body;
  expect(second.sessions.map(({ sessionId }: { readonly sessionId: string }) => sessionId)).toEqual([gpu]);
  expect(plain).toBeDefined();
  const [{ code }] = (await ada.get(`/v1/sessions?text=${"x".repeat(201)}`)).body.errors;
  expect(code).toBeDefined();
});

test("the costs of sessions are listed for their owner alone, page by page", async () => {
  const mine = [await ada.start(), await ada.start()];
  const eve = await fleet.user("eve");
  const page = (await ada.get("/v1/costs?limit=1")).body;
  expect(page.costs).toMatchObject([{ sessionId: mine[1], owner: "ada", parts: [], unrecorded: false }]);
  const next = (await ada.get(`/v1/costs?limit=1&cursor=${page.nextCursor}`)).body;
  expect(next.costs).toMatchObject([{ sessionId: mine[0] }]);
  expect((await eve.get("/v1/costs?owner=ada")).body).toEqual({ costs: [] });
  expect((await eve.get(`/v1/costs?cursor=${mine[0]}`)).status).toBe(422);
  expect((await fleet.admin.get("/v1/costs?owner=ada")).body.costs).toHaveLength(2);
});

test("sessions are counted by status, each caller's own and under the filters", async () => {
  const eve = await fleet.user("eve");
  const ended = await ada.start();
  await ada.start();
  await eve.start();
  await ada.call("POST", `/v1/sessions/${ended}/cancel`, { mode: "hard" });
  const counted = async (who: Person, query = "") => {
    const { counts } = (await who.get(`/v1/session-counts${query}`)).body;
    const found = counts as readonly {
      readonly status: string;
      readonly sessions: number;
      readonly isCut: boolean;
    }[];
    expect(found.some(({ isCut }) => isCut)).toBe(false);
    return Object.fromEntries(found.map(({ status, sessions }) => [status, sessions]));
  };
  expect(await counted(fleet.admin)).toEqual({ submitted: 2, cancelled: 1 });
  expect(await counted(fleet.admin, "?owner=eve")).toEqual({ submitted: 1 });
  expect(await counted(fleet.admin, "?agent=nobody")).toEqual({});
  expect(await counted(ada)).toEqual({ submitted: 1, cancelled: 1 });
  expect(await counted(eve, "?agent=greeter")).toEqual({ submitted: 1 });
  expect(await counted(eve, "?owner=ada")).toEqual({}); // For a user, other users have no sessions.
});
