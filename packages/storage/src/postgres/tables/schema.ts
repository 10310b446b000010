// The schema, as the numbered steps that lead to it. Forward only: a step that was released is never edited.
//
//   schema-1. `meta.schema_version` is the number of the last step applied; each step and its number are one
//       transaction.
//   schema-2. A database of a later version than ours is refused by `migrations.ts` before anything is
//       written to it.
//   - While a fleet is upgraded, open coordinators of the version before read and write the new tables.
//       A step therefore adds tables, indexes and columns with a default, and nothing else. A new field of a
//       session has a column of its own, because they write `body` again with the fields that they know.
//   - Portable: only tables, and indexes over columns. No sequences, triggers, foreign keys or types of our
//     own.
//
// Why the tables look as they do:
//
//   lane      Leads every key that a step touches. It is the hash of the session at the root of the tree, so
//             that a tree is in one lane. `session` is the directory that has the lane of an id, and all
//             fields that never change.
//   state     The one mutable row of a session, narrow, rewritten by every commit. `version` is what
//             optimistic writers compare (`write-statement.ts`); it changes with everything of the session
//             that a rule looks at. `ready_at` is the time when the session has something to do, claimed or
//             not. `due_at` also takes its claim into account, and is NULL while a live instance holds a
//             claim without an expiry. `born` is that of `session`, for lists by status. The row of a
//             session that has ended keeps its holder, as the holder may send its last batch again; no index
//             has it.
//   item      Small keyed things that are read and written whole: schedules, documents, the end of the audit
//             chain.
//   instance  Storages that claim, each with its last sign of life, by the database's clock. `presence` lets
//             processes of the same host find out that its process is gone.
//
// Times are float8, so that Infinity is one of them. Texts are `text`, never `jsonb`: they come back to the
// byte. Ids sort as bytes (COLLATE "C"), the same on every server.

/** The text of each step; the statements of a step are sent together. */
export const STEPS: readonly string[] = [
  `
  CREATE TABLE session (
    session_id  text COLLATE "C" PRIMARY KEY,
    lane        int4 NOT NULL,
    born        int8 NOT NULL,
    agent       text COLLATE "C" NOT NULL,
    owner       text COLLATE "C",
    parent      text COLLATE "C",
    made        text NOT NULL,
    checksum    int8 NOT NULL
  );
  CREATE INDEX session_born ON session (born, session_id);
  CREATE INDEX session_agent ON session (agent, born, session_id);
  CREATE INDEX session_parent ON session (parent, born) WHERE parent IS NOT NULL;
  CREATE INDEX session_owner ON session (owner, born) WHERE owner IS NOT NULL;

  CREATE TABLE state (
    lane        int4 NOT NULL,
    session_id  text COLLATE "C" NOT NULL,
    version     int8 NOT NULL,
    status      text NOT NULL,
    ended       int4 NOT NULL,
    agent       text COLLATE "C" NOT NULL,
    body        text NOT NULL,
    checksum    int8 NOT NULL,
    ready_at    float8,
    due_at      float8,
    overdue_at  float8,
    exhausted   text COLLATE "C",
    token       int8 NOT NULL,
    holder      text COLLATE "C",
    until       float8 NOT NULL,
    lease_ms    float8 NOT NULL,
    losses      int4 NOT NULL,
    instance    text COLLATE "C",
    born        int8 NOT NULL,
    PRIMARY KEY (lane, session_id)
  ) WITH (fillfactor = 70);
  CREATE INDEX state_status ON state (status, born, session_id);
  CREATE INDEX state_due ON state (due_at, lane, session_id) WHERE due_at IS NOT NULL;
  CREATE INDEX state_overdue ON state (overdue_at) WHERE overdue_at IS NOT NULL;
  CREATE INDEX state_exhausted ON state (exhausted) WHERE exhausted IS NOT NULL;
  CREATE INDEX state_holder ON state (holder) WHERE holder IS NOT NULL AND ended = 0;
  CREATE INDEX state_instance ON state (instance) WHERE instance IS NOT NULL;

  CREATE TABLE journal (
    lane          int4 NOT NULL,
    session_id    text COLLATE "C" NOT NULL,
    seq           int8 NOT NULL,
    count         int4 NOT NULL,
    committed_at  float8 NOT NULL,
    checkpoint    int4,
    body          text NOT NULL,
    checksum      int8 NOT NULL,
    PRIMARY KEY (lane, session_id, seq)
  );
  CREATE INDEX journal_checkpoint ON journal (lane, session_id, seq) WHERE checkpoint = 1;

  CREATE TABLE entry (
    lane        int4 NOT NULL,
    session_id  text COLLATE "C" NOT NULL,
    seq         int8 NOT NULL,
    body        text NOT NULL,
    content     text,
    blob        text,
    checksum    int8 NOT NULL,
    PRIMARY KEY (lane, session_id, seq)
  );

  CREATE TABLE signal (
    lane        int4 NOT NULL,
    session_id  text COLLATE "C" NOT NULL,
    ord         int8 NOT NULL,
    signal_id   text NOT NULL,
    name        text NOT NULL,
    sent_at     float8 NOT NULL,
    payload     text,
    blob        text,
    checksum    int8 NOT NULL,
    PRIMARY KEY (lane, session_id, ord)
  );

  CREATE TABLE seen (
    lane        int4 NOT NULL,
    session_id  text COLLATE "C" NOT NULL,
    mark        text COLLATE "C" NOT NULL,
    PRIMARY KEY (lane, session_id, mark)
  );

  CREATE TABLE hold (
    lane        int4 NOT NULL,
    session_id  text COLLATE "C" NOT NULL,
    task        int8 NOT NULL,
    amount      text NOT NULL,
    checksum    int8 NOT NULL,
    PRIMARY KEY (lane, session_id, task)
  );

  CREATE TABLE blob (
    lane        int4 NOT NULL,
    session_id  text COLLATE "C" NOT NULL,
    address     text COLLATE "C" NOT NULL,
    content     text NOT NULL,
    PRIMARY KEY (lane, session_id, address)
  );

  CREATE TABLE item (
    kind        text COLLATE "C" NOT NULL,
    key         text COLLATE "C" NOT NULL,
    version     int8 NOT NULL,
    next_at     float8,
    body        text NOT NULL,
    checksum    int8 NOT NULL,
    PRIMARY KEY (kind, key)
  );
  CREATE INDEX item_next ON item (next_at) WHERE next_at IS NOT NULL;

  CREATE TABLE audit (
    seq       int8 PRIMARY KEY,
    body      text NOT NULL,
    checksum  int8 NOT NULL
  );

  CREATE TABLE instance (
    instance  text COLLATE "C" PRIMARY KEY,
    said_at   timestamptz NOT NULL,
    presence  text
  );
  `,
];

/** The version this program writes. */
export const SCHEMA_VERSION = STEPS.length;

/** The lanes of a new database. The number is stored in it, because the lane of a session never changes. */
export const LANES_DEFAULT = 8;
