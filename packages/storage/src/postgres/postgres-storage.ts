// PostgresStorage: sessions in a PostgreSQL database that any number of processes share.
//
//   postgres-storage-1. A group is computed in memory from cached heads (`working-set.ts`). One statement writes it
//       and checks the versions that it was computed from (`write-statement.ts`). If another process was faster,
//       nothing is written: the rows are read again, and the group is computed again. No lock is held meanwhile, so
//       a process that stops half-way delays nobody.
//   postgres-storage-2. A process runs one group at a time per session, schedule, document and audit, in the order of
//       the calls. Groups that name nothing in common run side by side.
//   postgres-storage-3. A change that the database refuses for an unforeseen reason is found by halving the group
//       (ST4). When the environment is at fault, the group may or may not have been applied. The call then rejects,
//       and sending it again is safe.
//   postgres-storage-4. Callers pass the time. Opened with `clock: "database"`, `now()` answers the database's time,
//       which all processes share. Callers then pass that time, and extend leases when the database's clock is set.
//
// Listeners receive arrivals of this process at once, those of other processes when `arrival-poll.ts` finds them.

import {
  HoldfastError,
  UnavailableError,
  type AgentStorage,
  type Arrival,
  type Arrivals,
  type Change,
  type ChangeResult,
  type ClaimResult,
  type Due,
  type Entry,
  type HeldClaim,
  type Session,
  type SessionSnapshot,
  type StorageReader,
} from "@holdfast/core";
import {
  applyChange,
  applyOverdue,
  eachName,
  Followers,
  isCorrupt,
  nextClaim,
  refuseClaim,
  remainingFor,
} from "@holdfast/core/internal";
import { crc32 } from "node:zlib";
import { ArrivalPoll } from "./news/arrival-poll.ts";
import { ArrivalReads } from "./read/arrival-reads.ts";
import { CommitNotices } from "./news/commit-notices.ts";
import type { Database } from "./database/database.ts";
import { listDue, overdue } from "./read/due.ts";
import { Heads, isBelow, type Head } from "./tables/heads.ts";
import { Instance } from "./tables/instance.ts";
import { beginLeases, readClaims, renewLeases, writeClaim } from "./tables/leases.ts";
import { Peers } from "./tables/peers.ts";
import { describeRefusal, isConflict, isEnvironmental, toStorageError } from "./database/pg-errors.ts";
import { PostgresReader, Reads } from "./read/reads.ts";
import { Turns } from "./database/turns.ts";
import { Facts, keyOf, Need, type Wanted } from "./write/group-facts.ts";
import { AUDIT, type Item } from "./tables/items.ts";
import { WorkingSet } from "./write/working-set.ts";
import { writeStatement } from "./write/write-statement.ts";

export interface PostgresStorageOptions {
  readonly db: Database;
  /** The database, as errors name it. */
  readonly at: string;
  readonly lanes: number;
  /** How many heads are cached. */
  readonly headsMax: number;
  /** How often the database is polled for arrivals of other processes. */
  readonly pollMs: number;
  /** The schema that notices name, and a warning for people when notices do not work; `undefined` without notices. */
  readonly notices: { readonly schema: string; readonly warn: (text: string) => void } | undefined;
  /** The database's time, if callers are to use it. */
  readonly now: (() => number) | undefined;
  /** Answers a number above all its earlier answers, and above all numbers in the database when it was opened. */
  readonly stamp: () => number;
}

/** How often a group is computed again because other processes were faster. Each time one of them made progress. */
const TRIES_MAX = 50;
/** More would only be more transactions with less in each. */
const GROUPS_MAX = 4;
const PAUSE_MAX_MS = 50;

export class PostgresStorage implements AgentStorage {
  readonly name = "postgres";
  readonly durable = true;
  readonly groupsMax = GROUPS_MAX;
  readonly reader: StorageReader;
  /** postgres-storage-4. */
  readonly now?: () => number;

  readonly #db: Database;
  readonly #options: PostgresStorageOptions;
  readonly #reads: Reads;
  readonly #arrivals: ArrivalReads;
  readonly #heads: Heads;
  readonly #instance: Instance;
  readonly #peers: Peers;
  readonly #poll: ArrivalPoll;
  readonly #notices: CommitNotices | undefined;
  readonly #listeners = new Set<(arrival: Arrival) => void>();
  readonly #followers = new Followers();
  readonly #turns = new Turns();
  /** The end of the audit as this process last wrote it. A write on top is refused if another process wrote since. */
  #auditEnd: Item | undefined;
  /** Calls under way. */
  readonly #calls = new Set<Promise<unknown>>();
  #hasBegun = false;
  #beginning: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: PostgresStorageOptions) {
    const { db, at, headsMax, pollMs } = options;
    this.#options = options;
    if (options.now !== undefined) this.now = options.now;
    this.#db = db;
    this.#heads = new Heads(headsMax);
    this.#instance = new Instance(db);
    this.#reads = new Reads(db, at, this.#instance.id);
    this.#arrivals = new ArrivalReads(db, this.#reads);
    const announceReleased = (sessionIds: readonly string[]): void =>
      this.#tell(sessionIds.map((sessionId) => ({ sessionId, awaited: true })));
    this.#peers = new Peers({ db, instance: this.#instance.id, released: announceReleased });
    this.#poll = new ArrivalPoll({
      db,
      reads: this.#reads,
      heads: this.#heads,
      peers: this.#peers,
      everyMs: pollMs,
      announce: (arrivals) => this.#tell(arrivals),
      followers: this.#followers,
    });
    this.#notices =
      options.notices === undefined
        ? undefined
        : new CommitNotices({ db, ...options.notices, heard: () => this.#poll.hurry() });
    this.reader = new PostgresReader(this.#reads, (read) => this.#guard("reading", read));
  }

  /** Statements run since it was opened; for benchmarks. */
  get statementCount(): number {
    return this.#db.statementCount;
  }

  commit(changes: readonly Change[], now: number): Promise<readonly ChangeResult[]> {
    const names = new Set<string>();
    for (const change of changes) eachName(change, (name) => names.add(name));
    return this.#guard("committing", () =>
      this.#turns.take(names, async () =>
        this.#applyAll(changes, await this.#beginAt(now), changes.length > 1),
      ),
    );
  }

  claim(claim: Parameters<AgentStorage["claim"]>[0]): Promise<ClaimResult> {
    return this.#guard("claiming", async () => {
      const now = await this.#beginAt(claim.now);
      return this.#turns.take([claim.sessionId], () => this.#claim({ ...claim, now }));
    });
  }

  renew(renewal: Parameters<AgentStorage["renew"]>[0]): Promise<{ readonly sessions: number }> {
    return this.#guard("renewing", async () => {
      const now = await this.#beginAt(renewal.now);
      await this.#instance.begin();
      return { sessions: await renewLeases(this.#db, { ...renewal, now }) };
    });
  }

  heldClaims(query: Parameters<AgentStorage["heldClaims"]>[0]): Promise<readonly HeldClaim[]> {
    return this.#guard("reading claims", async () =>
      readClaims(this.#db, { ...query, now: await this.#beginAt(query.now) }),
    );
  }

  load(sessionId: string): Promise<SessionSnapshot | undefined> {
    return this.#guard("loading", async () => {
      const loaded = await this.#reads.load(sessionId);
      if (loaded === undefined) return undefined;
      return { ...loaded, ...(await this.#remaining(loaded.session)) };
    });
  }

  arrivals(sessionId: string, after: number): Promise<Arrivals> {
    return this.#guard("reading", async () => {
      const arrivals = await this.#arrivals.read(sessionId, after);
      const known = this.#heads.get(sessionId) ?? (await this.#reads.heads([sessionId])).get(sessionId);
      return { ...arrivals, ...(await this.#remaining(asHead(known)?.session)) };
    });
  }

  /** Not before the rest was read: what had been spent then is taken off. */
  async #remaining(session: Session | undefined): Promise<Pick<SessionSnapshot, "remaining">> {
    if (session === undefined || session.payers.length === 0) return {};
    const heads = await this.#reads.heads(session.payers);
    const remaining = remainingFor({ find: (id) => asHead(heads.get(id)) }, session);
    return remaining === undefined ? {} : { remaining };
  }

  conversation(sessionId: string, leaf: number): Promise<readonly Entry[]> {
    return this.#guard("reading", () => this.#reads.conversation(sessionId, leaf));
  }

  due(query: Parameters<AgentStorage["due"]>[0]): Promise<Due> {
    return this.#guard("looking for what is due", async () => {
      const now = await this.#beginAt(query.now);
      const damaged = new Set<string>();
      for (;;) {
        const late = (await overdue(this.#db, now)).filter((sessionId) => !damaged.has(sessionId));
        if (late.length === 0) break;
        await this.#actOverdue(late, now, damaged);
      }
      return listDue(this.#db, this.#options.at, this.#peers, { ...query, now });
    });
  }

  /** A damaged session, or a relative of one, does not keep other sessions from ending. */
  async #actOverdue(sessionIds: readonly string[], now: number, damaged: Set<string>): Promise<void> {
    try {
      await this.#transact(sessionIds, (set) => {
        for (const sessionId of sessionIds) applyOverdue(set, sessionId, now);
      });
    } catch (error) {
      if (!isCorrupt(error)) throw error;
      const half = sessionIds.length >> 1;
      if (half === 0) return void damaged.add(sessionIds[0]!);
      await this.#actOverdue(sessionIds.slice(0, half), now, damaged);
      await this.#actOverdue(sessionIds.slice(half), now, damaged);
    }
  }

  subscribe(listener: (arrival: Arrival) => void): () => void {
    // Wrapped, so that a function subscribed twice is called twice and unsubscribed once.
    const told = (arrival: Arrival) => listener(arrival);
    this.#listeners.add(told);
    this.#listen();
    return () => {
      this.#listeners.delete(told);
      this.#listenIfHeard();
    };
  }

  follow(sessionId: string, onNotice: (goesOn: boolean) => void): () => void {
    const leave = this.#followers.follow(sessionId, onNotice);
    this.#listen();
    return () => {
      leave();
      this.#listenIfHeard();
    };
  }

  #listen(): void {
    this.#poll.start();
    this.#notices?.listen();
  }

  #listenIfHeard(): void {
    if (this.#listeners.size > 0 || this.#followers.size > 0) return;
    this.#poll.stop();
    void this.#notices?.stop();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#poll.stop();
    this.#peers.close();
    this.#listeners.clear();
    await Promise.allSettled([...this.#calls, this.#notices?.close()]);
    try {
      await this.#instance.end();
    } catch {
      // The database is away. Other instances release our claims when our sign of life is too old.
    } finally {
      await this.#db.close();
    }
  }

  /** At the first call's time, leases start over that outlived every process that could renew them. */
  async #beginAt(now: number): Promise<number> {
    if (this.#hasBegun) return now;
    // Peers are checked first, because a peer that is known to be gone cannot renew its leases.
    this.#beginning ??= this.#peers.look().then(() => beginLeases(this.#db, now, this.#instance.id));
    try {
      await this.#beginning;
      this.#hasBegun = true;
    } finally {
      this.#beginning = undefined;
    }
    return now;
  }

  // ---- groups ----------------------------------------------------------------------------------------------------

  /** postgres-storage-3. */
  async #applyAll(changes: readonly Change[], now: number, hasNeighbours: boolean): Promise<ChangeResult[]> {
    if (changes.length === 0) return [];
    try {
      return await this.#transact(knownTo(changes), (set) =>
        changes.map((change) => applyChange(set, change, now)),
      );
    } catch (error) {
      if (isEnvironmental(error)) throw error;
      if (changes.length > 1) {
        const half = changes.length >> 1;
        return [
          ...(await this.#applyAll(changes.slice(0, half), now, true)),
          ...(await this.#applyAll(changes.slice(half), now, true)),
        ];
      }
      // Only a change without neighbours may throw for a damaged row: neighbours need their answers.
      if (!hasNeighbours && HoldfastError.is(error)) throw error;
      return [{ status: "invalid", reason: describeRefusal(error) }];
    }
  }

  /** Compute a group, write it and announce it; repeat while others are faster (postgres-storage-1). */
  async #transact<T>(names: Iterable<string>, work: (set: WorkingSet) => T): Promise<T> {
    const facts = new Facts();
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      if (tries > 0) {
        facts.reset();
        await pause(Math.random() * Math.min(2 ** tries, PAUSE_MAX_MS));
      }
      const { set, result, written } = await this.#workOut(names, facts, work);
      if (await written) {
        this.#auditEnd = set.writes.items.get(keyOf(AUDIT.kind, AUDIT.key))?.item ?? this.#auditEnd;
        this.#poll.note(set);
        this.#tell(set.arrived);
        if (this.#concernsOthers(set)) this.#notices?.tell();
        return result;
      }
    }
    throw new UnavailableError(
      "storage_unavailable",
      `others changed the same sessions ${TRIES_MAX} times over: ${this.#options.at}`,
      { fix: "try again; spread what is written to one session over time" },
    );
  }

  /** Whether another process has to act: as the holder of a session, or because nobody has claimed a session. */
  #concernsOthers({ arrived, writes }: WorkingSet): boolean {
    if (writes.released.size > 0 || arrived.some(({ sessionId }) => !this.#poll.isWatching(sessionId)))
      return true;
    for (const { head } of writes.created.values()) if (head.claim.owner === undefined) return true;
    return false;
  }

  async #workOut<T>(
    names: Iterable<string>,
    facts: Facts,
    work: (set: WorkingSet) => T,
  ): Promise<{ readonly set: WorkingSet; readonly result: T; readonly written: Promise<boolean> }> {
    await this.#fetch(names, facts);
    const { lanes, stamp } = this.#options;
    const laneOf = (sessionId: string) => crc32(sessionId) % lanes;
    for (;;) {
      const set = new WorkingSet({ heads: this.#heads, facts, lanes, stamp, laneOf });
      try {
        const result = work(set);
        // At once: from here on the heads are in use (postgres-heads-3).
        return { set, result, written: this.#write(set, facts) };
      } catch (error) {
        set.undo();
        if (!(error instanceof Need)) throw error;
        await this.#find(error.wanted, facts);
      }
    }
  }

  /** Answers `false` when nothing was written, because a version that was read is out of date. */
  async #write(set: WorkingSet, facts: Facts): Promise<boolean> {
    // Nobody knows of a new session before it is written.
    const heads = [...set.consulted.values(), ...[...set.writes.created.values()].map(({ head }) => head)];
    if (heads.length === 0 && !set.isWriting) return true;
    const flight = this.#send(set, facts);
    for (const head of heads) head.flight = flight;
    for (const { head } of set.writes.created.values()) this.#heads.put(head);
    let isWritten = false;
    try {
      isWritten = await flight;
    } catch (error) {
      if (!isConflict(error)) throw error;
    } finally {
      // Later groups may have been computed from these heads already.
      if (!isWritten) set.undo();
      for (const head of heads) {
        head.flight = undefined;
        const isOther = set.writes.removed.has(head) || set.writes.imported.has(head);
        if (!isWritten || isOther) this.#heads.forget(head);
        else if (set.writes.changed.has(head)) head.version++;
      }
    }
    return isWritten;
  }

  async #send(set: WorkingSet, facts: Facts): Promise<boolean> {
    if ([...set.writes.created.values()].some(({ head }) => head.claim.owner !== undefined))
      await this.#instance.begin();
    const items = [...facts.items].map(([id, item]) => {
      const [kind, key] = id.split("\u0000") as [string, string];
      return { kind, key, item };
    });
    const { statement, values } = writeStatement(set, {
      items,
      instance: this.#instance.id,
      isRetry: facts.isCareful,
    });
    const [row] = await this.#db.run(statement, values);
    return row?.["ok"] === true;
  }

  // ---- finding out -----------------------------------------------------------------------------------------------

  /** Read the named heads that are not cached, and the heads of their parents and payers. */
  async #fetch(names: Iterable<string>, facts: Facts): Promise<void> {
    let wanted = new Set(names);
    while (wanted.size > 0) {
      const missing = [...wanted].filter(
        (id) =>
          this.#heads.get(id) === undefined &&
          ![facts.heads, facts.absent, facts.damaged].some((found) => found.has(id)),
      );
      const near = new Set<string>();
      if (missing.length > 0) {
        const found = await this.#reads.heads(missing);
        for (const id of missing) {
          const head = asHead(this.#keep(id, found.get(id), facts));
          if (head === undefined) continue;
          for (const payer of head.session.payers) near.add(payer);
          if (head.session.parent !== undefined) near.add(head.session.parent.sessionId);
        }
      }
      for (const id of wanted) near.delete(id);
      wanted = near;
    }
  }

  #keep(sessionId: string, found: Head | Error | undefined, facts: Facts): Head | Error | undefined {
    if (found === undefined) facts.absent.add(sessionId);
    else if (found instanceof Error) facts.damaged.set(sessionId, found);
    else {
      facts.heads.set(sessionId, found);
      this.#heads.put(found);
    }
    return found;
  }

  async #find(wanted: Wanted, facts: Facts): Promise<void> {
    switch (wanted.type) {
      case "head":
        return this.#fetch([wanted.sessionId], facts);
      case "landing":
        return void (await Promise.allSettled([wanted.flight]));
      case "children": {
        const { head } = wanted;
        const tree = await this.#reads.tree(head.sessionId);
        for (const [id, found] of tree) {
          // The cached head may be of the same version, and lack its children.
          const known = this.#heads.get(id);
          const fresh = asHead(found);
          if (known !== undefined && fresh !== undefined && known.flight === undefined) {
            if (known.version === fresh.version) known.childIds = fresh.childIds;
          }
          this.#keep(id, found, facts);
        }
        return;
      }
      case "waiting": {
        const tree = await this.#reads.tree(wanted.sessionId);
        for (const [id, found] of tree) this.#keep(id, found, facts);
        const below = [...tree].filter(([, found]) => isBelow(asHead(found), wanted.sessionId));
        return void facts.waiting.set(
          wanted.sessionId,
          below.map(([id]) => id),
        );
      }
      case "exhausted":
        return void facts.exhausted.set(wanted.payer, await this.#reads.exhaustedBy(wanted.payer));
      case "journal": {
        const { head, from, to } = wanted;
        const records = await this.#reads.journal(head.sessionId, from, to - from);
        return void facts.journals.set(keyOf(head.sessionId, from, to), records);
      }
      case "seen": {
        const { head, mark } = wanted;
        return void facts.seen.set(keyOf(head.sessionId, mark), await this.#reads.hasSeen(head, mark));
      }
      case "item": {
        const { kind, key } = wanted;
        const known = kind === AUDIT.kind && !facts.isCareful ? this.#auditEnd : undefined;
        return void facts.items.set(keyOf(kind, key), known ?? (await this.#reads.item(kind, key)));
      }
    }
  }

  // ---- claims ----------------------------------------------------------------------------------------------------

  async #claim(asked: Parameters<AgentStorage["claim"]>[0]): Promise<ClaimResult> {
    const { sessionId, owner, now, leaseMs, unlessHeld } = asked;
    let hasLooked = false;
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      await this.#landed(sessionId);
      // Other processes renew claims without a new version, so a claim is always read.
      const found = (await this.#reads.heads([sessionId])).get(sessionId);
      if (found === undefined) return { status: "not_found" };
      if (found instanceof Error) throw found;
      const refusal = refuseClaim(found.session, found.claim, { owner, now, unlessHeld });
      if (refusal !== undefined && (refusal.status !== "busy" || hasLooked)) return refusal;
      if (refusal !== undefined) {
        // Perhaps its holder is gone.
        await this.#peers.look();
        hasLooked = true;
        continue;
      }
      const token = Math.max(found.claim.token + 1, this.#options.stamp());
      const claim = { ...nextClaim(found.claim, asked, token), owner };
      // From here on it is alive: without it nobody would know when to renew.
      await this.#instance.begin();
      const write = { head: found, untilBefore: found.until, claim, leaseMs, instance: this.#instance.id };
      if (!(await writeClaim(this.#db, write))) continue;
      found.version++;
      found.claim = claim;
      this.#heads.put(found);
      this.#poll.watch(found);
      return { status: "claimed", token, losses: claim.losses };
    }
    throw new UnavailableError("storage_unavailable", `session ${sessionId} changes too fast to be claimed`, {
      at: this.#options.at,
      fix: "try again",
    });
  }

  /** Nothing of ours is under way with this session (postgres-storage-2). */
  async #landed(sessionId: string): Promise<void> {
    for (;;) {
      const flight = this.#heads.get(sessionId)?.flight;
      if (flight === undefined) return;
      await Promise.allSettled([flight]);
    }
  }

  // ---- around every call -----------------------------------------------------------------------------------------

  #tell(arrivals: readonly Arrival[]): void {
    for (const arrival of arrivals) for (const listener of this.#listeners) listener(arrival);
  }

  async #guard<T>(doing: string, work: () => Promise<T>): Promise<T> {
    const { at } = this.#options;
    if (this.#closing !== undefined) {
      throw new UnavailableError("storage_unavailable", `the storage was closed: ${at}`, {
        fix: "open it again",
      });
    }
    const call = work();
    this.#calls.add(call);
    try {
      return await call;
    } catch (error) {
      throw toStorageError(error, at, doing);
    } finally {
      this.#calls.delete(call);
    }
  }
}

/** Sessions that must exist for these changes, and so are read beforehand. All others are assumed to be new. */
function knownTo(changes: readonly Change[]): Set<string> {
  const known = new Set<string>();
  for (const change of changes)
    eachName(change, (name, kind) => {
      if (kind === "known") known.add(name);
    });
  return known;
}

function asHead(found: Head | Error | undefined): Head | undefined {
  return found instanceof Error ? undefined : found;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
