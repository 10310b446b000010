// Instance: an open storage. Its claims without an expiry end when it closes, or some seconds after its
// process died.
//
//   - A storage that claims or renews writes every few seconds that it is alive, by the database's clock
//     (`instance`). The clocks of processes are not compared with each other.
//   - A storage that finds another one silent for `ALIVE_MS` releases the claims of that one. If that one
//     lives after all, its batches are fenced from then on: liveness is by time, safety by tokens. A process
//     of the same host that is gone is found without waiting for that (`peers.ts`).
//   - Nobody can write to a server that is down or away. Until the server has been up for `ALIVE_MS`, no
//     storage counts as dead. A standby that was promoted has been up for longer. A storage therefore also
//     counts none as dead until it has reached the server again for `ALIVE_MS` (`BACK_AT`). No storage ever
//     counts itself as dead.
//   - A thread may write that in place of its process, whose event loop is blocked, unless others took it for
//     dead.

import { randomUUID } from "node:crypto";
import { clearInterval, setInterval } from "node:timers";
import { showPresence, type Presence } from "../../host-presence.ts";
import { BACK_AT, type Database, type Statement } from "../database/database.ts";

export const ALIVE_MS = 15_000;
const SAY_EVERY_MS = 2_000;

/** An SQL condition: a time of the database is at most so long ago. */
export const isWithin = (at: string, ms: number): string =>
  `${at} > clock_timestamp() - interval '${ms} milliseconds'`;

const UP_SINCE = `greatest(pg_postmaster_start_time(), ${BACK_AT})`;

/**
 * An SQL condition: a storage with this last sign of life is alive. At `-infinity` it is known to be gone.
 */
export const livesSince = (saidAt: string): string =>
  `(${isWithin(saidAt, ALIVE_MS)} OR (${isWithin(UP_SINCE, ALIVE_MS)} AND ${saidAt} > '-infinity'))`;

/** One and a half intervals, so that a sign of life that is a little late still counts. */
export const JUST_SAID_MS = SAY_EVERY_MS * 1.5;

const SAY: Statement = {
  name: "say_alive",
  text: `INSERT INTO instance (instance, said_at, presence) VALUES ($1, clock_timestamp(), $2)
    ON CONFLICT (instance) DO UPDATE SET said_at = excluded.said_at`,
};

const SAY_STILL: Statement = {
  name: "say_still_alive",
  // mutant: dead-instance-revived
  text: `UPDATE instance SET said_at = clock_timestamp() WHERE instance = $1 AND ${livesSince("said_at")} RETURNING 1`,
};

const RELEASE = `UPDATE state t SET holder = NULL, until = '-Infinity', instance = NULL, due_at = t.ready_at,
    version = greatest(t.version + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::int8)`;

const REAP: Statement = {
  name: "reap",
  text: `WITH dead AS (DELETE FROM instance WHERE instance <> $1 AND NOT ${livesSince("said_at")} RETURNING instance)
    ${RELEASE}, losses = t.losses + 1 WHERE t.instance IS NOT NULL AND t.instance <> $1 AND t.ended = 0
      AND NOT EXISTS (SELECT 1 FROM instance i WHERE i.instance = t.instance AND ${livesSince("i.said_at")})
    RETURNING t.session_id`,
};

const LEAVE: Statement = {
  name: "leave",
  text: `WITH gone AS (DELETE FROM instance WHERE instance = $1) ${RELEASE} WHERE t.instance = $1`,
};

/**
 * Release the claims without an expiry of dead storages, and those of a storage that was taken for dead
 * before. Answers the sessions.
 *
 * @param instance the instance that looks.
 */
export async function reap(db: Pick<Database, "run">, instance: string): Promise<string[]> {
  return (await db.run(REAP, [instance])).map((row) => row["session_id"] as string);
}

/** Answers `false` for an instance that was taken for dead. */
export async function sayStillAlive(db: Pick<Database, "run">, instance: string): Promise<boolean> {
  return (await db.run(SAY_STILL, [instance])).length > 0;
}

export class Instance {
  readonly id = randomUUID();
  readonly #db: Database;
  #saying: Promise<unknown> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #presence: Presence | undefined;

  constructor(db: Database) {
    this.#db = db;
  }

  /** To be awaited before the first claim is made. */
  async begin(): Promise<void> {
    this.#saying ??= this.#sayFirst().then(() => {
      this.#timer = setInterval(() => void this.#say().catch(() => undefined), SAY_EVERY_MS);
      this.#timer.unref();
    });
    try {
      await this.#saying;
    } catch (error) {
      this.#saying = undefined;
      throw error;
    }
  }

  /** Say at once that it is alive. */
  async confirm(): Promise<void> {
    await this.begin();
    await this.#say();
  }

  /**
   * The first sign of life and the presence mark are written together: without a mark, peers could not notice
   * the death.
   */
  async #sayFirst(): Promise<void> {
    this.#presence ??= await showPresence(this.id);
    await this.#say();
  }

  #say(): Promise<unknown> {
    const mark = this.#presence?.mark;
    return this.#db.run(SAY, [this.id, mark === undefined ? null : JSON.stringify(mark)]);
  }

  /**
   * Release all its claims without an expiry. If that fails, its presence stays until the process ends, and
   * peers then release the claims.
   */
  async end(): Promise<void> {
    if (this.#saying === undefined) return;
    clearInterval(this.#timer);
    await this.#db.run(LEAVE, [this.id]);
    await this.#presence?.close();
  }
}
