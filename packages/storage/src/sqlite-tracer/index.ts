// sqliteTracer: writes trace events to a SQLite file of their own, to be queried with SQL.
//
//   - The file is never the database of the sessions, and no transaction of theirs is touched. A database
//     that is not one of traces is refused when it is opened.
//   - Events are held in memory and written by a timer, some hundreds in a transaction. The process is thus
//     never busy with them for long. At most `eventsMax` are held.
//   - Events that cannot be held or written are dropped, and `onProblem` is called at the first. Once writing
//     works again, the table `dropped` gets their number and their time.
//   - At most `rowsMax` events are kept, the youngest.
//   - Only the file's owner may read it (0600).

import { closeSync, constants, fchmodSync, fstatSync, openSync } from "node:fs";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { clearTimeout, setTimeout } from "node:timers";
import {
  HoldfastError,
  traceJson,
  type AgentTracer,
  type TraceEvent,
  type TraceTextOptions,
} from "@holdfast/core";

/** Options of `sqliteTracer`. */
export interface SqliteTracerOptions extends TraceTextOptions {
  readonly path: string;
  /** Events held back until they are written. */
  readonly eventsMax?: number;
  /** Events kept in the file. */
  readonly rowsMax?: number;
  /** Told once each time events begin to be dropped. Must not throw. */
  readonly onProblem?: (message: string) => void;
}

/** A tracer that writes to a SQLite file. */
export interface SqliteTracer extends AgentTracer {
  flush(): Promise<void>;
  /** Write the held events and close the file. Later events are dropped. */
  close(): Promise<void>;
}

/** "Hold" in ASCII, but for its last letter: a file of traces. */
const APPLICATION_ID = 0x486f6c74;
const WRITE_MS = 200;
const EVENTS_PER_TRANSACTION = 500;

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS trace_event (
    id          INTEGER PRIMARY KEY,
    at          INTEGER NOT NULL,
    session_id  TEXT NOT NULL,
    type        TEXT NOT NULL,
    task_id     TEXT,
    attempt     INTEGER,
    event       TEXT NOT NULL
  );
  CREATE INDEX IF NOT EXISTS trace_event_session ON trace_event (session_id, id);
  CREATE TABLE IF NOT EXISTS dropped (at INTEGER NOT NULL, events INTEGER NOT NULL);
  PRAGMA application_id = ${APPLICATION_ID};
`;

/**
 * A tracer that writes to a SQLite file.
 *
 * @throws HoldfastError `config_invalid` when the file cannot be one of traces.
 */
export function sqliteTracer(options: SqliteTracerOptions): SqliteTracer {
  return new BufferedTracer(options);
}

interface Row {
  readonly event: TraceEvent;
  readonly text: string;
}

class BufferedTracer implements SqliteTracer {
  readonly #options: SqliteTracerOptions & { readonly eventsMax: number; readonly rowsMax: number };
  readonly #database: DatabaseSync;
  readonly #insert: StatementSync;
  readonly #insertDropped: StatementSync;
  readonly #trim: StatementSync;
  readonly #held: Row[] = [];
  #dropped = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: SqliteTracerOptions) {
    this.#options = { eventsMax: 20_000, rowsMax: 1_000_000, ...options };
    this.#database = openTraces(options.path);
    this.#insert = this.#database.prepare(
      "INSERT INTO trace_event (at, session_id, type, task_id, attempt, event) VALUES (?, ?, ?, ?, ?, ?)",
    );
    this.#insertDropped = this.#database.prepare("INSERT INTO dropped (at, events) VALUES (?, ?)");
    this.#trim = this.#database.prepare(
      "DELETE FROM trace_event WHERE id <= (SELECT max(id) FROM trace_event) - ?",
    );
  }

  trace(event: TraceEvent): void {
    if (this.#isClosed) return;
    if (this.#held.length >= this.#options.eventsMax) {
      this.#drop(1, "more is traced than can be written");
      return;
    }
    this.#held.push({ event, text: traceJson(event, this.#options) });
    this.#timer ??= setTimeout(() => this.#writeSome(), WRITE_MS).unref();
  }

  flush(): Promise<void> {
    while (this.#held.length > 0) this.#writeSome();
    return Promise.resolve();
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    await this.flush();
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#database.close();
  }

  #writeSome(): void {
    clearTimeout(this.#timer);
    const rows = this.#held.splice(0, EVENTS_PER_TRANSACTION);
    try {
      this.#write(rows);
      this.#dropped = 0;
    } catch (error) {
      this.#drop(rows.length, (error as Error).message);
    }
    this.#timer = this.#held.length === 0 ? undefined : setTimeout(() => this.#writeSome(), 0).unref();
  }

  #write(rows: readonly Row[]): void {
    this.#database.exec("BEGIN IMMEDIATE");
    try {
      if (this.#dropped > 0) this.#insertDropped.run(Date.now(), this.#dropped);
      for (const { event, text } of rows) {
        const { at, sessionId, type } = event;
        const taskId = "taskId" in event ? event.taskId : null;
        this.#insert.run(at, sessionId, type, taskId, "attempt" in event ? event.attempt : null, text);
      }
      this.#trim.run(this.#options.rowsMax);
      this.#database.exec("COMMIT");
    } catch (error) {
      if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
      throw error;
    }
  }

  #drop(events: number, why: string): void {
    const isFirst = this.#dropped === 0;
    this.#dropped += events;
    if (isFirst) this.#options.onProblem?.(`trace events for ${this.#options.path} are dropped: ${why}`);
  }
}

function openTraces(path: string): DatabaseSync {
  try {
    const flags = constants.O_CREAT | constants.O_RDWR | constants.O_NOFOLLOW;
    const file = openSync(path, flags, 0o600);
    const isFile = fstatSync(file).isFile();
    if (isFile) fchmodSync(file, 0o600);
    closeSync(file);
    if (!isFile) throw new Error("it is not a file");
  } catch (cause) {
    throw refused(path, (cause as Error).message, cause);
  }
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    const { application_id: id } = database.prepare("PRAGMA application_id").get() as {
      application_id: number;
    };
    const { n } = database.prepare("SELECT count(*) AS n FROM sqlite_schema").get() as { n: number };
    if (id !== APPLICATION_ID && n > 0) throw new Error("it is the database of something else");
    // Losing a few trace events in a power cut is cheaper than syncing.
    database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF");
    database.exec(SCHEMA);
    return database;
  } catch (cause) {
    database.close();
    throw refused(path, (cause as Error).message, cause);
  }
}

function refused(path: string, why: string, cause: unknown): HoldfastError {
  return new HoldfastError("config_invalid", `no trace can be written to ${path}: ${why}`, {
    at: path,
    expected: "a path in a folder that exists, of a new file or of one that traces were written to before",
    fix: "name another file",
    cause,
  });
}
