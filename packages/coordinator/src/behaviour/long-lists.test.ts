// Lists that a page reads in parts, over real HTTP: the audit backwards, sessions by filters without an index, and costs.

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
