// A PostgreSQL server with a standby by streaming replication, and an address that leads to the server that
// takes writes.

import { setTimeout as sleep } from "node:timers/promises";
import { openMovingAddress, type MovingAddress } from "./moving-address.ts";
import { startServer, type PostgresServer, type ServerOptions } from "./server.ts";
import { runSql } from "./shared-server.ts";

export interface ReplicatedOptions extends ServerOptions {
  /** Whether a commit is acknowledged only once the standby has it on its disk. */
  readonly isSynchronous: boolean;
}

const ASK_EVERY_MS = 50;
const STREAMING = "SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'";

export class ReplicatedServer {
  readonly address: MovingAddress;
  readonly #options: ReplicatedOptions;
  #primary: PostgresServer;
  #standby: PostgresServer;

  static async start(options: ReplicatedOptions): Promise<ReplicatedServer> {
    const primary = await startServer(options);
    const standby = await startServer({ ...options, standbyOf: primary });
    const server = new ReplicatedServer(options, await openMovingAddress(primary.url), primary, standby);
    await server.#follow();
    return server;
  }

  private constructor(
    options: ReplicatedOptions,
    address: MovingAddress,
    primary: PostgresServer,
    standby: PostgresServer,
  ) {
    this.#options = options;
    this.address = address;
    this.#primary = primary;
    this.#standby = standby;
  }

  /** The address, which stays the same. */
  get url(): string {
    return this.address.url;
  }

  get primary(): PostgresServer {
    return this.#primary;
  }

  get standby(): PostgresServer {
    return this.#standby;
  }

  /** Wait until the standby follows, and for its sake from now on where commits are synchronous. */
  async #follow(): Promise<void> {
    await found(this.#primary.url, STREAMING);
    if (!this.#options.isSynchronous) return;
    await runSql(this.#primary.url, "ALTER SYSTEM SET synchronous_standby_names = '*'");
    await runSql(this.#primary.url, "SELECT pg_reload_conf()");
    await found(this.#primary.url, "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'");
  }

  /** The standby has all that is committed now, and none of what is committed from now on. */
  async stopFollowing(): Promise<void> {
    const [row] = await runSql(this.#primary.url, "SELECT pg_current_wal_flush_lsn()::text AS written");
    await found(
      this.#standby.url,
      `SELECT 1 WHERE pg_last_wal_replay_lsn() >= '${String(row!["written"])}'::pg_lsn`,
    );
    await runSql(this.#standby.url, "ALTER SYSTEM SET primary_conninfo = ''");
    await runSql(this.#standby.url, "SELECT pg_reload_conf()");
    await found(this.#standby.url, "SELECT 1 WHERE NOT EXISTS (SELECT FROM pg_stat_wal_receiver)");
  }

  /** The primary is not there any more, and the address leads nowhere. */
  async losePrimary(open: "closed" | "silent" = "closed"): Promise<void> {
    this.address.pointAt(undefined, open);
    await this.#primary.kill();
  }

  /** The standby takes writes from now on. The address does not lead to it before `pointAt`. */
  async promote(): Promise<void> {
    await runSql(this.#standby.url, "SELECT pg_promote(true, 60)");
    await found(this.#standby.url, "SELECT 1 WHERE NOT pg_is_in_recovery()");
    [this.#primary, this.#standby] = [this.#standby, this.#primary];
  }

  /** Replace the server that was lost by a new standby. */
  async rebuild(): Promise<void> {
    await this.#standby.stop();
    this.#standby = await startServer({ ...this.#options, standbyOf: this.#primary });
    await this.#follow();
  }

  async stop(): Promise<void> {
    this.address.close();
    await this.#standby.stop();
    await this.#primary.stop();
  }
}

/** Wait until a statement answers a row. */
async function found(url: string, sql: string): Promise<void> {
  while ((await runSql(url, sql)).length === 0) await sleep(ASK_EVERY_MS);
}
