// Database: a pool of connections that takes statements and answers rows. It knows no tables.
//
//   - `run` is one statement and, outside of `transact`, its own transaction: its changes are synced when it
//     answers.
//   - A connection that was lost is not used again; the next call makes a new one.
//   postgres-database-3. Statements are prepared by name once per connection, with plans that do not depend
//       on the size of the tables at that time. Sequential scans and hash joins are off, because a plan that
//       was made over an empty table is kept until the table is analysed.
//   postgres-database-4. A single statement that lost against others (a serialization failure, a deadlock)
//       changed nothing, and is run again. Results thus do not depend on the server's default isolation
//       level.
//   postgres-database-5. A server whose machine is gone sends nothing, not even an error. A call without an
//       answer for `answerTimeoutMs` therefore rejects with an unknown outcome, and the connection is given
//       up. Migrations, and statements over whole tables, may take longer, and wait.
//   postgres-database-6. A new connection that leads to a standby is refused, because what a standby has may
//       be out of date. A failed statement takes its connection along, so a server that takes no writes any
//       more is left as well. The next connection may lead to the primary.
//   - Each connection knows since when this process reaches the server again (`BACK_AT`).

import { toError } from "@holdfast/core";
import type { Socket } from "node:net";
import { clearTimeout, setTimeout } from "node:timers";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { hasLost, isOutage } from "./pg-errors.ts";
import { assertServer, SERVER_COLUMNS, type ServerRow } from "./server-check.ts";

export interface Statement {
  /** The name under which the statement is prepared. A statement without a name is not prepared. */
  readonly name?: string;
  readonly text: string;
  /**
   * The statement reads whole tables, so a server that is silent for long may still be running it
   * (postgres-database-5).
   */
  readonly isLong?: true;
}

export type Row = Readonly<Record<string, unknown>>;

export interface DatabasePlace {
  readonly url: string;
  /** The schema of the tables. */
  readonly schema: string;
}

export interface DatabaseOptions extends DatabasePlace {
  readonly connectionsMax: number;
  readonly connectTimeoutMs: number;
  /** postgres-database-5. A minute when absent. */
  readonly answerTimeoutMs?: number;
  /** Whether nothing is decided by what is read, so that a standby will do (postgres-database-6). */
  readonly isReader?: boolean;
}

const ANSWER_TIMEOUT_MS = 60_000;
/** How long the server has for the end of a connection that waits for nothing. */
const FAREWELL_MS = 1_000;
/**
 * After how long without a word the system asks whether the other side is still there
 * (postgres-database-5).
 */
const KEEP_ALIVE = { keepAlive: true, keepAliveInitialDelayMillis: 10_000 } as const;

const SETTINGS = [
  "SET enable_seqscan = off",
  "SET enable_hashjoin = off",
  "SET enable_mergejoin = off",
  "SET enable_bitmapscan = off",
  "SET plan_cache_mode = force_generic_plan",
  "SET jit = off",
  // A process that stops in the middle of a transaction must not hold its locks without end.
  "SET idle_in_transaction_session_timeout = 60000",
  // Acknowledged means synced, whatever the server's default is.
  "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'",
].join("; ");

/**
 * SQL for the server's time when the process reached it again after an outage; `-infinity` before the first
 * one.
 */
export const BACK_AT = "current_setting('holdfast.back_at')::timestamptz";

/** A connection of its own that receives the notices of a channel. */
export interface Listening {
  close(): Promise<void>;
}

export interface ListenHandlers {
  readonly received: (said: string) => void;
  /** The connection is lost, and no more notices come. Not called after `close`. */
  readonly lost: () => void;
}

/**
 * How often a statement is run again because others were faster, and how long it waits at most: a random
 * time, doubled.
 */
const RUNS_MAX = 20;
const PAUSE_MAX_MS = 50;

const INT8 = 20;
const INT8_ARRAY = 1016;

/** Numbers of ours fit into doubles. */
const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: "text") => {
    const parse = pg.types.getTypeParser(oid, format) as (text: string) => unknown;
    if (oid === INT8) return Number;
    return oid === INT8_ARRAY ? (text: string) => (parse(text) as string[]).map(Number) : parse;
  }) as typeof pg.types.getTypeParser,
};

export class Database {
  /** Where it is, for a thread that opens it again. With its password. */
  readonly place: DatabasePlace;
  readonly #pool: pg.Pool;
  readonly #connectTimeoutMs: number;
  readonly #answerTimeoutMs: number;
  readonly #isReader: boolean;
  readonly #onConnect: string;
  #isAway = false;
  #backAt = "-infinity";
  /** Statements run since it was opened; for benchmarks. */
  statementCount = 0;

  constructor(options: DatabaseOptions) {
    const { url, schema, connectionsMax, connectTimeoutMs } = options;
    this.place = { url, schema };
    this.#connectTimeoutMs = connectTimeoutMs;
    this.#answerTimeoutMs = options.answerTimeoutMs ?? ANSWER_TIMEOUT_MS;
    this.#isReader = options.isReader ?? false;
    this.#onConnect = `SET search_path = ${pg.escapeIdentifier(schema)}; ${SETTINGS}`;
    this.#pool = new pg.Pool({
      connectionString: url,
      max: connectionsMax,
      connectionTimeoutMillis: connectTimeoutMs,
      // Waiting connections are no reason for a process to stay.
      allowExitOnIdle: true,
      ...KEEP_ALIVE,
      application_name: "holdfast",
      pipeline: true,
      types,
      verify: (client, done) => void this.#prepare(client).then(() => done(), done),
    });
    // An idle connection: no call of ours fails by its loss.
    this.#pool.on("error", (error) => (this.#isAway ||= isOutage(error)));
    this.#pool.on("connect", (client) => void client.on("error", () => undefined));
  }

  /** Make a new connection ready, unless its server is none for us. */
  async #prepare(client: pg.PoolClient): Promise<void> {
    const isBack = this.#isAway;
    const backAt = isBack ? "clock_timestamp()::text" : pg.escapeLiteral(this.#backAt);
    const ask = (text: string) => {
      const bounded = { text, query_timeout: this.#connectTimeoutMs };
      return client.query(bounded);
    };
    const asked = ask(
      `SELECT ${SERVER_COLUMNS}, set_config('holdfast.back_at', ${backAt}, false) AS back_at`,
    );
    const set = ask(this.#onConnect);
    set.catch(() => undefined); // It is awaited below. An old server does not know all settings.
    const [server] = (await asked).rows as [ServerRow & { readonly back_at: string }];
    assertServer(server, this.place.url, this.#isReader);
    await set;
    if (!isBack) return;
    this.#isAway = false;
    this.#backAt = server.back_at;
  }

  /** Notes an outage, after which the server is reached again. */
  async #noting<T>(asked: Promise<T>): Promise<T> {
    try {
      return await asked;
    } catch (error) {
      this.#isAway ||= isOutage(error);
      throw error;
    }
  }

  /** postgres-database-4. */
  async run(statement: Statement, values: readonly unknown[] = []): Promise<Row[]> {
    for (let runs = 1; ; runs++) {
      this.statementCount++;
      try {
        const { rows } = await this.#noting(this.#pool.query(this.#within(statement, values)));
        return rows as Row[];
      } catch (error) {
        // mutant: lost-statement-not-rerun
        if (!hasLost(error) || runs === RUNS_MAX) throw error;
        await sleep(Math.random() * Math.min(2 ** runs, PAUSE_MAX_MS));
      }
    }
  }

  /** postgres-database-5. */
  #within(statement: Statement, values: readonly unknown[]) {
    const query_timeout = statement.isLong === true ? 0 : this.#answerTimeoutMs;
    return { ...statement, values: [...values], query_timeout };
  }

  /** Several reads of one moment, in one round trip. */
  async readAll(reads: readonly (readonly [Statement, readonly unknown[]])[]): Promise<Row[][]> {
    const client = await this.#noting(this.#pool.connect());
    const ask = async (statement: Statement, values: readonly unknown[] = []): Promise<Row[]> => {
      this.statementCount++;
      return (await this.#noting(client.query(this.#within(statement, values)))).rows as Row[];
    };
    const begun = ask({ text: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" });
    const sent = reads.map(([statement, values]) => ask(statement, values));
    // COMMIT ends the transaction also after a failed read.
    const ended = ask({ text: "COMMIT" });
    const all = await Promise.allSettled([begun, ...sent, ended]);
    const last = all.at(-1);
    client.release(last?.status === "rejected" ? toError(last.reason) : undefined);
    // The first error has the reason; later ones only say that the transaction has failed.
    for (const each of all) if (each.status === "rejected") throw each.reason;
    return Promise.all(sent);
  }

  /**
   * A transaction of several statements; whatever is thrown rolls it back. Statements sent together travel
   * together.
   */
  async transact<T>(
    work: (run: (statement: Statement, values?: readonly unknown[]) => Promise<Row[]>) => Promise<T>,
  ): Promise<T> {
    const client = await this.#noting(this.#pool.connect());
    const run = async (statement: Statement, values: readonly unknown[] = []): Promise<Row[]> => {
      this.statementCount++;
      return (await client.query({ ...statement, values: [...values] })).rows as Row[];
    };
    let broken: Error | undefined;
    try {
      const begun = run({ text: "BEGIN" });
      const [result] = await Promise.all([work(run), begun]);
      await run({ text: "COMMIT" });
      return result;
    } catch (error) {
      await run({ text: "ROLLBACK" }).catch((thrown: unknown) => {
        broken = toError(thrown);
      });
      throw error;
    } finally {
      client.release(broken);
    }
  }

  /** @param channel a name that needs no quotes. */
  async listen(channel: string, { received, lost }: ListenHandlers): Promise<Listening> {
    const client = new pg.Client({
      connectionString: this.place.url,
      connectionTimeoutMillis: this.#connectTimeoutMs,
      ...KEEP_ALIVE,
      application_name: "holdfast notices",
    });
    let isOver = false;
    const end = (): void => {
      if (isOver) return;
      isOver = true;
      lost();
    };
    client.on("error", end);
    client.on("end", end);
    client.on("notification", ({ payload }) => received(payload ?? ""));
    try {
      await client.connect();
      const asked = { text: `LISTEN ${channel}`, query_timeout: this.#connectTimeoutMs };
      await client.query(asked);
    } catch (error) {
      isOver = true;
      await client.end().catch(() => undefined);
      throw error;
    }
    // Listening is no reason for a process to stay.
    const { stream } = (client as unknown as { readonly connection: { readonly stream: Socket } }).connection;
    stream.unref();
    return {
      close: async () => {
        isOver = true;
        const given = setTimeout(() => stream.destroy(), FAREWELL_MS); // The server may be away in silence.
        await client.end().catch(() => undefined);
        clearTimeout(given);
      },
    };
  }

  close(): Promise<void> {
    return this.#pool.end();
  }
}
