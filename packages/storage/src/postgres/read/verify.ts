// verifyDatabase: a full check on demand, of every row's checksum, for missing rows and for rows left over.
//
// It only reads, so it also runs beside processes that write; rows that are committed meanwhile are checked
// or not.
//
//   - Memory is bounded: rows come in pages, each a statement of its own, so that nothing is held up.
//   - Rows that are compared with each other are read by one statement, so that they are of one moment.

import { AuditWalk } from "@holdfast/core";
import { Findings, type VerifyReport } from "../../verify-report.ts";
import type { Database, Row, Statement } from "../database/database.ts";
import { toStorageError } from "../database/pg-errors.ts";
import { TEXTS } from "./reads.ts";
import {
  ENTRY_COLUMNS,
  FROM_SESSION,
  JOURNAL_COLUMNS,
  readEntry,
  readHold,
  readJournal,
  readSession,
  readSignal,
  SESSION_COLUMNS,
  sha256,
  SIGNAL_COLUMNS,
  Texts,
} from "../tables/rows.ts";
import { readAudit, readItem } from "../tables/items.ts";

const PAGE_ROWS = 500;
/** Each may be large. */
const PAGE_BLOBS = 16;

/** Where a session's journal ends, beside its row. */
const SESSIONS: Statement = {
  text: `SELECT ${SESSION_COLUMNS}, coalesce((SELECT j.seq + j.count FROM journal j
      WHERE j.lane = s.lane AND j.session_id = s.session_id ORDER BY j.seq DESC LIMIT 1), 0) AS journal_end
    ${FROM_SESSION} WHERE s.session_id > $1 ORDER BY s.session_id LIMIT ${PAGE_ROWS}`,
};

/** Rows of sessions, in the order of their key. */
const ofSessions = (table: string, key: string, columns: string, limit = PAGE_ROWS): Statement => ({
  text: `SELECT lane, ${columns} FROM ${table} WHERE (lane, session_id, ${key}) > ($1, $2, $3)
    ORDER BY lane, session_id, ${key} LIMIT ${limit}`,
});

const ITEMS: Statement = {
  text: `SELECT kind, key, version, next_at, body, checksum FROM item WHERE (kind, key) > ($1, $2)
    ORDER BY kind, key LIMIT ${PAGE_ROWS}`,
};

const AUDITED: Statement = {
  text: `SELECT seq, body, checksum FROM audit WHERE seq > $1 ORDER BY seq LIMIT ${PAGE_ROWS}`,
};

/** Rows that belong to no session, or lie in another lane than it: nobody finds them. */
const leftOver = (table: string): Statement => ({
  text: `SELECT count(*) AS rows FROM ${table} x WHERE NOT EXISTS
    (SELECT 1 FROM session s WHERE s.session_id = x.session_id AND s.lane = x.lane)`,
  isLong: true,
});
const WITHOUT_STATE: Statement = {
  text: `SELECT count(*) AS rows FROM session s WHERE NOT EXISTS
    (SELECT 1 FROM state t WHERE t.session_id = s.session_id AND t.lane = s.lane)`,
  isLong: true,
};
const TABLES_OF_SESSIONS = ["state", "journal", "entry", "signal", "seen", "hold", "blob"] as const;

/** @param at the database, as errors name it. */
export async function verifyDatabase(db: Database, at: string): Promise<VerifyReport> {
  const check = new Check(db, at);
  await check.sessions();
  await check.journal();
  await check.entries();
  await check.signals();
  await check.holds();
  await check.items();
  await check.audit();
  await check.blobs();
  return check.findings;
}

class Check {
  readonly findings = new Findings("PostgreSQL");
  readonly #db: Database;
  readonly #at: string;

  constructor(db: Database, at: string) {
    this.#db = db;
    this.#at = at;
  }

  async sessions(): Promise<void> {
    await this.#walk(
      "session",
      (last) => this.#db.run(SESSIONS, [last?.["session_id"] ?? ""]),
      async (row) => {
        const { session } = await this.#decoded(row, (texts) => readSession(row, this.#at, texts));
        const end = row["journal_end"];
        if (end !== session.nextSeq)
          this.findings.add(
            "journal",
            `session ${session.sessionId} has ${session.nextSeq} records, and its journal ends at ${String(end)}`,
          );
      },
    );
    await this.#countLeftOver("session", WITHOUT_STATE, "have no state");
    for (const table of TABLES_OF_SESSIONS)
      await this.#countLeftOver(table, leftOver(table), "belong to no session");
  }

  async journal(): Promise<void> {
    let sessionId: unknown;
    let next = 0;
    await this.#walkSessions("journal", "seq", JOURNAL_COLUMNS, async (row) => {
      if (row["session_id"] !== sessionId) [sessionId, next] = [row["session_id"], 0];
      const seq = row["seq"] as number;
      if (seq !== next)
        this.findings.add(
          "journal",
          `session ${String(sessionId)} has nothing at ${next}, its next row is at ${seq}`,
        );
      next = seq + (row["count"] as number);
      await this.#decoded(row, (texts) => readJournal(row, this.#at, texts));
    });
  }

  async entries(): Promise<void> {
    let sessionId: unknown;
    let next = 0;
    await this.#walkSessions("entry", "seq", ENTRY_COLUMNS, async (row) => {
      if (row["session_id"] !== sessionId) [sessionId, next] = [row["session_id"], 0];
      const expected = next++;
      const { index } = await this.#decoded(row, (texts) => readEntry(row, this.#at, texts));
      if (index !== expected)
        this.findings.add(
          "entry",
          `session ${String(sessionId)} has entry ${index} where ${expected} is next`,
        );
      next = index + 1;
    });
  }

  signals(): Promise<void> {
    return this.#walkSessions("signal", "ord", SIGNAL_COLUMNS, async (row) => {
      await this.#decoded(row, (texts) => readSignal(row, this.#at, texts));
    });
  }

  holds(): Promise<void> {
    return this.#walkSessions("hold", "task", "session_id, task, amount, checksum", (row) => {
      const [sessionId, task] = [row["session_id"] as string, row["task"] as number];
      readHold(sessionId, task, row["amount"] as string, row["checksum"] as number, this.#at);
    });
  }

  items(): Promise<void> {
    return this.#walk(
      "item",
      (last) => this.#db.run(ITEMS, [last?.["kind"] ?? "", last?.["key"] ?? ""]),
      (row) => void JSON.parse(readItem(row, this.#at).body),
    );
  }

  /** Check each row, and that it follows from the row before. */
  async audit(): Promise<void> {
    const chain = new AuditWalk(sha256);
    await this.#walk(
      "audit",
      (last) => this.#db.run(AUDITED, [last?.["seq"] ?? 0]),
      (stored) => this.#addBroken(chain.add(readAudit(stored, this.#at))),
    );
    this.#addBroken(chain.end());
  }

  #addBroken(broken: ReturnType<AuditWalk["end"]>): void {
    if (broken === undefined) return;
    const { seq, got, expected } = broken;
    this.findings.add("audit", `row ${seq} does not follow from the one before it: ${got} for ${expected}`);
  }

  blobs(): Promise<void> {
    return this.#walkSessions(
      "blob",
      "address",
      "session_id, address, content",
      (row) => {
        const texts = new Texts(this.#at);
        texts.get(row["address"] as string);
        texts.supply([row]);
      },
      PAGE_BLOBS,
    );
  }

  /** With the large texts that the row refers to. */
  async #decoded<T>(row: Row, decode: (texts: Texts) => T): Promise<T> {
    const texts = new Texts(this.#at);
    const decoded = decode(texts);
    if (texts.missing.size === 0) return decoded;
    texts.supply(await this.#db.run(TEXTS, [[row["session_id"]], [...texts.missing]]));
    return decode(texts);
  }

  #walkSessions(
    table: string,
    key: string,
    columns: string,
    check: (row: Row) => void | Promise<void>,
    limit?: number,
  ): Promise<void> {
    const page = ofSessions(table, key, columns, limit);
    const first = key === "address" ? "" : -1;
    return this.#walk(
      table,
      (last) => this.#db.run(page, [last?.["lane"] ?? -1, last?.["session_id"] ?? "", last?.[key] ?? first]),
      check,
    );
  }

  /**
   * Every row of a table, page by page. A page that cannot be read ends the table: what is behind it cannot
   * be found.
   */
  async #walk(
    table: string,
    page: (last: Row | undefined) => Promise<Row[]>,
    check: (row: Row) => void | Promise<void>,
  ): Promise<void> {
    this.findings.rows[table] = 0;
    let last: Row | undefined;
    await this.#try(table, async () => {
      for (let rows = await page(undefined); rows.length > 0; rows = await page(last)) {
        for (const row of rows) {
          this.findings.count(table);
          await this.#try(table, () => check(row));
        }
        last = rows.at(-1);
      }
    });
  }

  #countLeftOver(table: string, statement: Statement, what: string): Promise<void> {
    return this.#try(table, async () => {
      const [row] = await this.#db.run(statement);
      if (row?.["rows"] !== 0) this.findings.add(table, `${String(row?.["rows"])} rows ${what}`);
    });
  }

  async #try(table: string, check: () => void | Promise<void>): Promise<void> {
    try {
      await check();
    } catch (error) {
      // A server that does not answer proves nothing about its rows.
      if (toStorageError(error, this.#at, "checking it").code === "storage_unavailable") throw error;
      this.findings.addError(table, error);
    }
  }
}
