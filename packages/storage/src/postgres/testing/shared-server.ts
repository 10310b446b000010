// One server for all test files of a run, and a schema of its own for each test.
//
// Test files run in several processes. The process that runs them all starts the server when the first one
// asks for it at a door, a socket. `global-setup.ts` keeps the door. With HOLDFAST_TEST_POSTGRES_URL that
// server is used, and none is started.

import { randomUUID } from "node:crypto";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { Client } from "pg";

export { LOCKED_USER } from "./server.ts";

/** Part of the names of all schemas of a run. */
export const RUN = "HOLDFAST_TEST_POSTGRES_RUN";

/** Names the door. */
export const DOOR = "HOLDFAST_TEST_POSTGRES_DOOR";

/** A server that is there until all tests are over. It need not survive a power cut. */
export async function sharedServerUrl(): Promise<string> {
  const given = process.env["HOLDFAST_TEST_POSTGRES_URL"];
  if (given !== undefined) return given;
  const door = process.env[DOOR];
  if (door === undefined)
    throw new Error(`there is no ${DOOR}: run the tests with the repository's vitest.config.ts`);
  const answer = await text(connect(door));
  if (!answer.startsWith("postgres://")) throw new Error(`no PostgreSQL server for tests: ${answer}`);
  return answer;
}

/** A name that no other test has. */
export function newSchema(): string {
  return `test_${process.env[RUN] ?? ""}_${randomUUID().replaceAll("-", "")}`;
}

/** A statement beside the storage: to damage rows, or to look at them. */
export async function runSql(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<Record<string, unknown>>(sql);
    return rows;
  } finally {
    await client.end();
  }
}
