// The schema, as the numbered steps that lead to it. Forward only: a step that was released is never edited.
//
//   - `user_version` is the number of the last step applied; each step and its number are one transaction.
//   - A database of a later version than ours is refused by `database.ts` before anything is written to it.
//
// Why the tables look as they do, measured on node:sqlite with groups of 64 batches at synchronous=FULL:
//
//   journal    One row per batch, in the order of commits, with an index beside it. A batch of 100 bytes
//              takes 8 µs, a batch of 1 KB 12 µs. Clustered by session (WITHOUT ROWID) they take 15 and 69.
//              There each session's batch dirties a page of its own, and rows of a quarter page overflow.
//              Without any index they would take 4 and 7.
//   state      The one mutable row of a session. It is narrow and apart from `session` with its input, so
//              that a suspension rewrites a hundred bytes. A step that changes neither status nor waits does
//              not touch it. Its `next_seq`, `entry_count`, `inbox` and `updated_at` are therefore as of its
//              last write. The rows behind them may be ahead, never behind.
//   session    `origin`, and `rest` of `state`, hold the fields that few sessions have, such as relations to
//              other sessions. Each is one JSON object, and NULL for most sessions. A column for each field
//              would be bound and checksummed with every row that lacks the field.
//   account    Rows of payers only. They are apart from `state`, because the account of a parent changes with
//              every task of its children. `reserved` also keeps the first few holds of the session's own
//              tasks; other holds have a row in `hold` (accounts-1). `spent` also keeps the ledgers of
//              windows.
//   entry      Content that the agent took unchanged from an outcome or a signal is not stored twice.
//              `record` is the position of the record that holds the text.
//   signal     Pending ones only; a consumed one lives on in the journal.
//   seen       Ids (`i:…`) and dedup keys (`d:…` with the signal's name), kept forever. The key leads, because
//              ids minted in one moment are neighbours. Led by the session, every signal would dirty a page
//              of its own.
//   claim      Only claims whose lease ends, and losses (`leases.ts`).
//   blob_use   The sessions that refer to a blob, so that it is deleted with the last of them.
//   lists      `session_agent` and `state_status` end in the session's number, as every index does, so a page
//              of a list is one range. Together they cost 3 µs of CPU per session; a partial index without
//              `working` was no cheaper. A session with a damaged `agent` is in no list by agent, and a
//              session with a damaged `origin` in no list by owner. An index that refused such a row would
//              keep the whole file from being opened.
//   removed    Numbers of deleted sessions whose rows in `seen` are left until the next opening
//              (`removal.ts`).

import type { SqlDriver } from "./driver.ts";

/** "Hold" in ASCII: distinguishes our files from other SQLite databases. */
export const APPLICATION_ID = 0x486f6c64;

/** The text of each step. */
export const STEPS: readonly string[] = [
  `
  CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;

  CREATE TABLE session (
    session     INTEGER PRIMARY KEY,
    session_id  TEXT NOT NULL UNIQUE,
    agent       TEXT NOT NULL,
    input       TEXT,
    input_blob  TEXT,
    seed        INTEGER NOT NULL,
    flags       INTEGER NOT NULL,
    format      INTEGER NOT NULL,
    parent      TEXT,
    origin      TEXT,
    created_at  INTEGER NOT NULL,
    checksum    INTEGER NOT NULL
  );
  CREATE INDEX session_parent ON session (parent) WHERE parent IS NOT NULL;
  CREATE INDEX session_agent ON session (CASE WHEN json_valid(agent) THEN agent ->> '$.name' END);
  CREATE INDEX session_owner ON session (CASE WHEN json_valid(origin) THEN origin ->> '$.placement.owner' END, session)
    WHERE CASE WHEN json_valid(origin) THEN origin ->> '$.placement.owner' END IS NOT NULL;

  CREATE TABLE state (
    session         INTEGER PRIMARY KEY,
    status          TEXT NOT NULL,
    pause_reason    TEXT,
    waits           TEXT,
    wake_at         INTEGER,
    due_at          INTEGER,
    cancel          TEXT,
    overdue_at      INTEGER,
    checkpoint_seq  INTEGER,
    next_seq        INTEGER NOT NULL,
    entry_count     INTEGER NOT NULL,
    turn            INTEGER NOT NULL,
    inbox           INTEGER NOT NULL,
    output          TEXT,
    output_blob     TEXT,
    error           TEXT,
    rest            TEXT,
    updated_at      INTEGER NOT NULL,
    ended_at        INTEGER,
    checksum        INTEGER NOT NULL
  );
  CREATE INDEX state_status ON state (status);
  CREATE INDEX state_due ON state (due_at) WHERE due_at IS NOT NULL;
  CREATE INDEX state_overdue ON state (overdue_at) WHERE overdue_at IS NOT NULL;
  CREATE INDEX state_exhausted ON state (session) WHERE pause_reason = 'budget_exceeded';

  CREATE TABLE account (
    session   INTEGER PRIMARY KEY,
    limits    TEXT NOT NULL,
    spent     TEXT NOT NULL,
    reserved  TEXT NOT NULL,
    low       INTEGER NOT NULL,
    checksum  INTEGER NOT NULL
  );

  CREATE TABLE hold (
    session   INTEGER NOT NULL,
    task      INTEGER NOT NULL,
    amount    TEXT NOT NULL,
    checksum  INTEGER NOT NULL,
    PRIMARY KEY (session, task)
  ) WITHOUT ROWID;

  CREATE TABLE journal (
    session       INTEGER NOT NULL,
    seq           INTEGER NOT NULL,
    count         INTEGER NOT NULL,
    committed_at  INTEGER NOT NULL,
    body          TEXT NOT NULL,
    checkpoint    INTEGER,
    checksum      INTEGER NOT NULL,
    UNIQUE (session, seq)
  );
  CREATE INDEX journal_checkpoint ON journal (session, seq) WHERE checkpoint = 1;

  CREATE TABLE entry (
    session     INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    idx         INTEGER NOT NULL,
    parent      INTEGER,
    role        TEXT NOT NULL,
    turn        INTEGER NOT NULL,
    content     TEXT,
    blob        TEXT,
    record      INTEGER,
    created_at  INTEGER NOT NULL,
    checksum    INTEGER NOT NULL,
    UNIQUE (session, seq)
  );

  CREATE TABLE signal (
    session    INTEGER NOT NULL,
    ord        INTEGER NOT NULL,
    signal_id  TEXT NOT NULL,
    name       TEXT NOT NULL,
    payload    TEXT,
    blob       TEXT,
    sent_at    INTEGER NOT NULL,
    checksum   INTEGER NOT NULL,
    PRIMARY KEY (session, ord)
  ) WITHOUT ROWID;

  CREATE TABLE seen (key TEXT NOT NULL, session INTEGER NOT NULL, PRIMARY KEY (key, session)) WITHOUT ROWID;

  CREATE TABLE schedule (
    schedule_id  TEXT PRIMARY KEY,
    cron         TEXT NOT NULL,
    time_zone    TEXT NOT NULL,
    action       TEXT NOT NULL,
    next_at      INTEGER NOT NULL,
    last_at      INTEGER,
    created_at   INTEGER NOT NULL,
    checksum     INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE INDEX schedule_next ON schedule (next_at);

  CREATE TABLE blob (address TEXT NOT NULL UNIQUE, content TEXT NOT NULL);
  CREATE TABLE blob_use (address TEXT NOT NULL, session INTEGER NOT NULL, PRIMARY KEY (address, session)) WITHOUT ROWID;
  CREATE INDEX blob_use_session ON blob_use (session);

  CREATE TABLE claim (
    session   INTEGER PRIMARY KEY,
    token     INTEGER NOT NULL,
    owner     TEXT,
    lease_ms  INTEGER NOT NULL,
    losses    INTEGER NOT NULL,
    checksum  INTEGER NOT NULL
  );

  CREATE TABLE document (
    collection  TEXT NOT NULL,
    id          TEXT NOT NULL,
    body        TEXT NOT NULL,
    version     INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    checksum    INTEGER NOT NULL,
    PRIMARY KEY (collection, id)
  ) WITHOUT ROWID;

  CREATE TABLE audit (
    seq         INTEGER PRIMARY KEY,
    at          INTEGER NOT NULL,
    actor       TEXT NOT NULL,
    action      TEXT NOT NULL,
    object      TEXT NOT NULL,
    request_id  TEXT,
    details     TEXT,
    outcome     TEXT NOT NULL,
    hash        TEXT NOT NULL,
    checksum    INTEGER NOT NULL
  );

  CREATE TABLE removed (session INTEGER PRIMARY KEY);
  `,
];

/** The version this program writes. */
export const SCHEMA_VERSION = STEPS.length;

/**
 * Bring a database to our version. Does nothing when it is there.
 *
 * @param steps all of them, from the first on.
 */
export function migrate(driver: SqlDriver, steps = STEPS): void {
  for (let version = Number(driver.value("PRAGMA user_version")); version < steps.length; version++) {
    driver.exec("BEGIN IMMEDIATE");
    try {
      driver.exec(steps[version]!);
      // The step and its number are one transaction.
      driver.exec(`PRAGMA user_version = ${version + 1}; PRAGMA application_id = ${APPLICATION_ID}`);
      driver.exec("COMMIT");
    } catch (error) {
      if (driver.inTransaction) driver.exec("ROLLBACK");
      throw error;
    }
  }
}
