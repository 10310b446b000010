// Rows of PostgreSQL as values of the port, and back. The only file where snake_case meets camelCase.
//
//   postgres-rows-1. A row is checked against its checksum before anything is made of it. A mismatch is a
//       `CorruptRecordError` that names database, table and row; no default stands in for it.
//   - Fields that no statement looks at are JSON: `made` if they never change, and `body` otherwise.
//   - The reader of a row also reads the large texts that the row refers to (`Texts`).

import { hash } from "node:crypto";
import { crc32 } from "node:zlib";
import {
  type Amount,
  type Claim,
  CorruptRecordError,
  decodeRecords,
  dedupMark,
  dueAt,
  type Entry,
  FORMAT_LIMITS,
  type Hold,
  isEnded,
  type JournalRecord,
  type JsonText,
  type NewEntry,
  NO_CLAIM,
  overdueAt,
  readDedupMark,
  type SeenSignals,
  type Session,
  type StoredSignal,
} from "@holdfast/core";
import type { Row } from "../database/database.ts";
import { livesSince } from "./instance.ts";

// ---- checks ------------------------------------------------------------------------------------------------------

/** The key is part of the sum, so that an intact row in the wrong place is found as well. */
export function checksum(parts: readonly (string | number | null | undefined)[]): number {
  return crc32(parts.join("\u001f"));
}

export function corruptRow(
  at: string,
  table: string,
  row: string,
  message: string,
  got?: string,
): CorruptRecordError {
  return new CorruptRecordError(`${at}, table ${table}, row ${row}`, message, {
    ...(got === undefined ? {} : { got }),
    fix: "restore the database from a backup",
  });
}

export function assertChecksum(
  at: string,
  table: string,
  key: string,
  stored: unknown,
  computed: number,
): void {
  if (stored === computed) return;
  throw corruptRow(
    at,
    table,
    key,
    "the row is not what was written",
    `checksum ${String(stored)} for content with ${computed}`,
  );
}

// ---- large texts -------------------------------------------------------------------------------------------------

/** Called with each large text of a session, and the address under which it is stored. */
export type KeepText = (address: string, text: JsonText) => void;

/** The two columns of a text: the text itself, or the address of a large one. */
function splitText(text: JsonText | undefined, keep: KeepText): [text: string | null, blob: string | null] {
  if (text === undefined) return [null, null];
  return text.length < FORMAT_LIMITS.blobChars ? [text, null] : [null, keepText(text, keep)];
}

export function keepText(text: JsonText, keep: KeepText): string {
  const address = sha256(text);
  keep(address, text);
  return address;
}

export function sha256(text: string): string {
  return hash("sha256", text, "base64url");
}

/** Large texts that were read, by address. `missing` has the requested ones that were not. */
export class Texts {
  readonly #texts = new Map<string, string>();
  readonly missing = new Set<string>();
  readonly #where: string;

  constructor(where: string) {
    this.#where = where;
  }

  /** @throws CorruptRecordError when one of the missing was not found, or is not what was stored. */
  supply(rows: readonly Row[]): void {
    for (const row of rows) this.#texts.set(row["address"] as string, row["content"] as string);
    for (const address of this.missing) {
      const text = this.#texts.get(address);
      const where = `${this.#where}, table blob, row ${address}`;
      if (text === undefined) throw new CorruptRecordError(where, "a large payload is missing");
      if (sha256(text) !== address)
        throw new CorruptRecordError(where, "a large payload is not what was stored", {
          expected: `content with SHA-256 ${address}`,
        });
    }
    this.missing.clear();
  }

  get(address: string): JsonText {
    const text = this.#texts.get(address);
    if (text !== undefined) return text;
    this.missing.add(address);
    return "null";
  }

  join(text: unknown, blob: unknown): JsonText | undefined {
    if (typeof blob === "string") return this.get(blob);
    return typeof text === "string" ? text : undefined;
  }
}

// ---- sessions ----------------------------------------------------------------------------------------------------

/** The fields that never change. */
type Made = Pick<
  Session,
  | "agent"
  | "seed"
  | "flags"
  | "format"
  | "parent"
  | "detachedFrom"
  | "depth"
  | "shared"
  | "environment"
  | "placement"
  | "home"
  | "deadlineAt"
  | "fork"
  | "payers"
  | "createdAt"
> & { readonly input?: JsonText; readonly inputBlob?: string };

export interface MadeRow {
  readonly made: string;
  readonly checksum: number;
}

export function madeRow(session: Session, lane: number, born: number, keep: KeepText): MadeRow {
  const [input, inputBlob] = splitText(session.input, keep);
  const made = JSON.stringify({
    agent: session.agent,
    seed: session.seed,
    flags: session.flags,
    format: session.format,
    parent: session.parent,
    detachedFrom: session.detachedFrom,
    depth: session.depth,
    shared: session.shared,
    environment: session.environment,
    placement: session.placement,
    home: session.home,
    deadlineAt: session.deadlineAt,
    fork: session.fork,
    payers: session.payers,
    createdAt: session.createdAt,
    ...(input === null ? {} : { input }),
    ...(inputBlob === null ? {} : { inputBlob }),
  } satisfies { [key in keyof Made]: Made[key] | undefined });
  return { made, checksum: checksum([session.sessionId, lane, born, made]) };
}

/** All other fields, which may change, with the address of an output that is stored apart. */
type Body = Omit<Session, "sessionId" | keyof Made> & { readonly outputBlob?: string };

/** A row of `state`, without its version and its claim. */
export interface StateRow {
  readonly status: string;
  /** 1 if the session has ended, otherwise 0. */
  readonly ended: number;
  readonly body: string;
  readonly checksum: number;
  readonly readyAt: number | null;
  readonly overdueAt: number | null;
  readonly exhausted: string | null;
}

/** @param outputBlob the address of an output that was not read. */
export function stateRow(
  session: Session,
  lane: number,
  answered: boolean,
  outputBlob: string | undefined,
  keep: KeepText,
): StateRow {
  const [output, newBlob] = splitText(session.output, keep);
  const blob = newBlob ?? outputBlob;
  const body = JSON.stringify({
    title: session.title,
    status: session.status,
    pauseReason: session.pauseReason,
    exhausted: session.exhausted,
    quota: session.quota,
    waits: session.waits,
    wakeAt: session.wakeAt,
    nextSeq: session.nextSeq,
    checkpointSeq: session.checkpointSeq,
    entryCount: session.entryCount,
    turn: session.turn,
    inbox: session.inbox,
    cancel: session.cancel,
    ...(output === null ? {} : { output }),
    ...(blob === undefined ? {} : { outputBlob: blob }),
    error: session.error,
    children: session.children,
    handedOffTo: session.handedOffTo,
    persistence: session.persistence,
    account: session.account,
    cost: session.cost,
    progress: session.progress,
    resumedFrom: session.resumedFrom,
    move: session.move,
    updatedAt: session.updatedAt,
    endedAt: session.endedAt,
  } satisfies { [key in keyof Body]: Body[key] | undefined });
  const overdue = overdueAt(session);
  const { status, exhausted } = session;
  return {
    status,
    ended: isEnded(status) ? 1 : 0,
    body,
    checksum: checksum([session.sessionId, lane, status, body]),
    readyAt: orNull(dueAt(session, NO_CLAIM, answered)),
    overdueAt: orNull(overdue),
    exhausted: status === "paused" ? (exhausted?.payer ?? null) : null,
  };
}

/** `Infinity` is never, and needs no place in an index. */
function orNull(at: number): number | null {
  return at === Infinity ? null : at;
}

/** Columns of a session, of `session s` and `state t`. */
export const SESSION_COLUMNS = `s.session_id, s.lane, s.born, s.made, s.checksum AS made_checksum,
  t.version, t.status, t.body, t.checksum AS state_checksum`;

export const FROM_SESSION = "FROM session s JOIN state t ON t.lane = s.lane AND t.session_id = s.session_id";

/** The columns of a claim. `claim_lives` is false if the claim has no expiry and its instance is gone. */
export const CLAIM_COLUMNS = `t.token, t.holder, t.until, t.losses, t.instance, (t.instance IS NULL OR EXISTS (
    SELECT 1 FROM instance i WHERE i.instance = t.instance AND ${livesSince("i.said_at")})) AS claim_lives`;

export interface SessionRow {
  readonly lane: number;
  readonly version: number;
  readonly session: Session;
  /** The address of an output that is stored apart. The session has that output only if `texts` were read. */
  readonly outputBlob: string | undefined;
}

export function readSession(row: Row, at: string, texts: Texts): SessionRow {
  const sessionId = row["session_id"] as string;
  const lane = row["lane"] as number;
  const made = row["made"] as string;
  assertChecksum(
    at,
    "session",
    sessionId,
    row["made_checksum"],
    checksum([sessionId, lane, row["born"] as number, made]),
  );
  const { output, outputBlob, ...state } = readState(row, at);
  const { input, inputBlob, ...origin } = JSON.parse(made) as Made;
  const outputText = texts.join(output, outputBlob);
  return {
    lane,
    version: row["version"] as number,
    session: {
      sessionId,
      ...origin,
      ...state,
      input: texts.join(input, inputBlob),
      ...(outputText === undefined ? {} : { output: outputText }),
    },
    outputBlob,
  };
}

/** The fields of a session that change. */
export function readState(row: Row, at: string): Body {
  const [sessionId, lane, body] = [row["session_id"] as string, row["lane"] as number, row["body"] as string];
  const computed = checksum([sessionId, lane, row["status"] as string, body]);
  assertChecksum(at, "state", sessionId, row["state_checksum"], computed);
  return JSON.parse(body) as Body;
}

/** @param instance the instance that reads; its own claims count as alive. */
export function readClaim(row: Row, instance: string): Claim {
  const [token, losses] = [row["token"] as number, row["losses"] as number];
  const owner = row["holder"] as string | null;
  if (owner === null) return { token, until: -Infinity, losses };
  const lives = row["claim_lives"] === true || row["instance"] === instance;
  return { token, owner, until: lives ? (row["until"] as number) : -Infinity, losses };
}

// ---- journal -----------------------------------------------------------------------------------------------------

export const JOURNAL_COLUMNS = "session_id, seq, count, committed_at, checkpoint, body, checksum";

export function journalChecksum(
  sessionId: string,
  seq: number,
  count: number,
  committedAt: number,
  body: string,
): number {
  return crc32(body, crc32(`${sessionId}\u001f${seq}\u001f${count}\u001f${committedAt}`));
}

/** Whether a row holds a checkpoint. The checksum leaves the mark out, because it follows from the body. */
export function checkpointMark(records: readonly JournalRecord[]): 1 | null {
  return records.some(({ type }) => type === "checkpoint") ? 1 : null;
}

/** The records of one journal row. */
export function readJournal(row: Row, at: string, texts: Texts): JournalRecord[] {
  const sessionId = row["session_id"] as string;
  const [seq, count] = [row["seq"] as number, row["count"] as number];
  const body = row["body"] as string;
  const key = `${sessionId}/${seq}`;
  const computed = journalChecksum(sessionId, seq, count, row["committed_at"] as number, body);
  assertChecksum(at, "journal", key, row["checksum"], computed);
  const records = decodeRecords(body, texts, `${at}, table journal, row ${key}`);
  if (records.length !== count || records[0]?.seq !== seq) {
    throw corruptRow(
      at,
      "journal",
      key,
      "the row's records do not match its count and position",
      `${records.length} from ${String(records[0]?.seq)}`,
    );
  }
  if (checkpointMark(records) !== row["checkpoint"])
    throw corruptRow(at, "journal", key, "the row's checkpoint mark does not match its records");
  return records;
}

// ---- entries -----------------------------------------------------------------------------------------------------

export const ENTRY_COLUMNS = "session_id, seq, body, content, blob, checksum";

type EntryBody = Omit<Entry, "id" | "content">;

export interface EntryRow {
  readonly body: string;
  readonly content: string | null;
  readonly blob: string | null;
  readonly checksum: number;
}

export function entryRow(sessionId: string, entry: NewEntry, createdAt: number, keep: KeepText): EntryRow {
  const { id, index, parent, role, turn } = entry;
  const body = JSON.stringify({
    index,
    ...(parent === undefined ? {} : { parent }),
    role,
    turn,
    createdAt,
  } satisfies EntryBody);
  const [content, blob] = splitText(entry.content, keep);
  return { body, content, blob, checksum: checksum([sessionId, id, body, content, blob]) };
}

export function readEntry(row: Row, at: string, texts: Texts): Entry {
  const [sessionId, id, body] = [row["session_id"] as string, row["seq"] as number, row["body"] as string];
  const [content, blob] = [row["content"] as string | null, row["blob"] as string | null];
  const key = `${sessionId}/${id}`;
  assertChecksum(at, "entry", key, row["checksum"], checksum([sessionId, id, body, content, blob]));
  const text = texts.join(content, blob);
  if (text === undefined) throw corruptRow(at, "entry", key, "the entry has no content");
  return { id, ...(JSON.parse(body) as EntryBody), content: text };
}

// ---- signals and holds
// -------------------------------------------------------------------------------------------

export const SIGNAL_COLUMNS = "session_id, ord, signal_id, name, sent_at, payload, blob, checksum";

export interface SignalRow {
  readonly payload: string | null;
  readonly blob: string | null;
  readonly checksum: number;
}

export function signalRow(sessionId: string, signal: StoredSignal, keep: KeepText): SignalRow {
  const [payload, blob] = splitText(signal.payload, keep);
  const { order, signalId, name, sentAt } = signal;
  return { payload, blob, checksum: checksum([sessionId, order, signalId, name, sentAt, payload, blob]) };
}

export function readSignal(row: Row, at: string, texts: Texts): StoredSignal {
  const [sessionId, order] = [row["session_id"] as string, row["ord"] as number];
  const [signalId, name, sentAt] = [
    row["signal_id"] as string,
    row["name"] as string,
    row["sent_at"] as number,
  ];
  const [payload, blob] = [row["payload"] as string | null, row["blob"] as string | null];
  const computed = checksum([sessionId, order, signalId, name, sentAt, payload, blob]);
  assertChecksum(at, "signal", `${sessionId}/${order}`, row["checksum"], computed);
  return { signalId, name, payload: texts.join(payload, blob), order, sentAt };
}

export function holdChecksum(sessionId: string, task: number, amount: string): number {
  return checksum([sessionId, task, amount]);
}

export function readHold(sessionId: string, task: number, amount: string, sum: number, at: string): Hold {
  assertChecksum(at, "hold", `${sessionId}/${task}`, sum, holdChecksum(sessionId, task, amount));
  return { task, amount: JSON.parse(amount) as Amount };
}

/** The rows of `seen` for ids and for dedup keys, which count for signals of one name. */
export function marksOf({ ids, dedupKeys }: SeenSignals): string[] {
  return [
    ...ids.map((id) => `i:${id}`),
    ...dedupKeys.map(([name, dedupKey]) => `k:${dedupMark(name, dedupKey)}`),
  ];
}

export function readMarks(marks: readonly string[]): SeenSignals {
  return {
    ids: marks.filter((mark) => mark.startsWith("i:")).map((mark) => mark.slice(2)),
    dedupKeys: marks.filter((mark) => mark.startsWith("k:")).map((mark) => readDedupMark(mark.slice(2))),
  };
}
