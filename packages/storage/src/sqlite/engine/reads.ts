// Reads: every query that only reads, for the owner and for readers beside it.
//
//   - A method runs one statement. A method that runs several reads only rows that never change after the
//     first. No method therefore needs a transaction, and none holds one open.
//   - The methods are synchronous. `SqliteReader` wraps them in the promises of the port.
//   sqlite-reads-3. An index finds a page of sessions. A page by one filter (owner, agent, status, parent) or
//       by none reads as many rows as it answers. Several filters walk the index of one of them.

import {
  type AuditRow,
  type ChildRow,
  decodeRecords,
  type Entry,
  type JournalRecord,
  type JsonText,
  NotFoundError,
  readDedupMark,
  type Schedule,
  type SeenSignals,
  type Session,
  SESSION_STATUSES,
  type SessionCounts,
  type SessionStatus,
  type StorageReader,
  type StoredDocument,
  type StoredSignal,
} from "@holdfast/core";
import { Accounts } from "../tables/accounts.ts";
import type { Blobs } from "../tables/blobs.ts";
import type { SqlDriver, SqlRow, SqlStatement } from "../file/driver.ts";
import { Ledger } from "../tables/ledger.ts";
import { readEntry, SELECT_ENTRY } from "../tables/entry-rows.ts";
import { corruptRow, type RowPlace, type RowSource } from "../tables/row-checks.ts";
import {
  assertJournal,
  JOURNAL_COLUMNS,
  readJournal,
  readSession,
  readSignal,
  SELECT_SESSION,
  SELECT_SIGNAL,
  type SessionRow,
} from "../tables/rows.ts";
import { Schedules } from "../tables/schedules.ts";
import { SessionReservations } from "../tables/session-reservations.ts";

/** Rows fetched at a time where it is not known how many will be needed. */
const PAGE_ROWS = 256;

export class Reads {
  readonly accounts: Accounts;
  readonly schedules: Schedules;
  readonly ledger: Ledger;
  readonly #driver: SqlDriver;
  readonly #path: string;
  /** For rows that refer to no others. */
  readonly #rows: RowPlace;
  readonly #session: SqlStatement;
  readonly #number: SqlStatement;
  readonly #journal: SqlStatement;
  readonly #journalPage: SqlStatement;
  readonly #entries: SqlStatement;
  readonly #branch: SqlStatement;
  readonly #signals: SqlStatement;
  readonly #seen: SqlStatement;
  readonly #pending: SqlStatement;
  readonly #checkpoints: SqlStatement;
  readonly #children: SqlStatement;
  readonly #exhausted: SqlStatement;

  constructor(driver: SqlDriver, path: string, blobs: Blobs) {
    this.#rows = { path, blobs };
    this.accounts = new Accounts(driver, path);
    this.schedules = new Schedules(driver, path);
    this.ledger = new Ledger(driver, path, this.schedules);
    this.#driver = driver;
    this.#path = path;
    this.#session = driver.prepare(`${SELECT_SESSION} WHERE s.session_id = ?`);
    this.#number = driver.prepare("SELECT session FROM session WHERE session_id = ?");
    // From the row that holds the position, which is seldom the first of its row.
    const fromSeq =
      "session = ?1 AND seq >= coalesce((SELECT max(seq) FROM journal WHERE session = ?1 AND seq <= ?2), 0)";
    this.#journal = driver.prepare(`SELECT ${JOURNAL_COLUMNS} FROM journal WHERE ${fromSeq} ORDER BY seq`);
    this.#journalPage = driver.prepare(
      `SELECT ${JOURNAL_COLUMNS} FROM journal WHERE ${fromSeq} ORDER BY seq LIMIT ?3`,
    );
    this.#entries = driver.prepare(`${SELECT_ENTRY} WHERE session = ? ORDER BY seq LIMIT ? OFFSET ?`);
    this.#branch = driver.prepare(
      `${SELECT_ENTRY} WHERE session = ? AND seq <= ? ORDER BY seq DESC LIMIT ${PAGE_ROWS}`,
    );
    this.#signals = driver.prepare(`${SELECT_SIGNAL} WHERE session = ? AND ord > ? ORDER BY ord`);
    this.#seen = driver.prepare("SELECT key FROM seen WHERE session = ?");
    this.#pending = driver.prepare("SELECT signal_id, ord, name FROM signal WHERE session = ? ORDER BY ord");
    this.#checkpoints = driver.prepare(
      `SELECT ${JOURNAL_COLUMNS} FROM journal WHERE ${fromSeq} AND seq <= ?3 AND checkpoint = 1 ORDER BY seq`,
    );
    this.#children = driver.prepare(
      `SELECT s.session_id, t.status, ${ofJson("s.origin", "$.parent.onEnd")} AS on_end, ${ofJson("s.origin", "$.placement.owner")} AS owner
         FROM session s JOIN state t ON t.session = s.session WHERE s.parent = ? ORDER BY s.session`,
    );
    this.#exhausted = driver.prepare(
      `SELECT s.session_id FROM state t JOIN session s ON s.session = t.session
        WHERE t.pause_reason = 'budget_exceeded' AND ${ofJson("t.rest", "$.exhausted.payer")} = ? ORDER BY t.session`,
    );
  }

  /**
   * The source for one read, of any number of rows: entries that refer to one row's records decode that row
   * once.
   */
  source(): RowSource {
    let at: readonly [number: number, records: readonly JournalRecord[]] | undefined;
    const recordIn = (number: number, seq: number): JournalRecord | undefined => {
      const first = at?.[0] === number ? at[1][0]?.seq : undefined;
      const record = first === undefined ? undefined : at?.[1][seq - first];
      return record?.seq === seq ? record : undefined;
    };
    const payloadAt = (number: number, seq: number): JsonText | undefined => {
      if (recordIn(number, seq) === undefined) {
        const [row] = this.#journalPage.all(number, seq, 1);
        at = [number, row === undefined ? [] : readJournal(row, this.#rows)];
      }
      return recordIn(number, seq)?.payload;
    };
    return { ...this.#rows, payloadAt };
  }

  session(sessionId: string): SessionRow | undefined {
    const row = this.#session.get(sessionId);
    return row === undefined ? undefined : readSession(row, this.#rows);
  }

  /** A page behind session number `last`. A single filter reads the page's rows alone (sqlite-reads-3). */
  sessions(last: number | undefined, query: SessionQuery): Session[] {
    const filters = FILTERS.filter(({ name }) => query[name] !== undefined);
    const tables = new Set(filters.map(({ table }) => table));
    const from = tables.size === 2 ? "session JOIN state USING (session)" : ([...tables][0] ?? "session");
    const [beyond, order, start] =
      query.oldestFirst === true ? ["> ?", "ASC", -1] : ["< ?", "DESC", Number.MAX_SAFE_INTEGER];
    const where = [`session ${beyond}`, ...filters.map(({ sql }) => sql)].join(" AND ");
    const values = filters.map(({ name }) => query[name]!);
    const page = `SELECT session FROM ${from} WHERE ${where} ORDER BY session ${order} LIMIT ?`;
    // Each combination is prepared when it is first asked for.
    return this.#driver
      .prepare(`${SELECT_SESSION} WHERE s.session IN (${page}) ORDER BY s.session ${order}`)
      .all(last ?? start, ...values, query.limit)
      .map((row) => readSession(row, this.#rows).session);
  }

  /** The sessions of each status, as the port says. */
  counts({ limit, ...query }: CountsQuery): SessionCounts {
    const filters = FILTERS.filter(({ name }) => name !== "status" && query[name] !== undefined);
    const where = filters.map(({ sql }) => sql).join(" AND ");
    const values = filters.map(({ name }) => query[name as keyof typeof query]!);
    const rows =
      filters.length === 0
        ? this.#driver.prepare(COUNTS).all(limit)
        : this.#driver
            .prepare(
              `SELECT status, count(*) AS sessions FROM state WHERE session IN
                (SELECT session FROM session WHERE ${where} ORDER BY session DESC LIMIT ?) GROUP BY status`,
            )
            .all(...values, limit);
    const counts = rows.map(({ status, sessions }) => [status as string, sessions as number] as const);
    return Object.fromEntries(counts.filter(([, sessions]) => sessions > 0));
  }

  /** The holds for the tasks of a session that was read. */
  holdsOf({ number, session, accountHolds }: SessionRow): SessionReservations | undefined {
    if (session.payers.length === 0) return undefined;
    return new SessionReservations(accountHolds, this.accounts.holds(number));
  }

  numberOf(sessionId: string): number | undefined {
    return this.#number.get(sessionId)?.["session"] as number | undefined;
  }

  children(sessionId: string): ChildRow[] {
    return this.#children.all(sessionId).map((row) => ({
      sessionId: row["session_id"] as string,
      status: row["status"] as SessionStatus,
      onEnd: (row["on_end"] as ChildRow["onEnd"] | null) ?? "leave",
      owner: (row["owner"] as string | null) ?? undefined,
    }));
  }

  /** Sessions that are paused because this one's account is exhausted. */
  exhaustedBy(payer: string): string[] {
    return this.#exhausted.all(payer).map((row) => row["session_id"] as string);
  }

  /** ST33. Payloads of the checkpoints from `base` on, up to the one before `checkpoint`. */
  states(number: number, base: number, checkpoint: number): JsonText[] {
    const found = this.#checkpoints
      .all(number, base, checkpoint)
      .flatMap((row) => this.#readCheckpoints(row))
      .filter(({ seq }) => seq >= base && seq < checkpoint);
    if (found[0]?.seq !== base)
      throw corruptRow(
        this.#path,
        "journal",
        `${number}/${base}`,
        "a checkpoint that others build on is missing",
      );
    return found.map(({ payload }) => payload ?? "null");
  }

  /** Only these lines are decoded: there may be thousands of rows, and most of each is something else. */
  #readCheckpoints(row: SqlRow): JournalRecord[] {
    const { body, where } = assertJournal(row, this.#path);
    const lines = body.split("\n").filter((line) => line.includes('"type":"checkpoint"'));
    const records = decodeRecords(lines.join("\n"), this.#rows.blobs, where);
    return records.filter(({ type }) => type === "checkpoint");
  }

  /** Records from `fromSeq` on; with a limit, at most so many. */
  journal(number: number, fromSeq: number, limit?: number): JournalRecord[] {
    // A row holds at least one record, so `limit + 1` rows hold enough: the first may begin before `fromSeq`.
    const rows =
      limit === undefined
        ? this.#journal.all(number, fromSeq)
        : this.#journalPage.all(number, fromSeq, limit + 1);
    const records: JournalRecord[] = [];
    let next: number | undefined;
    for (const row of rows) {
      const seq = row["seq"] as number;
      if (seq !== (next ?? seq))
        throw corruptRow(this.#path, "journal", `${number}/${next}`, "the row is missing");
      for (const record of readJournal(row, this.#rows)) if (record.seq >= fromSeq) records.push(record);
      next = seq + (row["count"] as number);
    }
    return limit === undefined || records.length <= limit ? records : records.slice(0, limit);
  }

  entries(number: number, from: number, limit: number): Entry[] {
    const source = this.source();
    return this.#entries.all(number, limit, from).map((row) => readEntry(row, source));
  }

  /**
   * From the root to `leaf`. Most conversations are a line, so one range read finds all of it; branches are
   * passed over.
   */
  conversation(number: number, leaf: number): Entry[] {
    const branch: Entry[] = [];
    const source = this.source();
    let wanted: number | undefined = leaf;
    while (wanted !== undefined) {
      const page = this.#branch.all(number, wanted);
      if (page[0]?.["seq"] !== wanted) {
        throw corruptRow(
          this.#path,
          "entry",
          `${number}/${wanted}`,
          "an entry that a conversation refers to is missing",
        );
      }
      for (const row of page) {
        if (row["seq"] !== wanted) continue;
        const entry = readEntry(row, source);
        branch.push(entry);
        wanted = entry.parent;
      }
    }
    return branch.reverse();
  }

  /** The pending signals, without the payloads and unchecked: `signals` checks those that it hands out. */
  pending(number: number, add: (signalId: string, order: number, name: string) => void): void {
    for (const row of this.#pending.all(number))
      add(row["signal_id"] as string, row["ord"] as number, row["name"] as string);
  }

  /**
   * A walk over what all sessions have seen: sessions that move are rare, and an index would cost every
   * signal.
   */
  seenSignals(number: number): SeenSignals {
    const keys = this.#seen.all(number).map((row) => row["key"] as string);
    return {
      ids: keys.filter((key) => key.startsWith("i:")).map((key) => key.slice(2)),
      dedupKeys: keys.filter((key) => key.startsWith("d:")).map((key) => readDedupMark(key.slice(2))),
    };
  }

  signals(number: number, after: number): StoredSignal[] {
    return this.#signals.all(number, after).map((row) => readSignal(row, this.#rows));
  }
}

/**
 * A value in a JSON column, as the indexes have it. A damaged row has NULL, and does not fail the whole
 * statement.
 */
function ofJson(column: string, path: string): string {
  return `CASE WHEN json_valid(${column}) THEN ${column} ->> '${path}' END`;
}

type SessionQuery = Parameters<StorageReader["sessions"]>[0];
type CountsQuery = Parameters<StorageReader["counts"]>[0];

const FILTERS = [
  { name: "owner", table: "session", sql: `${ofJson("origin", "$.placement.owner")} = ?` },
  { name: "agent", table: "session", sql: `${ofJson("agent", "$.name")} = ?` },
  { name: "status", table: "state", sql: "status = ?" },
  { name: "parent", table: "session", sql: "parent = ?" },
] as const satisfies readonly { name: keyof SessionQuery; table: "session" | "state"; sql: string }[];

/** At most a limit of each status, by the index of statuses. */
const COUNTS = `WITH asked (status) AS (VALUES ${SESSION_STATUSES.map((status) => `('${status}')`).join(", ")})
  SELECT status, (SELECT count(*) FROM (SELECT 1 FROM state WHERE state.status = asked.status LIMIT ?1)) AS sessions
    FROM asked`;

/** The port's reader over `Reads`. */
export class SqliteReader implements StorageReader {
  readonly #reads: Reads;
  readonly #guard: <T>(read: () => T) => T;
  readonly #cached: (sessionId: string) => Session | undefined;

  /**
   * @param guard turns what SQLite throws into errors of ours.
   * @param cached the session, where the file need not be asked.
   */
  constructor(
    reads: Reads,
    guard: <T>(read: () => T) => T,
    cached: (sessionId: string) => Session | undefined = () => undefined,
  ) {
    this.#reads = reads;
    this.#guard = guard;
    this.#cached = cached;
  }

  async sessions(query: SessionQuery): Promise<readonly Session[]> {
    const { limit, before } = query;
    return this.#guard(() => {
      const last = before === undefined ? undefined : this.#reads.numberOf(before);
      if (before !== undefined && last === undefined)
        throw new NotFoundError("session_not_found", `there is no session ${before}`);
      return limit <= 0 ? [] : this.#reads.sessions(last, query);
    });
  }

  async counts(query: CountsQuery): Promise<SessionCounts> {
    return this.#guard(() => this.#reads.counts({ ...query, limit: Math.max(query.limit, 0) }));
  }

  async session(sessionId: string): Promise<Session | undefined> {
    return this.#guard(() => this.#cached(sessionId) ?? this.#reads.session(sessionId)?.session);
  }

  async journal(sessionId: string, fromSeq: number, limit: number): Promise<readonly JournalRecord[]> {
    return this.#guard(() => {
      const number = this.#reads.numberOf(sessionId);
      return number === undefined || limit <= 0 ? [] : this.#reads.journal(number, fromSeq, limit);
    });
  }

  async entries(sessionId: string, from: number, limit: number): Promise<readonly Entry[]> {
    return this.#guard(() => {
      const number = this.#reads.numberOf(sessionId);
      return number === undefined || limit <= 0 ? [] : this.#reads.entries(number, from, limit);
    });
  }

  async pendingSignals(sessionId: string): Promise<readonly StoredSignal[]> {
    return this.#guard(() => {
      const number = this.#reads.numberOf(sessionId);
      return number === undefined ? [] : this.#reads.signals(number, 0);
    });
  }

  async seenSignals(sessionId: string): Promise<SeenSignals> {
    return this.#guard(() => {
      const number = this.#reads.numberOf(sessionId);
      return number === undefined ? { ids: [], dedupKeys: [] } : this.#reads.seenSignals(number);
    });
  }

  async schedules(): Promise<readonly Schedule[]> {
    return this.#guard(() => this.#reads.schedules.all());
  }

  async document(collection: string, id: string): Promise<StoredDocument | undefined> {
    return this.#guard(() => this.#reads.ledger.document(collection, id));
  }

  async documents(query: Parameters<StorageReader["documents"]>[0]): Promise<readonly StoredDocument[]> {
    return this.#guard(() => this.#reads.ledger.documents(query));
  }

  async audit(query: Parameters<StorageReader["audit"]>[0]): Promise<readonly AuditRow[]> {
    return this.#guard(() => this.#reads.ledger.audit(query));
  }
}
