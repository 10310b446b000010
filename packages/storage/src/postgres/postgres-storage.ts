// PostgresStorage: sessions in a PostgreSQL database that any number of processes share.
//
//   postgres-storage-1. A process runs one group at a time per session, schedule, document and audit, in the
//       order of the calls. Groups that name nothing in common run side by side. `transactions.ts` computes
//       and writes each.
//   - Callers pass the time. Opened with `clock: "database"`, `now()` answers the database's time, which all
//     processes share. Callers then pass that time, and extend leases when the database's clock is set.
//
// Listeners receive arrivals of this process at once, those of other processes when `arrival-poll.ts` finds
// them.

import {
  type AgentStorage,
  type Arrival,
  type Arrivals,
  type Change,
  type ChangeResult,
  type ClaimResult,
  type Due,
  eachName,
  type Entry,
  type HeldClaim,
  type Notice,
  type SessionSnapshot,
  type StorageReader,
  type ThreadRenewal,
} from "@holdfast/core";
import type { Database } from "./database/database.ts";
import { Turns } from "./database/turns.ts";
import { Calls } from "./engine/calls.ts";
import type { ThreadDatabase } from "./renew-in-thread.ts";
import { FactReader } from "./engine/fact-reader.ts";
import { LeaseClaims } from "./engine/lease-claims.ts";
import { Transactions } from "./engine/transactions.ts";
import { ChangeFeed, type ChangeFeedOptions } from "./news/change-feed.ts";
import { listDue, overdue } from "./read/due.ts";
import { PostgresReader } from "./read/postgres-reader.ts";
import { Reads } from "./read/reads.ts";
import { SessionLoads } from "./read/session-loads.ts";
import { Heads } from "./tables/heads.ts";
import { ALIVE_MS, Instance } from "./tables/instance.ts";
import { Peers } from "./tables/peers.ts";

/** @internal */
export interface PostgresStorageOptions extends Pick<ChangeFeedOptions, "notices" | "pollMs"> {
  readonly db: Database;
  /** The database, as errors name it. */
  readonly at: string;
  readonly lanes: number;
  /** How many heads are cached. */
  readonly headsMax: number;
  /** The database's time, if callers are to use it. */
  readonly now: (() => number) | undefined;
  /** Answers a number above all its earlier answers, and above all numbers in the database when it was opened. */
  readonly stamp: () => number;
}

/** More would only be more transactions with less in each. */
const GROUPS_MAX = 4;

export class PostgresStorage implements AgentStorage {
  readonly name = "postgres";
  readonly durable = true;
  readonly groupsMax = GROUPS_MAX;
  readonly reader: StorageReader;
  readonly now?: () => number;

  readonly #db: Database;
  readonly #at: string;
  readonly #instance: Instance;
  readonly #peers: Peers;
  readonly #loads: SessionLoads;
  readonly #feed: ChangeFeed;
  readonly #transactions: Transactions;
  readonly #claims: LeaseClaims;
  readonly #turns = new Turns();
  readonly #calls: Calls;

  /** @internal */
  constructor(options: PostgresStorageOptions) {
    const { db, at, lanes, stamp } = options;
    if (options.now !== undefined) this.now = options.now;
    this.#db = db;
    this.#at = at;
    const heads = new Heads(options.headsMax);
    const instance = new Instance(db);
    const reads = new Reads(db, at, instance.id);
    const peers = new Peers({
      db,
      instance: instance.id,
      released: (ids) => this.#feed.announce(ids.map((sessionId) => ({ sessionId, awaited: true }))),
    });
    const parts = { db, at, stamp, reads, heads, instance, peers };
    this.#instance = instance;
    this.#peers = peers;
    this.#loads = new SessionLoads(db, reads, heads, () => this.#claims.latestNow);
    this.#feed = new ChangeFeed({ ...parts, pollMs: options.pollMs, notices: options.notices });
    const onWritten: ChangeFeed["written"] = (set) => this.#feed.written(set);
    this.#transactions = new Transactions({
      ...parts,
      lanes,
      facts: new FactReader(reads, heads),
      onWritten,
    });
    this.#claims = new LeaseClaims({ ...parts, onClaimed: (head) => this.#feed.claimed(head) });
    this.#calls = new Calls(at);
    this.reader = new PostgresReader(db, reads, (read) => this.#calls.guard("reading", read));
  }

  /** Statements run since it was opened; for benchmarks. */
  get statementCount(): number {
    return this.#db.statementCount;
  }

  commit(changes: readonly Change[], now: number): Promise<readonly ChangeResult[]> {
    const names = new Set<string>();
    for (const change of changes) eachName(change, (name) => names.add(name));
    return this.#calls.guard("committing", () =>
      this.#turns.take(names, async () => {
        await this.#claims.begin(now);
        return this.#transactions.apply(changes, now);
      }),
    );
  }

  claim(claim: Parameters<AgentStorage["claim"]>[0]): Promise<ClaimResult> {
    return this.#calls.guard("claiming", async () => {
      await this.#claims.begin(claim.now);
      return this.#turns.take([claim.sessionId], () => this.#claims.claim(claim));
    });
  }

  renew(renewal: Parameters<AgentStorage["renew"]>[0]): Promise<{ readonly sessions: number }> {
    return this.#calls.guard("renewing", () => this.#claims.renew(renewal));
  }

  renewal(): ThreadRenewal {
    const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
    const isDatabaseTime = this.now !== undefined;
    const data: ThreadDatabase = { ...this.#db.place, instance: this.#instance.id, isDatabaseTime };
    const module = new URL(`./renew-in-thread.${extension}`, import.meta.url).href;
    return { module, data, silentMs: ALIVE_MS };
  }

  heldClaims(query: Parameters<AgentStorage["heldClaims"]>[0]): Promise<readonly HeldClaim[]> {
    return this.#calls.guard("reading claims", () => this.#claims.held(query));
  }

  load(sessionId: string): Promise<SessionSnapshot | undefined> {
    return this.#calls.guard("loading", () => this.#loads.load(sessionId));
  }

  arrivals(sessionId: string, after: number): Promise<Arrivals> {
    return this.#calls.guard("reading", () => this.#loads.arrivals(sessionId, after));
  }

  conversation(sessionId: string, leaf: number): Promise<readonly Entry[]> {
    return this.#calls.guard("reading", () => this.#loads.conversation(sessionId, leaf));
  }

  due(query: Parameters<AgentStorage["due"]>[0]): Promise<Due> {
    return this.#calls.guard("finding due sessions", async () => {
      const { now } = query;
      await this.#claims.begin(now);
      const damaged = new Set<string>();
      for (;;) {
        const late = (await overdue(this.#db, now)).filter((sessionId) => !damaged.has(sessionId));
        if (late.length === 0) break;
        for (const sessionId of await this.#transactions.endOverdue(late, now)) damaged.add(sessionId);
      }
      return listDue(this.#db, this.#at, this.#peers, query);
    });
  }

  subscribe(listener: (arrival: Arrival) => void): () => void {
    return this.#feed.subscribe(listener);
  }

  follow(sessionId: string | undefined, onNotice: Notice): () => void {
    return this.#feed.follow(sessionId, onNotice);
  }

  close(): Promise<void> {
    return this.#calls.close(async (open) => {
      this.#feed.stop();
      this.#peers.close();
      await Promise.allSettled([...open, this.#feed.close()]);
      try {
        await this.#instance.end();
      } catch {
        // The database is away. Other instances release our claims when our sign of life is too old.
      } finally {
        await this.#db.close();
      }
    });
  }
}
