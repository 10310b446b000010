// verifyDatabase: a full check on demand, of SQLite's own, every row's checksum, and for missing rows.
//
// It only reads, so it also runs beside a live owner; rows that are committed meanwhile are checked or not.
//
// Memory is bounded: rows come in pages.

import { AuditWalk } from "@holdfast/core";
import { readHold, SELECT_HOLDS } from "../tables/accounts.ts";
import { sha256 } from "../tables/checksum.ts";
import { Blobs } from "../tables/blobs.ts";
import type { SqlDriver, SqlRow } from "../file/driver.ts";
import { readAuditRow, readDocument, SELECT_AUDIT, SELECT_DOCUMENT } from "../tables/ledger.ts";
import { readLease, SELECT_CLAIM } from "../tables/leases.ts";
import { Reads } from "./reads.ts";
import { readEntry, SELECT_ENTRY } from "../tables/entry-rows.ts";
import type { RowSource } from "../tables/row-checks.ts";
import {
  readJournal,
  readSession,
  readSignal,
  SELECT_SESSION,
  SELECT_SIGNAL,
  JOURNAL_COLUMNS,
} from "../tables/rows.ts";
import { Findings, PROBLEMS_MAX, type VerifyReport } from "../../verify-report.ts";
import { readSchedule, SELECT_SCHEDULE } from "../tables/schedules.ts";

const PAGE_ROWS = 500;

export function verifyDatabase(driver: SqlDriver, path: string): VerifyReport {
  const check = new Check(driver, path);
  check.pages();
  check.sessions();
  check.journal();
  check.entries();
  check.signals();
  check.holds();
  check.claims();
  check.schedules();
  check.documents();
  check.audit();
  check.blobs();
  return check.findings;
}

class Check {
  readonly #driver: SqlDriver;
  readonly #source: RowSource;
  readonly findings = new Findings("SQLite");

  constructor(driver: SqlDriver, path: string) {
    this.#driver = driver;
    this.#source = new Reads(driver, path, new Blobs(driver, path)).source();
  }

  pages(): void {
    this.#try("pages", () => {
      for (const row of this.#driver.prepare(`PRAGMA quick_check(${PROBLEMS_MAX})`).all()) {
        const message = String(Object.values(row)[0]);
        if (message !== "ok") this.findings.add("pages", message);
      }
    });
  }

  sessions(): void {
    const page = this.#driver.prepare(
      `${SELECT_SESSION} WHERE s.session > ? ORDER BY s.session LIMIT ${PAGE_ROWS}`,
    );
    this.#walk(
      "session",
      (last) => page.all(Number(last ?? 0)),
      (row) => row["session"],
      (row) => void readSession(row, this.#source),
    );
    for (const table of ["state", "account", "claim"]) {
      this.#try(table, () => {
        const orphans = this.#driver.value(
          `SELECT count(*) FROM ${table} WHERE session NOT IN (SELECT session FROM session)`,
        );
        if (orphans !== 0) this.findings.add(table, `${String(orphans)} rows belong to no session`);
      });
    }
  }

  journal(): void {
    const page = this.#driver.prepare(
      `SELECT rowid, ${JOURNAL_COLUMNS} FROM journal WHERE (session, seq) > (?, ?) ORDER BY session, seq LIMIT ${PAGE_ROWS}`,
    );
    let session: unknown;
    let next = 0;
    this.#walkPairs("journal", "seq", page.all.bind(page), (row) => {
      if (row["session"] !== session) [session, next] = [row["session"], 0];
      const seq = row["seq"] as number;
      if (seq !== next)
        this.findings.add(
          "journal",
          `session ${String(session)} has nothing at ${next}, its next row is at ${seq}`,
        );
      next = seq + (row["count"] as number);
      readJournal(row, this.#source);
    });
  }

  entries(): void {
    const page = this.#driver.prepare(
      `${SELECT_ENTRY} WHERE (session, seq) > (?, ?) ORDER BY session, seq LIMIT ${PAGE_ROWS}`,
    );
    let session: unknown;
    let index = 0;
    this.#walkPairs("entry", "seq", page.all.bind(page), (row) => {
      if (row["session"] !== session) [session, index] = [row["session"], 0];
      if (row["idx"] !== index)
        this.findings.add(
          "entry",
          `session ${String(session)} has entry ${String(row["idx"])} where ${index} is next`,
        );
      index = (row["idx"] as number) + 1;
      readEntry(row, this.#source);
    });
  }

  signals(): void {
    const page = this.#driver.prepare(
      `${SELECT_SIGNAL} WHERE (session, ord) > (?, ?) ORDER BY session, ord LIMIT ${PAGE_ROWS}`,
    );
    this.#walkPairs("signal", "ord", page.all.bind(page), (row) => void readSignal(row, this.#source));
  }

  holds(): void {
    const page = this.#driver.prepare(
      `${SELECT_HOLDS} WHERE (session, task) > (?, ?) ORDER BY session, task LIMIT ${PAGE_ROWS}`,
    );
    this.#walkPairs("hold", "task", page.all.bind(page), (row) => void readHold(row, this.#source.path));
  }

  schedules(): void {
    const page = this.#driver.prepare(
      `${SELECT_SCHEDULE} WHERE schedule_id > ? ORDER BY schedule_id LIMIT ${PAGE_ROWS}`,
    );
    this.#walk(
      "schedule",
      (last) => page.all((last as string | undefined) ?? ""),
      (row) => row["schedule_id"],
      (row) => void readSchedule(row, this.#source.path),
    );
  }

  claims(): void {
    const page = this.#driver.prepare(
      `${SELECT_CLAIM} WHERE session > ? ORDER BY session LIMIT ${PAGE_ROWS}`,
    );
    this.#walk(
      "claim",
      (last) => page.all(Number(last ?? 0)),
      (row) => row["session"],
      (row) => void readLease(row, this.#source.path),
    );
  }

  documents(): void {
    const page = this.#driver.prepare(
      `${SELECT_DOCUMENT} WHERE (collection, id) > (?, ?) ORDER BY collection, id LIMIT ${PAGE_ROWS}`,
    );
    this.#walk(
      "document",
      (last) => page.all(...((last as [string, string] | undefined) ?? ["", ""])),
      (row) => [row["collection"], row["id"]],
      (row) => void readDocument(row, this.#source.path),
    );
  }

  /** Checks each row, and that it follows from the row before. */
  audit(): void {
    const page = this.#driver.prepare(`${SELECT_AUDIT} WHERE seq > ? ORDER BY seq LIMIT ${PAGE_ROWS}`);
    const chain = new AuditWalk(sha256);
    this.#walk(
      "audit",
      (last) => page.all(Number(last ?? 0)),
      (row) => row["seq"],
      (stored) => this.#addBroken(chain.add(readAuditRow(stored, this.#source.path))),
    );
    this.#addBroken(chain.end());
  }

  #addBroken(broken: ReturnType<AuditWalk["end"]>): void {
    if (broken === undefined) return;
    const { seq, got, expected } = broken;
    this.findings.add("audit", `row ${seq} does not follow from the one before it: ${got} for ${expected}`);
  }

  blobs(): void {
    const page = this.#driver.prepare(
      `SELECT rowid AS id, address FROM blob WHERE rowid > ? ORDER BY rowid LIMIT 16`,
    );
    const read = (row: SqlRow) => void this.#source.blobs.get(row["address"] as string);
    this.#walk(
      "blob",
      (last) => page.all(Number(last ?? 0)),
      (row) => row["id"],
      read,
    );
  }

  #walkPairs(
    table: string,
    key: string,
    page: (session: number, key: number) => SqlRow[],
    check: (row: SqlRow) => void,
  ): void {
    this.#walk(
      table,
      (last) => (last === undefined ? page(-1, -1) : page(...(last as [number, number]))),
      (row) => [row["session"], row[key]],
      check,
    );
  }

  /**
   * Every row of a table, page by page. A page that cannot be read ends the table: what is behind it cannot
   * be found.
   */
  #walk(
    table: string,
    page: (last: unknown) => SqlRow[],
    keyOf: (row: SqlRow) => unknown,
    check: (row: SqlRow) => void,
  ): void {
    this.findings.rows[table] = 0;
    let last: unknown;
    this.#try(table, () => {
      for (let rows = page(undefined); rows.length > 0; rows = page(last)) {
        for (const row of rows) {
          this.findings.count(table);
          this.#try(table, () => check(row));
        }
        last = keyOf(rows.at(-1)!);
      }
    });
  }

  #try(table: string, check: () => void): void {
    try {
      check();
    } catch (error) {
      this.findings.addError(table, error);
    }
  }
}
