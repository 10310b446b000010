// Statements over a pool, where one of them fails.

import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { expect, onTestFinished, test } from "vitest";
import { Database } from "./database.ts";
import { openPostgresStorage } from "../open.ts";
import { toStorageError } from "./pg-errors.ts";
import { openMovingAddress } from "../testing/moving-address.ts";
import { newSchema, runSql, sharedServerUrl } from "../testing/shared-server.ts";
import { verifyDatabase } from "../read/verify.ts";

// The function fails as PostgreSQL does in a deadlock. A sequence keeps its number when its transaction
// fails.
test("postgres-database-4: a statement that lost against another transaction is run again until it wins", async () => {
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

test("a failed read among several rejects their call, and its connection stays usable", async () => {
  const options = { url: await sharedServerUrl(), schema: newSchema(), connectTimeoutMs: 10_000 };
  const db = new Database({ ...options, connectionsMax: 1 });
  onTestFinished(() => db.close());
  const one = [{ text: "SELECT 1 AS one" }, []] as const;
  const bad = [{ text: "SELECT 1 / $1::int4 AS none" }, [0]] as const;
  await expect(db.readAll([one, bad, one])).rejects.toMatchObject({ code: "22012" });
  // No transaction of the failed reads is left open.
  expect(await db.run({ text: "SHOW transaction_read_only" })).toEqual([{ transaction_read_only: "off" }]);
  expect(await db.readAll([one, one])).toEqual([[{ one: 1 }], [{ one: 1 }]]);
});

test("postgres-database-5: a call to a silent server times out and loses its connection, and the next call makes another one", async () => {
  const url = new URL(await sharedServerUrl());
  const target = { host: url.hostname, port: Number(url.port) };
  const open: Socket[] = [];
  const between = createServer((asking) => {
    const server = connect(target);
    for (const socket of [asking, server]) open.push(socket.on("error", () => {}));
    asking.pipe(server).pipe(asking);
  });
  await new Promise<void>((resolve) => between.listen(0, "127.0.0.1", resolve));
  url.port = String((between.address() as AddressInfo).port);
  const options = { url: url.href, schema: newSchema(), connectTimeoutMs: 10_000, connectionsMax: 2 };
  const db = new Database({ ...options, answerTimeoutMs: 1_000 });
  onTestFinished(async () => {
    await db.close();
    for (const socket of open) socket.destroy();
    between.close();
  });
  const one = { text: "SELECT 1 AS one" };
  const read = () => [db.run(one), db.readAll([[one, []]])];
  await Promise.all(read());
  // Neither side notices: the machine in between has lost its power.
  for (const socket of open) socket.unpipe().pause();
  const refused = (thrown: unknown) => toStorageError(thrown, "there", "reading");
  const answers: unknown[] = await Promise.all(read().map((answer) => answer.catch(refused)));
  const away = { code: "storage_unavailable" };
  expect(answers).toMatchObject([away, away]);
  expect(await db.run(one)).toEqual([{ one: 1 }]);
});

test("postgres-database-5: a check that goes through whole tables may take longer than an answer", async () => {
  const [url, schema] = [await sharedServerUrl(), newSchema()];
  const options = { url, schema, connectTimeoutMs: 10_000, connectionsMax: 2 };
  const db = new Database({ ...options, answerTimeoutMs: 300 });
  const holding = new Client({ connectionString: url });
  onTestFinished(async () => {
    await Promise.all([db.close(), holding.end()]);
    await runSql(url, `DROP SCHEMA ${schema} CASCADE`);
  });
  await (await openPostgresStorage({ url, schema })).close();
  await holding.connect();
  // The check only counts the rows of this table that belong to no session.
  await holding.query(`BEGIN; LOCK TABLE ${schema}.seen IN ACCESS EXCLUSIVE MODE`);
  const checked = verifyDatabase(db, "there");
  checked.catch(() => {});
  await Promise.race([checked, sleep(600)]);
  await holding.query("COMMIT");
  expect((await checked).problems).toEqual([]);
});

test("postgres-database-5: a connection for notices to a server that is silent is closed", async () => {
  const address = await openMovingAddress(await sharedServerUrl());
  const options = { url: address.url, schema: newSchema(), connectTimeoutMs: 10_000, connectionsMax: 1 };
  const db = new Database(options);
  onTestFinished(async () => {
    await db.close();
    address.close();
  });
  const listening = await db.listen("of_a_test", { received: () => {}, lost: () => {} });
  address.pointAt(undefined, "silent");
  await listening.close(); // Without an end of its own it would wait for the server.
});
