// `renew`: renews claims in PostgreSQL from a thread, by a connection of its own that lasts for one renewal.

import type { RenewInThread } from "@holdfast/core";
import { databaseTime } from "./database/database-clock.ts";
import { Database, type DatabasePlace } from "./database/database.ts";
import { sayStillAlive } from "./tables/instance.ts";
import { renewLeases } from "./tables/leases.ts";

export interface ThreadDatabase extends DatabasePlace {
  /** The storage of the process, as the database knows it. */
  readonly instance: string;
  /** Whether leases end by the database's time, and not by this machine's. */
  readonly isDatabaseTime: boolean;
}

/** A renewal that takes longer is given up, and tried again. */
const PATIENCE_MS = 5_000;

/** For the data of a `PostgresStorage`. */
export const renew: RenewInThread = async (data, { owner, sessionIds, leaseMs }) => {
  const { url, schema, instance, isDatabaseTime } = data as ThreadDatabase;
  const db = new Database({
    url,
    schema,
    connectionsMax: 1,
    connectTimeoutMs: PATIENCE_MS,
    answerTimeoutMs: PATIENCE_MS,
  });
  try {
    if (leaseMs === Infinity) return await sayStillAlive(db, instance);
    const now = isDatabaseTime ? await databaseTime(db) : Date.now();
    return (await renewLeases(db, { owner, sessionIds, leaseMs, now })) > 0;
  } finally {
    await db.close();
  }
};
