import { expect, test } from "vitest";
import { documentKind } from "../tables/items.ts";
import { keyOf, type Facts } from "./group-facts.ts";
import { noWrites } from "./group-writes.ts";
import { WorkingLedger } from "./working-ledger.ts";

test("an item that is ahead of the clock gets a version above its own", () => {
  const key = keyOf(documentKind("plans"), "one");
  const stored = { version: 2_000, body: JSON.stringify({ id: "one" }), nextAt: null };
  const facts = { items: new Map([[key, stored]]) } as unknown as Facts;
  const writes = noWrites();
  const ledger = new WorkingLedger(writes, { facts, stamp: () => 1_000 });
  ledger.putDocument("plans", { id: "one", body: "{}", version: 2, updatedAt: 5 });
  expect(writes.items.get(key)?.item?.version).toBeGreaterThan(2_000);
});
