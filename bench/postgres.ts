// The PostgreSQL server that is measured: one of our own for the time of the bench, or the one that
// HOLDFAST_BENCH_POSTGRES_URL names.
//
// Settings are PostgreSQL's own defaults, with `fsync` and `synchronous_commit` on. Child processes find it
// by the same variable.

import { randomUUID } from "node:crypto";
import { chmodSync } from "node:fs";
import { startServer } from "@holdfast/storage/postgres-testing";

const VARIABLE = "HOLDFAST_BENCH_POSTGRES_URL";

/** Start one if none is given. Answers what stops it. */
export async function provideServer(parent: string): Promise<() => Promise<void>> {
  if (process.env[VARIABLE] !== undefined) return async () => undefined;
  // Root starts it as another user, who may have to look into the folder; where it may not, the system's own
  // folder has to do.
  chmodSync(parent, 0o711);
  const server = await startServer({ fsync: true, parent }).catch(() => startServer({ fsync: true }));
  process.env[VARIABLE] = server.url;
  return async () => {
    delete process.env[VARIABLE];
    await server.stop();
  };
}

/** A schema that is not there yet, as one text. */
export function newPlace(): string {
  return `${serverUrl()}#bench_${randomUUID().replaceAll("-", "")}`;
}

/** `undefined` for what is a file. */
export function readPlace(place: string): { readonly url: string; readonly schema: string } | undefined {
  if (!/^postgres(ql)?:/.test(place)) return undefined;
  const [url = "", schema = ""] = place.split("#");
  return { url, schema };
}

function serverUrl(): string {
  const url = process.env[VARIABLE];
  if (url === undefined) throw new Error(`no PostgreSQL server was provided: ${VARIABLE} is not set`);
  return url;
}
