// Statements over a pool, where one of them fails.

import { expect, onTestFinished, test } from "vitest";
import { Database } from "./database.ts";
import { newSchema, runSql, sharedServerUrl } from "./testing/shared-server.ts";

// As PostgreSQL does to one of two transactions that wait for each other. What a sequence has given stays given.
test("D4: a statement that lost against another transaction is run again until it wins", async () => {
  const schema = newSchema();
  const url = await sharedServerUrl();
  await runSql(
    url,
    `CREATE SCHEMA ${schema}; CREATE SEQUENCE ${schema}.tries;
     CREATE FUNCTION ${schema}.lose(wins int8) RETURNS int8 LANGUAGE plpgsql AS $$
     DECLARE try int8 := nextval('${schema}.tries');
     BEGIN
       IF try < wins THEN RAISE 'another one won' USING ERRCODE = '40P01'; END IF;
       RETURN try;
     END $$`,
  );
  onTestFinished(async () => void (await runSql(url, `DROP SCHEMA ${schema} CASCADE`)));
  const db = new Database({ url, schema, connectTimeoutMs: 10_000, connectionsMax: 1 });
  onTestFinished(() => db.close());
  expect(await db.run({ text: `SELECT ${schema}.lose(4) AS try` })).toEqual([{ try: 4 }]);
});

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
