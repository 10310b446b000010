// Statements over a pool, where one of them fails.

import { expect, onTestFinished, test } from "vitest";
import { Database } from "./database.ts";
import { newSchema, sharedServerUrl } from "./testing/shared-server.ts";

test("of several reads the one that fails is told, and its connection is as good as before", async () => {
  const options = { url: await sharedServerUrl(), schema: newSchema(), connectTimeoutMs: 10_000 };
  const db = new Database({ ...options, connectionsMax: 1 });
  onTestFinished(() => db.close());
  const one = [{ text: "SELECT 1 AS one" }, []] as const;
  const bad = [{ text: "SELECT 1 / $1::int4 AS none" }, [0]] as const;
  await expect(db.readAll([one, bad, one])).rejects.toMatchObject({ code: "22012" });
  // Outside of any transaction: nothing of the one before is left.
  expect(await db.run({ text: "SHOW transaction_read_only" })).toEqual([{ transaction_read_only: "off" }]);
  expect(await db.readAll([one, one])).toEqual([[{ one: 1 }], [{ one: 1 }]]);
});
