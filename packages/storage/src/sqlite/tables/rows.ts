// Rows of sessions, states, the journal and signals in SQLite as values of the port, and back.
//
//   sqlite-rows-1. A row is checked against its checksum before anything is made of it. A mismatch is a
//       `CorruptRecordError` that names file, table and row; no default stands in for it.
//   - An absent value is NULL, and NULL comes back as absent.
//   - `state` may be behind the journal, the entries and the pending signals of its session (see
//     `migrations.ts`); reading brings the row up to them. It is never ahead: if it counts more records or
//     entries than there are, rows were lost, and that is a `CorruptRecordError`.

import {
  type CancelRequest,
  decodeRecords,
  dueAt,
  type Hold,
  type JournalRecord,
  NO_CLAIM,
  overdueAt,
  type RecordedError,
  type Session,
  type SessionStatus,
  type StoredSignal,
} from "@holdfast/core";
import { readAccount } from "./accounts.ts";
import type { Blobs } from "./blobs.ts";
import { journalChecksum, rowChecksum } from "./checksum.ts";
import type { SqlRow, SqlValue } from "../file/driver.ts";
import { ENTRY_COLUMNS } from "./entry-rows.ts";
import { assertChecksum, corruptRow, list, marks, valuesOf, type RowPlace } from "./row-checks.ts";

// ---- session and state ------------------------------------------------------------------------------------

const SESSION_COLUMNS = [
  "session",
  "session_id",
  "agent",
  "input",
  "input_blob",
  "seed",
  "flags",
  "format",
  "parent",
  "origin",
  "created_at",
];
export const STATE_COLUMNS = [
  "session",
  "status",
  "pause_reason",
  "waits",
  "wake_at",
  "due_at",
  "cancel",
  "overdue_at",
  "checkpoint_seq",
  "next_seq",
  "entry_count",
  "turn",
  "inbox",
  "output",
  "output_blob",
  "error",
  "rest",
  "updated_at",
  "ended_at",
];

export const INSERT_SESSION = `INSERT INTO session (${list(SESSION_COLUMNS)}, checksum) VALUES (${marks(SESSION_COLUMNS)}, ?)`;
const TAIL_ENTRY = ENTRY_COLUMNS.map((column) => `tail_entry_${column}`);

/**
 * A session with the ends of its journal, entries and signals. Completed by a WHERE clause on `s`.
 *
 * The whole newest entry is read only where it does not agree with the state, so that its checksum decides
 * which one is right.
 */
export const SELECT_SESSION = `
  SELECT ${list(SESSION_COLUMNS, "s.")}, s.checksum AS session_checksum,
         ${list(STATE_COLUMNS.slice(1), "t.")}, t.checksum AS state_checksum,
         a.limits, a.spent, a.reserved, a.low, a.checksum AS account_checksum,
         EXISTS (SELECT 1 FROM session WHERE parent = s.session_id) AS has_children,
         j.seq AS tail_seq, j.count AS tail_count, j.committed_at AS tail_at, j.body AS tail_body, j.checksum AS tail_checksum,
         (SELECT idx FROM entry WHERE session = s.session ORDER BY seq DESC LIMIT 1) AS tail_entry,
         ${ENTRY_COLUMNS.map((column, i) => `e.${column} AS ${TAIL_ENTRY[i]!}`).join(", ")}, e.checksum AS tail_entry_checksum,
         g.ord AS tail_ord, g.sent_at AS tail_sent_at
    FROM session s
    LEFT JOIN state t ON t.session = s.session
    LEFT JOIN account a ON a.session = s.session
    LEFT JOIN journal j ON j.rowid = (SELECT rowid FROM journal WHERE session = s.session ORDER BY seq DESC LIMIT 1)
    LEFT JOIN entry e ON e.session = s.session AND e.idx + 1 <> t.entry_count
                     AND e.seq = (SELECT max(seq) FROM entry WHERE session = s.session)
    LEFT JOIN signal g ON g.session = s.session AND g.ord = (SELECT max(ord) FROM signal WHERE session = s.session)`;

export function sessionValues(number: number, session: Session, blobs: Blobs): SqlValue[] {
  const { sessionId, agent, input, seed, flags, format, parent, createdAt } = session;
  const values = [
    number,
    sessionId,
    JSON.stringify(agent),
    ...blobs.toColumns(input, number),
    seed,
    flags,
    format,
    parent?.sessionId ?? null,
    originOf(session),
    createdAt,
  ];
  values.push(rowChecksum(values));
  return values;
}

/** Fields that only some sessions are created with, and that never change. */
function originOf({
  parent,
  detachedFrom,
  depth,
  shared,
  environment,
  deadlineAt,
  fork,
  payers,
  placement,
  home,
}: Session): string | null {
  return objectColumn({
    parent,
    detachedFrom,
    depth: depth === 0 ? undefined : depth,
    shared,
    environment,
    deadlineAt,
    fork,
    payers: payers.length === 0 ? undefined : payers,
    placement,
    home,
  } satisfies Partial<Record<keyof Session, unknown>>);
}

/** Fields that only some sessions acquire later, and that may change. */
function restOf({
  title,
  exhausted,
  quota,
  cost,
  children,
  handedOffTo,
  persistence,
  progress,
  resumedFrom,
  move,
}: Session): string | null {
  return objectColumn({
    title,
    exhausted,
    quota,
    cost,
    children: children === 0 ? undefined : children,
    handedOffTo,
    persistence,
    progress,
    resumedFrom,
    move,
  } satisfies Partial<Record<keyof Session, unknown>>);
}

/** Most sessions have none of these parts, and an object without any is not worth encoding. */
function objectColumn(parts: Readonly<Record<string, unknown>>): string | null {
  for (const name in parts) if (parts[name] !== undefined) return JSON.stringify(parts);
  return null;
}

function readParts(column: SqlValue | undefined): Partial<Session> {
  return typeof column === "string" ? (JSON.parse(column) as Partial<Session>) : {};
}

export function stateValues(number: number, session: Session, blobs: Blobs): SqlValue[] {
  const [status, pauseReason, wakeAt, due, cancel, overdue, error, endedAt] = steadyValues(session);
  const { waits } = session;
  const values = [
    number,
    status,
    pauseReason,
    waits.length === 0 ? null : JSON.stringify(waits),
    wakeAt,
    due,
    cancel,
    overdue,
    session.checkpointSeq ?? null,
    session.nextSeq,
    session.entryCount,
    session.turn,
    session.inbox,
    ...blobs.toColumns(session.output, number),
    error,
    restOf(session),
    session.updatedAt,
    endedAt,
  ];
  values.push(rowChecksum(values));
  return values;
}

/** The values that most changes of a session leave as they are, without its output. */
export function steadyValues(
  session: Session,
): readonly [
  status: SqlValue,
  pauseReason: SqlValue,
  wakeAt: SqlValue,
  due: SqlValue,
  cancel: SqlValue,
  overdue: SqlValue,
  error: SqlValue,
  endedAt: SqlValue,
] {
  const { status, pauseReason, wakeAt, cancel, error, endedAt } = session;
  const due = dueAt(session, NO_CLAIM, false);
  const overdue = overdueAt(session);
  return [
    status,
    pauseReason ?? null,
    wakeAt ?? null,
    due === Infinity ? null : Math.max(due, 0),
    cancel === undefined ? null : JSON.stringify(cancel),
    overdue === Infinity ? null : overdue,
    error === undefined ? null : JSON.stringify(error),
    endedAt ?? null,
  ];
}

export interface SessionRow {
  /** Its number in this file. */
  readonly number: number;
  readonly session: Session;
  /** `inbox` without the pending signals that came after the row's last write. */
  readonly writtenInbox: number;
  /** Whether any session names it as its parent. */
  readonly hasChildren: boolean;
  /** Holds that its account's row keeps (accounts-1). */
  readonly accountHolds: readonly Hold[];
}

/** The session of a `SELECT_SESSION` row. */
export function readSession(row: SqlRow, { path, blobs }: RowPlace): SessionRow {
  const number = row["session"] as number;
  const key = `${String(row["session_id"])} (${number})`;
  assertChecksum(path, "session", key, row["session_checksum"], rowChecksum(valuesOf(row, SESSION_COLUMNS)));
  assertChecksum(path, "state", key, row["state_checksum"], rowChecksum(valuesOf(row, STATE_COLUMNS)));
  const tail = readTail(row, number, path);

  const waits = row["waits"];
  const { account, holds = [] } = row["limits"] === null ? {} : readAccount(row, path);
  const output = blobs.fromColumns(row["output"], row["output_blob"]);
  const session: Session = {
    depth: 0,
    children: 0,
    payers: [],
    ...readParts(row["origin"]),
    ...readParts(row["rest"]),
    sessionId: row["session_id"] as string,
    agent: JSON.parse(row["agent"] as string) as Session["agent"],
    input: blobs.fromColumns(row["input"], row["input_blob"]),
    status: row["status"] as SessionStatus,
    ...(row["pause_reason"] === null
      ? {}
      : { pauseReason: row["pause_reason"] as NonNullable<Session["pauseReason"]> }),
    waits: waits === null ? [] : (JSON.parse(waits as string) as Session["waits"]),
    ...(row["wake_at"] === null ? {} : { wakeAt: row["wake_at"] as number }),
    nextSeq: tail.nextSeq,
    ...(row["checkpoint_seq"] === null ? {} : { checkpointSeq: row["checkpoint_seq"] as number }),
    entryCount: tail.entryCount,
    turn: row["turn"] as number,
    inbox: Math.max(row["inbox"] as number, tail.ord),
    seed: row["seed"] as number,
    flags: row["flags"] as number,
    format: row["format"] as number,
    ...(row["cancel"] === null ? {} : { cancel: JSON.parse(row["cancel"] as string) as CancelRequest }),
    ...(output === undefined ? {} : { output }),
    ...(row["error"] === null ? {} : { error: JSON.parse(row["error"] as string) as RecordedError }),
    ...(account === undefined ? {} : { account }),
    createdAt: row["created_at"] as number,
    updatedAt: Math.max(row["updated_at"] as number, tail.at),
    ...(row["ended_at"] === null ? {} : { endedAt: row["ended_at"] as number }),
  };
  if (session.nextSeq < (row["next_seq"] as number)) {
    throw corruptRow(
      path,
      "journal",
      key,
      "the end of the journal is missing",
      `${session.nextSeq} records of ${String(row["next_seq"])}`,
    );
  }
  if (session.entryCount < (row["entry_count"] as number)) {
    throw corruptRow(
      path,
      "entry",
      key,
      "the last entries are missing",
      `${session.entryCount} of ${String(row["entry_count"])}`,
    );
  }
  return {
    number,
    session,
    writtenInbox: row["inbox"] as number,
    hasChildren: row["has_children"] === 1,
    accountHolds: holds,
  };
}

interface Tail {
  readonly nextSeq: number;
  readonly entryCount: number;
  readonly ord: number;
  /** When the last of them was written. */
  readonly at: number;
}

function readTail(row: SqlRow, number: number, path: string): Tail {
  const seq = row["tail_seq"] as number | null;
  const count = row["tail_count"] as number;
  const at = row["tail_at"] as number;
  if (seq !== null) {
    const computed = journalChecksum(number, seq, count, at, row["tail_body"] as string);
    assertChecksum(path, "journal", `${number}/${seq}`, row["tail_checksum"], computed);
  }
  const entry = row["tail_entry"] as number | null;
  if (row["tail_entry_checksum"] !== null) {
    const key = `${number}/${String(row["tail_entry_seq"])}`;
    assertChecksum(path, "entry", key, row["tail_entry_checksum"], rowChecksum(valuesOf(row, TAIL_ENTRY)));
  }
  return {
    nextSeq: seq === null ? 0 : seq + count,
    entryCount: entry === null ? 0 : entry + 1,
    ord: (row["tail_ord"] as number | null) ?? 0,
    at: Math.max(at ?? 0, (row["tail_sent_at"] as number | null) ?? 0),
  };
}

// ---- journal ----------------------------------------------------------------------------------------------

export const INSERT_JOURNAL =
  "INSERT INTO journal (session, seq, count, committed_at, body, checkpoint, checksum) VALUES (?, ?, ?, ?, ?, ?, ?)";

export const JOURNAL_COLUMNS = "session, seq, count, committed_at, body, checkpoint, checksum";

/**
 * `checkpoint` of a row: whether it holds one. The checksum leaves the mark out, because it follows from the
 * body.
 */
export function checkpointMark(records: readonly JournalRecord[]): 1 | null {
  return records.some(({ type }) => type === "checkpoint") ? 1 : null;
}

/** The body of a journal row that is what was written, and its place for errors. */
export function assertJournal(
  row: SqlRow,
  path: string,
): { readonly body: string; readonly key: string; readonly where: string } {
  const [number, seq, count] = [row["session"] as number, row["seq"] as number, row["count"] as number];
  const key = `${number}/${seq}`;
  const body = row["body"] as string;
  const computed = journalChecksum(number, seq, count, row["committed_at"] as number, body);
  assertChecksum(path, "journal", key, row["checksum"], computed);
  return { body, key, where: `${path}, table journal, row ${key}` };
}

/** The records of one journal row. */
export function readJournal(row: SqlRow, { path, blobs }: RowPlace): JournalRecord[] {
  const { body, key, where } = assertJournal(row, path);
  const [seq, count] = [row["seq"], row["count"]];
  const records = decodeRecords(body, blobs, where);
  if (records.length !== count || records[0]?.seq !== seq) {
    throw corruptRow(
      path,
      "journal",
      key,
      "the row's records do not match its count and position",
      `${records.length} from ${String(records[0]?.seq)}`,
    );
  }
  if (checkpointMark(records) !== row["checkpoint"])
    throw corruptRow(path, "journal", key, "the row's checkpoint mark does not match its records");
  return records;
}

// ---- signals ----------------------------------------------------------------------------------------------

const SIGNAL_COLUMNS = ["session", "ord", "signal_id", "name", "payload", "blob", "sent_at"];
export const INSERT_SIGNAL = `INSERT INTO signal (${list(SIGNAL_COLUMNS)}, checksum) VALUES (${marks(SIGNAL_COLUMNS)}, ?)`;
export const SELECT_SIGNAL = `SELECT ${list(SIGNAL_COLUMNS)}, checksum FROM signal`;

export function signalValues(number: number, signal: StoredSignal, blobs: Blobs): SqlValue[] {
  const { signalId, name, payload, order, sentAt } = signal;
  const values = [number, order, signalId, name, ...blobs.toColumns(payload, number), sentAt];
  values.push(rowChecksum(values));
  return values;
}

export function readSignal(row: SqlRow, { path, blobs }: RowPlace): StoredSignal {
  const key = `${String(row["session"])}/${String(row["ord"])}`;
  assertChecksum(path, "signal", key, row["checksum"], rowChecksum(valuesOf(row, SIGNAL_COLUMNS)));
  return {
    signalId: row["signal_id"] as string,
    name: row["name"] as string,
    payload: blobs.fromColumns(row["payload"], row["blob"]),
    order: row["ord"] as number,
    sentAt: row["sent_at"] as number,
  };
}
