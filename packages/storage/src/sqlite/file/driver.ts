// SqlDriver: the seam between our SQL and the library that runs it. Only this file imports `node:sqlite`.
//
// It knows nothing of our schema. Another library (better-sqlite3 has the same synchronous shape) needs this
// file alone.
//
//   - Everything is synchronous. No statement is ever left open: `all` and `get` run to their end, so that no
//     read transaction outlives the call that began it.
//   - Statements are prepared once per connection and kept.
//   - Errors pass through as the library throws them; `sql-errors.ts` gives them meaning.

import { DatabaseSync, type StatementSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { HoldfastError } from "@holdfast/core";

export type SqlValue = null | number | string | Uint8Array;
export type SqlRow = Readonly<Record<string, SqlValue>>;

export interface SqlStatement {
  /** Answers how many rows the statement changed. */
  run(...values: SqlValue[]): number;
  get(...values: SqlValue[]): SqlRow | undefined;
  all(...values: SqlValue[]): SqlRow[];
}

export interface SqlDriver {
  exec(sql: string): void;
  /** The statement of this text, prepared at its first use. */
  prepare(sql: string): SqlStatement;
  /** The value of a PRAGMA, or of a query with one row and one column. */
  value(sql: string): SqlValue | undefined;
  readonly inTransaction: boolean;
  /** Statements run since it was opened; for benchmarks. */
  readonly statementCount: number;
  close(): void;
}

export interface SqlOpen {
  /**
   * `write` needs the file's own permissions. `read` works beside an owner. `immutable` reads the main file
   * alone, takes no locks and leaves nothing behind, so it may read stale content.
   */
  readonly mode: "write" | "read" | "immutable";
  /** How long a call waits for another process's lock. It blocks the event loop: keep it at 50 or less. */
  readonly busyTimeoutMs: number;
}

/** Below it a race between a checkpoint and a writer can corrupt a database in WAL mode. */
const SQLITE_VERSION_MIN = "3.51.3";

export function openDriver(path: string, { mode, busyTimeoutMs }: SqlOpen): SqlDriver {
  const where = mode === "immutable" ? immutableUrl(path) : path;
  return new NodeSqliteDriver(
    new DatabaseSync(where, {
      readOnly: mode !== "write",
      timeout: busyTimeoutMs,
      enableForeignKeyConstraints: false,
      enableDoubleQuotedStringLiterals: false,
      // An immutable database is read whatever its state; nothing can be written to it.
      ...(mode === "immutable" ? { defensive: false } : {}),
    }),
  );
}

/** @throws HoldfastError `version_unsupported` when the SQLite of this Node is older than we can trust. */
export function assertSqliteVersion(version: string = process.versions.sqlite ?? "none"): void {
  if (isAtLeast(version, SQLITE_VERSION_MIN)) return;
  throw new HoldfastError(
    "version_unsupported",
    `this Node carries SQLite ${version}, which can corrupt databases in WAL mode`,
    {
      got: `Node ${process.versions.node} with SQLite ${version}`,
      expected: `SQLite ${SQLITE_VERSION_MIN} or newer`,
      fix: "use Node 22.23.4, 24.22.1 or 26.12.1, or a newer one of the same number",
    },
  );
}

function isAtLeast(version: string, least: string): boolean {
  const have = version.split(".").map(Number);
  for (const [i, want] of least.split(".").map(Number).entries()) {
    const part = have[i] ?? 0;
    if (part !== want) return part > want;
  }
  return true;
}

function immutableUrl(path: string): URL {
  const url = pathToFileURL(path);
  url.searchParams.set("immutable", "1");
  return url;
}

/**
 * SQLite compiles a statement again at each new value that its planner may look at, which it does in joins and
 * beside ORDER BY. A look-up of one session then took 140 µs, and takes 2. The planner does not look behind a
 * `+`, which does nothing else. Without statistics, no plan depends on a value.
 */
function hideValues(sql: string): string {
  return sql.replaceAll(/(?<=[=<>]\s*)\?/g, "+?");
}

class NodeSqliteDriver implements SqlDriver {
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, NodeSqliteStatement>();
  statementCount = 0;

  constructor(database: DatabaseSync) {
    this.#database = database;
    // A file may come from a stranger: its triggers, views and defaults call no function with an effect.
    database.exec("PRAGMA trusted_schema = OFF");
  }

  exec(sql: string): void {
    this.statementCount++;
    this.#database.exec(sql);
  }

  prepare(sql: string): SqlStatement {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = new NodeSqliteStatement(this.#database.prepare(hideValues(sql)), this);
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  value(sql: string): SqlValue | undefined {
    const row = this.prepare(sql).get();
    return row === undefined ? undefined : Object.values(row)[0];
  }

  get inTransaction(): boolean {
    return this.#database.isTransaction;
  }

  close(): void {
    this.#statements.clear();
    this.#database.close();
  }
}

class NodeSqliteStatement implements SqlStatement {
  readonly #statement: StatementSync;
  readonly #driver: NodeSqliteDriver;

  constructor(statement: StatementSync, driver: NodeSqliteDriver) {
    this.#statement = statement;
    this.#driver = driver;
  }

  run(...values: SqlValue[]): number {
    this.#driver.statementCount++;
    return this.#statement.run(...values).changes as number;
  }

  get(...values: SqlValue[]): SqlRow | undefined {
    this.#driver.statementCount++;
    return this.#statement.get(...values) as SqlRow | undefined;
  }

  all(...values: SqlValue[]): SqlRow[] {
    this.#driver.statementCount++;
    return this.#statement.all(...values) as SqlRow[];
  }
}
