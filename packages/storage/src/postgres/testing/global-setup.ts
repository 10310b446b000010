// Keeps the door to the shared server (`shared-server.ts`) while tests run.

import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startServer, type PostgresServer } from "./server.ts";
import { DOOR, RUN, runSql } from "./shared-server.ts";

export default async function setup(): Promise<() => Promise<void>> {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-door-"));
  const path = join(folder, "door");
  let server: Promise<PostgresServer> | undefined;
  const door = createServer((asking) => {
    asking.on("error", () => undefined);
    server ??= startServer({ fsync: false, settings: isolation() });
    server.then(
      ({ url }) => asking.end(url),
      (error: unknown) => asking.end(String(error)),
    );
  });
  await new Promise<void>((resolve, reject) => {
    door.once("error", reject);
    door.listen(path, resolve);
  });
  process.env[DOOR] = path;
  const run = randomUUID().slice(0, 8);
  process.env[RUN] = run;
  return async () => {
    door.close();
    await (await server?.catch(() => undefined))?.stop();
    await dropSchemas(run);
    rmSync(folder, { recursive: true, force: true });
  };
}

/** The setting for the default isolation level, when another than PostgreSQL's own is tested. */
function isolation(): string[] {
  const level = process.env["HOLDFAST_TEST_POSTGRES_ISOLATION"];
  return level === undefined ? [] : [`default_transaction_isolation=${level}`];
}

/** A server from outside the tests is left as it was. */
async function dropSchemas(run: string): Promise<void> {
  const url = process.env["HOLDFAST_TEST_POSTGRES_URL"];
  if (url === undefined) return;
  const found = await runSql(
    url,
    `SELECT quote_ident(nspname) AS name FROM pg_namespace WHERE nspname LIKE '%test_${run}_%'`,
  );
  for (const { name } of found) await runSql(url, `DROP SCHEMA ${String(name)} CASCADE`);
}
