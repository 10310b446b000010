// SqliteStorage: sessions in one SQLite file, for the one process that owns it.
//
// Every method runs to its end on the calling thread, so its promise is settled when it returns (but for
// `claim`, sqlite-storage-4). It knows nothing of sockets, locks or files; `open.ts` puts those around it.
//
//   - `commit` is one transaction. An answered commit is synced (`synchronous=FULL`), and only then are
//     listeners notified.
//   - There are no savepoints. When the file refuses a statement for an unforeseen reason, the transaction is
//     rolled back. The group is then halved until the change at fault is alone (ST4).
//   - When the environment is at fault (disk full, read-only, a failing disk), nothing of the group is
//     applied and the call rejects. The next call starts from the content of the file.
//   - A write to a file that its path no longer leads to is not acknowledged (`file-guard.ts`).
//   sqlite-storage-4. Claims that are requested at the same time share one transaction, because a process
//       that distributes sessions claims many at a time. They are made before any later call.

import {
  type AgentStorage,
  applyChange,
  applyOverdue,
  type Arrival,
  type Arrivals,
  type Change,
  type ChangeResult,
  type Claim,
  type ClaimResult,
  type Due,
  type Entry,
  Followers,
  type HeldClaim,
  HoldfastError,
  isActive,
  isCorrupt,
  isEnded,
  listHolds,
  newsOf,
  NotFoundError,
  pageOfClaims,
  refuseClaim,
  remainingFor,
  renewedClaim,
  type SessionSnapshot,
  type StorageReader,
  UnavailableError,
  unlessCorrupt,
} from "@holdfast/core";
import { Blobs } from "../tables/blobs.ts";
import { ClientClaims } from "./client-claims.ts";
import type { SqlDriver, SqlStatement } from "../file/driver.ts";
import { DraftBoard } from "./draft-board.ts";
import { DueIndex } from "./due-index.ts";
import type { FileGuard } from "../file/file-guard.ts";
import { Heads } from "./heads.ts";
import { Leases, type LastOwner } from "../tables/leases.ts";
import { Reads, SqliteReader } from "./reads.ts";
import { describeRefusal, isEnvironmental, toStorageError } from "../file/sql-errors.ts";
import { Tokens } from "../tables/tokens.ts";
import type { VerifyReport } from "../../verify-report.ts";
import { verifyDatabase } from "./verify.ts";
import { Writer } from "./writer.ts";

/** The changes of one caller, with the time that it passed. */
export interface ChangeGroup {
  readonly changes: readonly Change[];
  readonly now: number;
  /** Another process for which they are made (sqlite-leases-5). */
  readonly client?: number;
}

/** @internal */
export interface SqliteStorageOptions {
  readonly driver: SqlDriver;
  readonly path: string;
  /** Asked before a commit is answered. Closed with the storage. */
  readonly guard?: FileGuard;
  /** How many heads of unclaimed sessions are cached. */
  readonly headsMax?: number;
  /** Notices for people about the state in which the file was found. */
  readonly warnings?: readonly string[];
  readonly lastOwner?: LastOwner;
  /** Called once, by `close`, while the storage still answers. */
  readonly beforeClose?: () => Promise<void>;
  /** Called once, by `close`, when the file is closed. */
  readonly afterClose?: () => void;
}

const HEADS_MAX = 4_096;

export class SqliteStorage implements AgentStorage {
  readonly name = "sqlite";
  readonly durable = true;
  readonly path: string;
  readonly reader: StorageReader;
  readonly lost: Promise<HoldfastError> | undefined;
  readonly warnings: readonly string[];

  readonly #driver: SqlDriver;
  readonly #begin: SqlStatement;
  readonly #commit: SqlStatement;
  readonly #reads: Reads;
  readonly #heads: Heads;
  readonly #tokens: Tokens;
  readonly #leases: Leases;
  readonly #writer: Writer;
  readonly #dueIndex: DueIndex;
  /** @internal */
  readonly clients: ClientClaims;
  readonly drafts = new DraftBoard();
  readonly #listeners = new Set<(arrival: Arrival) => void>();
  readonly #followers = new Followers();
  readonly #options: SqliteStorageOptions;
  readonly #claiming: Claiming[] = [];
  #closing: Promise<void> | undefined;
  #isClosed = false;

  /** @internal */
  constructor(options: SqliteStorageOptions) {
    const { driver, path } = options;
    this.path = path;
    this.warnings = options.warnings ?? [];
    this.#driver = driver;
    this.#options = options;
    this.lost = options.guard?.lost;
    this.#begin = driver.prepare("BEGIN");
    this.#commit = driver.prepare("COMMIT");
    const blobs = new Blobs(driver, path);
    this.#reads = new Reads(driver, path, blobs);
    this.#heads = new Heads(this.#reads, options.headsMax ?? HEADS_MAX);
    this.#tokens = new Tokens(driver);
    this.#leases = new Leases(driver, path, options.lastOwner);
    this.#writer = new Writer(driver, {
      heads: this.#heads,
      reads: this.#reads,
      blobs,
      tokens: this.#tokens,
      leases: this.#leases,
    });
    this.clients = new ClientClaims(driver, this.#leases, this.#heads);
    this.#dueIndex = new DueIndex(driver, this.#heads, this.#reads.schedules);
    for (const [sessionId, claim] of this.#leases.claims()) this.#heads.forget(sessionId, claim);
    this.reader = new SqliteReader(
      this.#reads,
      (read) => this.#guard("reading", read),
      (sessionId) => this.#heads.whole(sessionId)?.session,
    );
  }

  /** Statements run since it was opened; for benchmarks. */
  get statementCount(): number {
    return this.#driver.statementCount;
  }

  async commit(changes: readonly Change[], now: number): Promise<readonly ChangeResult[]> {
    return this.commitGroups([{ changes, now }])[0]!;
  }

  /** The groups of several callers in one transaction, in the order given. */
  commitGroups(groups: readonly ChangeGroup[]): ChangeResult[][] {
    return this.#guard("committing", () => {
      if (groups[0] !== undefined) this.#beginLeases(groups[0].now);
      const timed: TimedChange[] = [];
      for (const { changes, now, client } of groups)
        for (const change of changes) timed.push({ change, now, client });
      const results = this.#applyAll(timed, timed.length > 1);
      let from = 0;
      return groups.map(({ changes }) => results.slice(from, (from += changes.length)));
    });
  }

  /** @param client another process for which it is made (sqlite-leases-5). */
  claim(claim: AskedClaim, client?: number): Promise<ClaimResult> {
    return new Promise((resolve, reject) => {
      if (this.#claiming.length === 0) void Promise.resolve().then(() => this.#claimAll());
      this.#claiming.push({ claim, client, resolve, reject });
    });
  }

  /** sqlite-storage-4. */
  #claimAll(): void {
    const claiming = this.#claiming.splice(0);
    if (claiming.length === 0) return;
    try {
      const results = this.#guard("claiming", () => this.#makeClaims(claiming));
      for (const [i, { resolve }] of claiming.entries()) resolve(results[i]!);
    } catch (error) {
      const [first, ...others] = claiming;
      if (others.length === 0) return first?.reject(error);
      // A claim that fails must not make the others fail.
      for (const each of claiming) {
        this.#claiming.push(each);
        this.#claimAll();
      }
    }
  }

  #makeClaims(claiming: readonly Pick<Claiming, "claim" | "client">[]): ClaimResult[] {
    this.#options.guard?.refuseIfLost();
    this.#beginLeases(claiming[0]!.claim.now);
    const free = claiming.filter(({ claim }) => this.#refuseClaim(claim) === undefined);
    const isFiled = ({
      claim: { sessionId, leaseMs },
      client,
    }: Pick<Claiming, "claim" | "client">): boolean =>
      leaseMs !== Infinity ||
      client !== undefined ||
      this.#leases.mustFile(sessionId, this.#heads.get(sessionId)!.claim);
    return this.#transact(
      () =>
        claiming.map(({ claim, client }) => {
          const refusal = this.#refuseClaim(claim);
          if (refusal !== undefined) return refusal;
          this.#leases.client = client;
          return this.#writer.claim(this.#heads.get(claim.sessionId)!, claim);
        }),
      free.length > 1 || (free.length === 1 && this.#tokens.isSpent) || free.some(isFiled),
    );
  }

  #refuseClaim(claim: AskedClaim): ClaimResult | undefined {
    const head = this.#heads.get(claim.sessionId);
    return head === undefined ? { status: "not_found" } : refuseClaim(head.session, head.claim, claim);
  }

  async renew({
    owner,
    sessionIds,
    now,
    leaseMs,
  }: Parameters<AgentStorage["renew"]>[0]): Promise<{ readonly sessions: number }> {
    return this.#guard("renewing claims", () => {
      this.#beginLeases(now);
      const wanted = sessionIds && new Set(sessionIds);
      const held = this.#leases.ofOwner(owner).filter((sessionId) => wanted?.has(sessionId) !== false);
      const others = held.filter((sessionId) => this.#leases.leaseMsOf(sessionId) !== leaseMs);
      if (others.length > 0)
        this.#transact(() => {
          for (const sessionId of others) this.#leases.lengthen(sessionId, leaseMs);
        });
      for (const sessionId of held)
        this.#amendClaim(sessionId, (claim) => renewedClaim(claim, now + leaseMs));
      return { sessions: held.length };
    });
  }

  async heldClaims(query: Parameters<AgentStorage["heldClaims"]>[0]): Promise<readonly HeldClaim[]> {
    return this.#guard("reading claims", () => {
      this.#beginLeases(query.now);
      // Claimed sessions have cached heads (sqlite-heads-2).
      const held = [...this.#leases.held(query)].flatMap((sessionId) => {
        const head = unlessCorrupt(() => this.#heads.get(sessionId));
        const leaseMs = this.#leases.leaseMsOf(sessionId) ?? 0;
        return head === undefined ? [] : [{ session: head.session, claim: head.claim, leaseMs }];
      });
      return pageOfClaims(held, query);
    });
  }

  #amendClaim(sessionId: string, change: (claim: Claim) => Claim): void {
    const head = this.#heads.amend(sessionId, change);
    if (head !== undefined) this.#dueIndex.note(head);
  }

  /** ST38. To be called with the time of each call that has one. */
  #beginLeases(now: number): void {
    this.#leases.refresh();
    for (const [sessionId, until] of this.#leases.begin(now)) {
      this.#dueIndex.watch(sessionId);
      this.#amendClaim(sessionId, (claim) => ({ ...claim, until }));
    }
  }

  async load(sessionId: string): Promise<SessionSnapshot | undefined> {
    return this.#guard("loading", () => {
      const head = this.#heads.whole(sessionId);
      const row = head === undefined ? this.#reads.session(sessionId) : undefined;
      const found = head ?? row;
      if (found === undefined) return undefined;
      const { number, session } = found;
      const holds = listHolds(row === undefined ? head : { holds: this.#reads.holdsOf(row) });
      const records = this.#reads.journal(number, session.checkpointSeq ?? 0);
      const [first] = records;
      const base = first?.type === "checkpoint" ? first.base : undefined;
      const remaining = remainingFor(this.#writer, session, this.#leases.latestNow);
      return {
        session,
        records,
        signals: session.inbox === 0 ? [] : this.#reads.signals(number, 0),
        states: base === undefined ? [] : this.#reads.states(number, base, first!.seq),
        holds,
        ...(remaining === undefined ? {} : { remaining }),
      };
    });
  }

  async arrivals(sessionId: string, after: number): Promise<Arrivals> {
    return this.#guard("reading", () => {
      const head = this.#heads.get(sessionId);
      if (head === undefined) throw notFound(sessionId);
      const signals = head.pending.keptAfter(after) ?? this.#reads.signals(head.number, after);
      const remaining = remainingFor(this.#writer, head.session, this.#leases.latestNow);
      return {
        inbox: head.session.inbox,
        signals,
        session: newsOf(head.session),
        ...(remaining === undefined ? {} : { remaining }),
      };
    });
  }

  async conversation(sessionId: string, leaf: number): Promise<readonly Entry[]> {
    return this.#guard("reading", () => {
      const number = this.#heads.peek(sessionId)?.number ?? this.#reads.numberOf(sessionId);
      if (number === undefined) throw notFound(sessionId);
      return this.#reads.conversation(number, leaf);
    });
  }

  async due({ now, limit, agents }: Parameters<AgentStorage["due"]>[0]): Promise<Due> {
    return this.#guard("finding due sessions", () => {
      this.#beginLeases(now);
      const overdue = this.#dueIndex.overdue(now);
      const spent = this.#leases.spentBy(now);
      this.#actOverdue(overdue, now);
      if (spent.length > 0)
        this.#transact(() => {
          for (const sessionId of spent) this.#leases.drop(sessionId);
        });
      return this.#dueIndex.due(now, limit, agents);
    });
  }

  /** A damaged session, or a relative of one, does not keep other sessions from ending. */
  #actOverdue(sessionIds: readonly string[], now: number): void {
    if (sessionIds.length === 0) return;
    try {
      this.#transact(() => {
        for (const sessionId of sessionIds) applyOverdue(this.#writer, sessionId, now);
      });
    } catch (error) {
      if (!isCorrupt(error)) throw error;
      const half = sessionIds.length >> 1;
      if (half === 0) return;
      this.#actOverdue(sessionIds.slice(0, half), now);
      this.#actOverdue(sessionIds.slice(half), now);
    }
  }

  subscribe(listener: (arrival: Arrival) => void): () => void {
    // Wrapped, so that a function subscribed twice is called twice and unsubscribed once.
    const notify = (arrival: Arrival) => listener(arrival);
    this.#listeners.add(notify);
    return () => void this.#listeners.delete(notify);
  }

  /** Notify the listeners. */
  announce(arrival: Arrival): void {
    for (const listener of this.#listeners) listener(arrival);
  }

  follow(sessionId: string | undefined, onNotice: Parameters<Followers["follow"]>[1]): () => void {
    return this.#followers.follow(sessionId, onNotice);
  }

  /** Read everything and check it. Takes as long as reading the whole file takes. */
  async verify(): Promise<VerifyReport> {
    return this.#guard("checking", () => verifyDatabase(this.#driver, this.path));
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    try {
      await this.#options.beforeClose?.();
      this.#claimAll();
      this.#isClosed = true;
      this.#listeners.clear();
      this.#options.guard?.close();
      this.#driver.close();
    } finally {
      this.#options.afterClose?.();
    }
  }

  #applyAll(changes: readonly TimedChange[], hasNeighbours: boolean): ChangeResult[] {
    if (changes.length === 0) return [];
    try {
      return this.#transact(() =>
        changes.map(({ change, now, client }) => {
          this.#leases.client = client;
          return applyChange(this.#writer, change, now);
        }),
      );
    } catch (error) {
      if (isEnvironmental(error)) throw error; // The next call starts from the content of the file.
      if (changes.length > 1) {
        const half = changes.length >> 1;
        return [
          ...this.#applyAll(changes.slice(0, half), true),
          ...this.#applyAll(changes.slice(half), true),
        ];
      }
      // Only a change without neighbours may throw for a damaged row: neighbours need their answers.
      if (!hasNeighbours && HoldfastError.is(error)) throw error;
      return [{ status: "invalid", reason: describeRefusal(error) }];
    }
  }

  /**
   * Run `work` in a transaction and publish its changes. When anything throws, undo all of them.
   *
   * @param writes whether it may write to the file at all; without it there is nothing to begin.
   */
  #transact<T>(work: () => T, writes = true): T {
    let result: T;
    this.#options.guard?.refuseIfLost();
    this.#leases.refresh();
    try {
      if (writes) this.#begin.run();
      result = work();
      if (writes) {
        this.#writer.writeAccounts();
        this.#commit.run();
        // mutant: removed-file-unnoticed
        this.#options.guard?.checkCommit();
      }
    } catch (error) {
      this.#undo();
      throw error;
    }
    this.#leases.ended(true);
    this.#publish();
    return result;
  }

  #undo(): void {
    for (const [head, claim] of this.#writer.touched) this.#heads.forget(head.session.sessionId, claim);
    this.#writer.undo();
    this.#tokens.forget();
    this.#leases.ended(false);
    // mutant: failed-transaction-kept
    if (this.#driver.inTransaction) this.#driver.exec("ROLLBACK");
  }

  #publish(): void {
    const { touched, arrived } = this.#writer;
    for (const head of touched.keys()) {
      this.#dueIndex.note(head);
      // A removed session has no head any more, or another one if it was created again.
      const isCached = this.#heads.peek(head.session.sessionId) === head;
      if (isCached && isEnded(head.session.status)) this.#heads.evict(head);
    }
    this.#writer.touched = new Map();
    for (const arrival of arrived.splice(0)) this.announce(arrival);
    for (const { session } of touched.keys()) this.#followers.changed(session, isActive(session));
  }

  #guard<T>(doing: string, work: () => T): T {
    this.#claimAll(); // sqlite-storage-4.
    if (this.#isClosed) {
      throw new UnavailableError("storage_unavailable", `the storage was closed: ${this.path}`, {
        fix: "open it again",
      });
    }
    try {
      return work();
    } catch (error) {
      throw toStorageError(error, this.path, doing);
    }
  }
}

type AskedClaim = Parameters<AgentStorage["claim"]>[0];

/** A claim that was asked for and is not made yet. */
interface Claiming {
  readonly claim: AskedClaim;
  readonly client: number | undefined;
  readonly resolve: (result: ClaimResult) => void;
  readonly reject: (error: unknown) => void;
}

interface TimedChange {
  readonly change: Change;
  readonly now: number;
  readonly client: number | undefined;
}

function notFound(sessionId: string): NotFoundError {
  return new NotFoundError("session_not_found", `there is no session ${sessionId}`);
}
