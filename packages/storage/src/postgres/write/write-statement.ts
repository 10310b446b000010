// writeStatement: a group as one statement, and so as one transaction, one round trip and one sync.
//
//   held  locks the rows of all sessions that the group read, in the order of their ids, if they still have the
//         version that was read. `kept` does the same for items.
//   ok    whether none is missing.
//   …     every insert, update and delete, each of rows for which `ok` holds.
//
// A step changes every session that it read, and then `held` is left out. The update itself counts the rows
// that have their version, and a division by zero aborts the statement if one row has not. That saves each
// step a lock. The error gets into the server's log, so a second try locks instead.
//
//   - It applies all or nothing. Every row that was read is unchanged, and stays so until the commit;
//     otherwise no row is touched and the answer is `false`.
//   - A row that was read and found missing is not locked. Writing it conflicts with the row of another
//     process, and the conflict is an error of the statement as a whole.
//   write-statement-3. A row is touched by one part only; what the parts do does not depend on their order.
//   - Its text depends only on its parts and their forms. It is thus prepared once for each combination.
//   write-statement-5. A group whose parts have one row each, such as a step of one session, is written with
//       plain values. Other groups are written with arrays (`statement-parts.ts`).
//
// It knows no rules; `working-set.ts` has computed the rows before.

import type { Head } from "../tables/heads.ts";
import {
  checkpointMark,
  entryRow,
  holdChecksum,
  journalChecksum,
  madeRow,
  signalRow,
  stateRow,
} from "../tables/rows.ts";
import { auditChecksum, itemChecksum, type Item } from "../tables/items.ts";
import { dueAtSql, dueColumn, isForEver } from "./due-column.ts";
import type { Writes } from "./group-writes.ts";
import { type Column, columnsOf, Parts, type WriteStatement } from "./statement-parts.ts";
import type { WorkingSet } from "./working-set.ts";

export interface WriteOptions {
  /** The items as they were read, by kind and key. */
  readonly items: readonly { readonly kind: string; readonly key: string; readonly item: Item | undefined }[];
  /** The instance that holds claims without an expiry. */
  readonly instance: string;
  /** Whether another process was faster at the try before. */
  readonly isRetry: boolean;
}

/** The effects of a change on its claim. A claim that is lost is also released. */
const PROVEN = 1;
const RELEASED = 2;
const LOST = 4;

/** The tables with rows of their own for each session. */
const SESSION_TABLES = ["session", "state", "journal", "entry", "signal", "seen", "hold", "blob"] as const;

export function writeStatement(set: WorkingSet, options: WriteOptions): WriteStatement {
  const parts = new Parts();
  const { writes } = set;
  const isCounted = !options.isRetry && changesAll(set);
  checkVersions(parts, set, options, isCounted);
  insertSessions(parts, set, options);
  updateStates(parts, set, isCounted);
  insertJournal(parts, writes);
  insertEntries(parts, set);
  writeSignals(parts, set);
  writeHolds(parts, writes);
  writeItems(parts, writes, options);
  removeSessions(parts, writes);
  appendAudit(parts, writes);
  insertTexts(parts, writes); // Last: the others say which.
  return parts.statement();
}

/** A session's key, in two columns. */
const OF_HEAD = [
  ["int4", ({ head }: { readonly head: Head }) => head.lane],
  ["text", ({ head }: { readonly head: Head }) => head.sessionId],
] as const;

function insert(parts: Parts, name: string, table: string, columns: string, rows: Column[], then = ""): void {
  parts.add(name, `(INSERT INTO ${table} (${columns}) SELECT * FROM $COLUMNS AS v WHERE $OK${then})`, rows);
}

/** Whether the update alone touches every session that was looked at. */
function changesAll({ consulted, writes }: WorkingSet): boolean {
  return writes.removed.size === 0 && writes.changed.size === consulted.size && consulted.size > 0;
}

function checkVersions(
  parts: Parts,
  { consulted }: WorkingSet,
  { items }: WriteOptions,
  isCounted: boolean,
): void {
  const heads = isCounted ? [] : [...consulted.values()];
  const found = items.flatMap(({ kind, key, item }) => (item === undefined ? [] : [{ kind, key, item }]));
  if (heads.length > 0) {
    const columns = columnsOf(
      heads,
      ["int4", ({ lane }) => lane],
      ["text", ({ sessionId }) => sessionId],
      ["int8", ({ version }) => version],
    );
    parts.add(
      "held",
      `MATERIALIZED (SELECT t.session_id FROM $COLUMNS AS v (lane, session_id, version)
         JOIN state t ON t.lane = v.lane AND t.session_id = v.session_id AND t.version = v.version
        ORDER BY t.lane, t.session_id FOR UPDATE OF t)`,
      columns,
    );
    parts.mustFind("held", heads.length);
  }
  if (found.length > 0) {
    const columns = columnsOf(
      found,
      ["text", ({ kind }) => kind],
      ["text", ({ key }) => key],
      ["int8", ({ item }) => item.version],
    );
    parts.add(
      "kept",
      `MATERIALIZED (SELECT i.key FROM $COLUMNS AS v (kind, key, version)
         JOIN item i ON i.kind = v.kind AND i.key = v.key AND i.version = v.version
        ORDER BY i.kind, i.key FOR UPDATE OF i)`,
      columns,
    );
    parts.mustFind("kept", found.length);
  }
}

function insertSessions(parts: Parts, set: WorkingSet, { instance }: WriteOptions): void {
  const rows = [...set.writes.created.values()].map((created) => {
    const { head, session, born } = created;
    const keep = set.keepFor(head);
    return {
      ...created,
      made: madeRow(session, head.lane, born, keep),
      state: stateRow({ ...head.session }, head.lane, head.answered, undefined, keep),
    };
  });
  if (rows.length === 0) return;
  const columns = columnsOf(
    rows,
    ["text", ({ head }) => head.sessionId],
    ["int4", ({ head }) => head.lane],
    ["int8", ({ born }) => born],
    ["text", ({ session }) => session.agent.name, "alike"],
    ["text", ({ session }) => session.placement?.owner ?? null, "alike"],
    ["text", ({ session }) => session.parent?.sessionId ?? null, "alike"],
    ["text", ({ made }) => made.made],
    ["int8", ({ made }) => made.checksum],
  );
  insert(parts, "made", "session", "session_id, lane, born, agent, owner, parent, made, checksum", columns);
  insert(
    parts,
    "began",
    "state",
    `lane, session_id, version, status, ended, agent, body, checksum, ready_at, due_at, overdue_at, exhausted,
     token, holder, until, lease_ms, losses, instance, born`,
    columnsOf(
      rows,
      ...OF_HEAD,
      ["int8", ({ head }) => head.version],
      ["text", ({ state }) => state.status, "alike"],
      ["int4", ({ state }) => state.ended, "alike"],
      ["text", ({ session }) => session.agent.name, "alike"],
      ["text", ({ state }) => state.body],
      ["int8", ({ state }) => state.checksum],
      ["float8", ({ state }) => state.readyAt, "alike"],
      ["float8", ({ head, state }) => dueColumn(state.readyAt, head), "alike"],
      ["float8", ({ state }) => state.overdueAt, "alike"],
      ["text", ({ state }) => state.exhausted, "alike"],
      ["int8", ({ head }) => head.claim.token],
      ["text", ({ head }) => head.claim.owner ?? null, "alike"],
      ["float8", ({ head }) => head.claim.until, "alike"],
      ["float8", ({ leaseMs }) => leaseMs, "alike"],
      ["int4", ({ head }) => head.claim.losses, "alike"],
      ["text", ({ head, state }) => (isForEver(head) && state.ended === 0 ? instance : null), "alike"],
      ["int8", ({ born }) => born],
    ),
  );
}

/** Rows are touched in the given order, which is the order in which others lock them. */
function inOrder(a: Head, b: Head): number {
  return a.lane - b.lane || (a.sessionId < b.sessionId ? -1 : 1);
}

function updateStates(parts: Parts, set: WorkingSet, isCounted: boolean): void {
  const { changed, removed, proven, released, lost } = set.writes;
  const rows = [...changed].filter((head) => !removed.has(head)).sort(inOrder);
  if (rows.length === 0) return;
  const states = rows.map((head) => ({
    head,
    state: stateRow(head.session, head.lane, head.answered, head.outputBlob, set.keepFor(head)),
    claim:
      (proven.has(head) ? PROVEN : 0) + (released.has(head) ? RELEASED : 0) + (lost.has(head) ? LOST : 0),
  }));
  parts.add(
    "moved",
    // mutant: versions-unchecked
    `(UPDATE state t SET version = v.next_version, status = v.status, ended = v.ended, body = v.body, checksum = v.checksum,
        ready_at = v.ready_at, overdue_at = v.overdue_at, exhausted = v.exhausted,
        due_at = CASE WHEN v.claim >= ${RELEASED} THEN v.ready_at ELSE ${dueAtSql("v.ready_at", "t")} END,
        losses = CASE WHEN v.claim % 2 = ${PROVEN} THEN 0 ELSE t.losses END + CASE WHEN v.claim >= ${LOST} THEN 1 ELSE 0 END,
        holder = CASE WHEN v.claim >= ${RELEASED} THEN NULL ELSE t.holder END,
        until = CASE WHEN v.claim >= ${RELEASED} THEN '-Infinity' ELSE t.until END,
        instance = CASE WHEN v.claim >= ${RELEASED} OR v.ended = 1 THEN NULL ELSE t.instance END
       FROM $COLUMNS AS v (lane, session_id, version, next_version, status, ended, body, checksum, ready_at, overdue_at, exhausted, claim)
      WHERE t.lane = v.lane AND t.session_id = v.session_id AND t.version = v.version AND $OK RETURNING 1)`,
    columnsOf(
      states,
      ...OF_HEAD,
      ["int8", ({ head }) => head.version],
      ["int8", ({ head }) => set.versionAfter(head)],
      ["text", ({ state }) => state.status],
      ["int4", ({ state }) => state.ended],
      ["text", ({ state }) => state.body],
      ["int8", ({ state }) => state.checksum],
      ["float8", ({ state }) => state.readyAt, "alike"],
      ["float8", ({ state }) => state.overdueAt, "alike"],
      ["text", ({ state }) => state.exhausted, "alike"],
      ["int4", ({ claim }) => claim],
    ),
  );
  if (isCounted) parts.mustTouch("moved", rows.length);
}

function insertJournal(parts: Parts, { journal, removed }: Writes): void {
  const rows = journal.filter(({ head }) => !removed.has(head));
  if (rows.length === 0) return;
  const seqOf = ({ records }: (typeof rows)[number]) => records[0]!.seq;
  insert(
    parts,
    "wrote",
    "journal",
    "lane, session_id, seq, count, committed_at, checkpoint, body, checksum",
    columnsOf(
      rows,
      ...OF_HEAD,
      ["int8", seqOf],
      ["int4", ({ records }) => records.length],
      ["float8", ({ committedAt }) => committedAt, "alike"],
      ["int4", ({ records }) => checkpointMark(records), "alike"],
      ["text", ({ body }) => body],
      [
        "int8",
        (row) =>
          journalChecksum(row.head.sessionId, seqOf(row), row.records.length, row.committedAt, row.body),
      ],
    ),
  );
}

function insertEntries(parts: Parts, set: WorkingSet): void {
  const { entries, removed } = set.writes;
  const rows = entries
    .filter(({ head }) => !removed.has(head))
    .map(({ head, entry, createdAt }) => ({
      head,
      id: entry.id,
      ...entryRow(head.sessionId, entry, createdAt, set.keepFor(head)),
    }));
  if (rows.length === 0) return;
  insert(
    parts,
    "said",
    "entry",
    "lane, session_id, seq, body, content, blob, checksum",
    columnsOf(
      rows,
      ...OF_HEAD,
      ["int8", ({ id }) => id],
      ["text", ({ body }) => body],
      ["text", ({ content }) => content],
      ["text", ({ blob }) => blob],
      ["int8", ({ checksum }) => checksum],
    ),
  );
}

function writeSignals(parts: Parts, set: WorkingSet): void {
  const { signals, consumed, seen, removed } = set.writes;
  const rows = [...signals.values()]
    .filter(({ head }) => !removed.has(head))
    .map(({ head, signal }) => ({
      head,
      signal,
      ...signalRow(head.sessionId, signal, set.keepFor(head)),
    }));
  if (rows.length > 0) {
    insert(
      parts,
      "notified",
      "signal",
      "lane, session_id, ord, signal_id, name, sent_at, payload, blob, checksum",
      columnsOf(
        rows,
        ...OF_HEAD,
        ["int8", ({ signal }) => signal.order],
        ["text", ({ signal }) => signal.signalId],
        ["text", ({ signal }) => signal.name],
        ["float8", ({ signal }) => signal.sentAt],
        ["text", ({ payload }) => payload],
        ["text", ({ blob }) => blob],
        ["int8", ({ checksum }) => checksum],
      ),
    );
  }
  const marks = [...seen.values()].filter(({ head }) => !removed.has(head));
  if (marks.length > 0) {
    insert(
      parts,
      "marked",
      "seen",
      "lane, session_id, mark",
      columnsOf(marks, ...OF_HEAD, ["text", (row) => row.mark]),
    );
  }
  const gone = consumed.filter(({ head }) => !removed.has(head));
  if (gone.length > 0) {
    parts.add(
      "took",
      `(DELETE FROM signal g USING $COLUMNS AS v (lane, session_id, ord)
         WHERE g.lane = v.lane AND g.session_id = v.session_id AND g.ord = v.ord AND $OK)`,
      columnsOf(gone, ...OF_HEAD, ["int8", ({ order }) => order]),
    );
  }
}

function writeHolds(parts: Parts, { holds, removed }: Writes): void {
  const all = [...holds.values()].filter(({ head }) => !removed.has(head));
  const held = all.flatMap(({ head, task, amount }) =>
    amount === undefined ? [] : [{ head, task, amount: JSON.stringify(amount) }],
  );
  const settled = all.filter(({ amount }) => amount === undefined);
  if (held.length > 0) {
    insert(
      parts,
      "reserved",
      "hold",
      "lane, session_id, task, amount, checksum",
      columnsOf(
        held,
        ...OF_HEAD,
        ["int8", ({ task }) => task],
        ["text", ({ amount }) => amount],
        ["int8", ({ head, task, amount }) => holdChecksum(head.sessionId, task, amount)],
      ),
      ` ON CONFLICT (lane, session_id, task) DO UPDATE SET amount = excluded.amount, checksum = excluded.checksum`,
    );
  }
  if (settled.length > 0) {
    parts.add(
      "settled",
      `(DELETE FROM hold h USING $COLUMNS AS v (lane, session_id, task)
         WHERE h.lane = v.lane AND h.session_id = v.session_id AND h.task = v.task AND $OK)`,
      columnsOf(settled, ...OF_HEAD, ["int8", ({ task }) => task]),
    );
  }
}

function writeItems(parts: Parts, { items }: Writes, { items: known }: WriteOptions): void {
  const existed = new Set(
    known.filter(({ item }) => item !== undefined).map(({ kind, key }) => `${kind}\u0000${key}`),
  );
  const all = [...items.values()].map((row) => ({
    ...row,
    existed: existed.has(`${row.kind}\u0000${row.key}`),
  }));
  const keys = [
    ["text", ({ kind }: { readonly kind: string }) => kind],
    ["text", ({ key }: { readonly key: string }) => key],
  ] as const;
  const put = all.flatMap(({ item, ...row }) => (item === undefined ? [] : [{ ...row, item }]));
  const columnsFor = (rows: typeof put): Column[] =>
    columnsOf(
      rows,
      ...keys,
      ["int8", ({ item }) => item.version],
      ["float8", ({ item }) => item.nextAt, "alike"],
      ["text", ({ item }) => item.body],
      ["int8", ({ kind, key, item }) => itemChecksum(kind, key, item)],
    );
  const fresh = put.filter((row) => !row.existed);
  if (fresh.length > 0)
    insert(parts, "laid", "item", "kind, key, version, next_at, body, checksum", columnsFor(fresh));
  const replaced = put.filter((row) => row.existed);
  if (replaced.length > 0) {
    parts.add(
      "relaid",
      `(UPDATE item i SET version = v.version, next_at = v.next_at, body = v.body, checksum = v.checksum
         FROM $COLUMNS AS v (kind, key, version, next_at, body, checksum)
        WHERE i.kind = v.kind AND i.key = v.key AND $OK)`,
      columnsFor(replaced),
    );
  }
  const dropped = all.filter((row) => row.existed && row.item === undefined);
  if (dropped.length > 0) {
    parts.add(
      "dropped",
      `(DELETE FROM item i USING $COLUMNS AS v (kind, key) WHERE i.kind = v.kind AND i.key = v.key AND $OK)`,
      columnsOf(dropped, ...keys),
    );
  }
}

function removeSessions(parts: Parts, { removed }: Writes): void {
  if (removed.size === 0) return;
  const rows = [...removed].map((head) => ({ head }));
  for (const table of SESSION_TABLES) {
    parts.add(
      `no_${table}`,
      `(DELETE FROM ${table} x USING $COLUMNS AS v (lane, session_id)
         WHERE x.lane = v.lane AND x.session_id = v.session_id AND $OK)`,
      columnsOf(rows, ...OF_HEAD),
    );
  }
}

function appendAudit(parts: Parts, { audit, auditEnds }: Writes): void {
  if (auditEnds.length > 0)
    parts.add(
      "trimmed",
      "(DELETE FROM audit a USING $COLUMNS AS v (seq) WHERE a.seq <= v.seq AND $OK)",
      columnsOf([Math.max(...auditEnds)], ["int8", (seq) => seq]),
    );
  if (audit.length === 0) return;
  const rows = audit.map((row) => ({ seq: row.seq, body: JSON.stringify(row) }));
  insert(
    parts,
    "noted",
    "audit",
    "seq, body, checksum",
    columnsOf(
      rows,
      ["int8", ({ seq }) => seq],
      ["text", ({ body }) => body],
      ["int8", ({ seq, body }) => auditChecksum(seq, body)],
    ),
  );
}

function insertTexts(parts: Parts, { texts, removed }: Writes): void {
  const rows = [...texts.values()].filter(({ head }) => !removed.has(head));
  if (rows.length === 0) return;
  insert(
    parts,
    "kept_texts",
    "blob",
    "lane, session_id, address, content",
    columnsOf(rows, ...OF_HEAD, ["text", ({ address }) => address], ["text", ({ text }) => text]),
    " ON CONFLICT DO NOTHING",
  );
}
