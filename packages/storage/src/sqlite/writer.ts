// One change after another, inside a transaction that its caller began: look up, ask the rules, write.
//
//   W1. All that can be refused is refused before the first write of its change, so that a refusal needs no savepoint.
//   W2. A step that changes neither status nor waits is one INSERT. The session's row is written when a patch, a checkpoint
//       or the inbox says so.
//   W3. Heads are changed here at once, so that later changes of the group see earlier ones (ST5). Which were touched, and
//       the claims they had, is kept in `touched`: after a failed transaction all of that is forgotten.
//   W4. Text that SQLite or the journal's lines would change without a word is refused: lone surrogates outside of JSON
//       escapes, and line breaks in recorded JSON.

import {
  encodeRecords,
  FORMAT_LIMITS,
  invariant,
  isEnded,
  type Arrival,
  type Change,
  type ChangeResult,
  type CommitBatch,
  type CreateSession,
  type JournalRecord,
  type JsonText,
  type RequestCancel,
  type SendSignal,
  type Session,
} from "@holdfast/core";
import {
  applyBatch,
  createSession,
  decideCancel,
  decideRelease,
  decideSignal,
  endOverdue,
  firstBatch,
  isAnsweredBy,
  NO_CLAIM,
  refuseBatch,
  type BatchLookups,
  type Claim,
} from "@holdfast/core/internal";
import type { Blobs } from "./blobs.ts";
import { journalChecksum } from "./checksum.ts";
import type { SqlDriver, SqlStatement } from "./driver.ts";
import { newHead, type Head, type Heads } from "./heads.ts";
import type { Reads } from "./reads.ts";
import {
  entryValues,
  INSERT_ENTRY,
  INSERT_JOURNAL,
  INSERT_SESSION,
  INSERT_SIGNAL,
  INSERT_STATE,
  sessionValues,
  signalValues,
  stateValues,
  UPDATE_STATE,
} from "./rows.ts";
import type { Tokens } from "./tokens.ts";

export class Writer {
  /** What this transaction changed, and the claims as they were before it (W3). */
  readonly touched = new Map<Head, Claim>();
  /** What listeners hear of when it is committed. */
  readonly arrived: Arrival[] = [];

  readonly #heads: Heads;
  readonly #reads: Reads;
  readonly #blobs: Blobs;
  readonly #tokens: Tokens;
  #nextNumber: number;

  readonly #insertSession: SqlStatement;
  readonly #insertState: SqlStatement;
  readonly #updateState: SqlStatement;
  readonly #insertJournal: SqlStatement;
  readonly #insertEntry: SqlStatement;
  readonly #insertSignal: SqlStatement;
  readonly #deleteSignal: SqlStatement;
  readonly #deleteSignals: SqlStatement;
  readonly #insertSeen: SqlStatement;
  readonly #selectSeen: SqlStatement;

  constructor(driver: SqlDriver, parts: { heads: Heads; reads: Reads; blobs: Blobs; tokens: Tokens }) {
    this.#heads = parts.heads;
    this.#reads = parts.reads;
    this.#blobs = parts.blobs;
    this.#tokens = parts.tokens;
    this.#nextNumber = Number(driver.value("SELECT coalesce(max(session), 0) + 1 FROM session"));
    this.#insertSession = driver.prepare(INSERT_SESSION);
    this.#insertState = driver.prepare(INSERT_STATE);
    this.#updateState = driver.prepare(UPDATE_STATE);
    this.#insertJournal = driver.prepare(INSERT_JOURNAL);
    this.#insertEntry = driver.prepare(INSERT_ENTRY);
    this.#insertSignal = driver.prepare(INSERT_SIGNAL);
    this.#deleteSignal = driver.prepare("DELETE FROM signal WHERE session = ? AND ord = ?");
    this.#deleteSignals = driver.prepare("DELETE FROM signal WHERE session = ?");
    this.#insertSeen = driver.prepare("INSERT INTO seen (key, session) VALUES (?, ?)");
    this.#selectSeen = driver.prepare("SELECT 1 FROM seen WHERE key = ? AND session = ?");
  }

  apply(change: Change, now: number): ChangeResult {
    if (change.type === "create_session") return this.#create(change, now);
    const head = this.#heads.get(change.sessionId);
    if (head === undefined) return { status: "not_found" };
    switch (change.type) {
      case "commit_batch":
        return this.#commitBatch(head, change, now);
      case "send_signal":
        return this.#sendSignal(head, change, now);
      case "request_cancel":
        return this.#requestCancel(head, change, now);
      case "release_claim":
        return this.#release(head, change.token);
    }
  }

  /** Ends a session whose cancel deadline has passed. */
  endOverdue(sessionId: string, now: number): void {
    const head = this.#heads.get(sessionId);
    const session = head === undefined ? undefined : endOverdue(head.session, now);
    if (head === undefined || session === undefined) return;
    this.#touch(head);
    this.#replaceSession(head, session);
    this.arrived.push({ sessionId, awaited: true });
  }

  /** Make a claim with a new token. */
  claim(head: Head, owner: string, until: number): number {
    this.#touch(head);
    head.claim = { token: this.#tokens.next(), owner, until };
    this.#heads.place(head);
    return head.claim.token;
  }

  #create(change: CreateSession, now: number): ChangeResult {
    const { sessionId, claimFor, input } = change;
    const problem = findTextProblem("session id", sessionId) ?? findTextProblem("input", input);
    if (problem !== undefined) return { status: "invalid", reason: problem };
    if (this.#heads.get(sessionId) !== undefined) return { status: "exists" };
    const head = newHead(this.#nextNumber, createSession(change, now));
    const refusal = this.#refuseFirst(head, change);
    if (refusal !== undefined) return refusal;

    this.#nextNumber++;
    this.#touch(head);
    this.#insertSession.run(...sessionValues(head.number, change, now, this.#blobs));
    const token =
      claimFor === undefined ? undefined : this.claim(head, claimFor.owner, now + claimFor.leaseMs);
    const first = token === undefined ? undefined : firstBatch(change, token);
    if (first !== undefined) {
      this.#writeRecords(head.number, first, now);
      head.session = applyBatch(head.session, first, now);
    }
    this.#insertState.run(...stateValues(head.number, head.session, this.#blobs));
    this.#heads.place(head);
    return token === undefined ? { status: "created" } : { status: "created", token };
  }

  /** What a first batch would be refused for, before anything of its session is written (W1, ST25). */
  #refuseFirst(head: Head, change: CreateSession): ChangeResult | undefined {
    const token = change.claimFor === undefined ? NO_CLAIM.token : NO_CLAIM.token + 1;
    const first = firstBatch(change, token);
    if (first === undefined) return undefined;
    const problem = findBatchProblem(first);
    if (problem !== undefined)
      return { status: "invalid", reason: `session ${change.sessionId}: ${problem}` };
    const claim = { ...NO_CLAIM, ...change.claimFor, token };
    return refuseBatch(head.session, claim, first, new Lookups(head, this.#reads));
  }

  #commitBatch(head: Head, batch: CommitBatch, now: number): ChangeResult {
    const { session: before, number } = head;
    const refusal = refuseBatch(before, head.claim, batch, new Lookups(head, this.#reads));
    if (refusal !== undefined) return refusal;
    const problem = findBatchProblem(batch);
    if (problem !== undefined)
      return { status: "invalid", reason: `session ${before.sessionId}: ${problem}` };

    this.#touch(head);
    const { consumed } = batch;
    this.#writeRecords(number, batch, now);
    const lastConsumed = this.#consume(head, consumed);

    const session = applyBatch(before, batch, now);
    const mustWrite =
      batch.session !== undefined ||
      session.checkpointSeq !== before.checkpointSeq ||
      lastConsumed > head.writtenInbox;
    if (mustWrite) this.#replaceSession(head, session); // W2.
    else head.session = session;
    if (consumed.length > 0 || session.waits !== before.waits)
      head.answered = head.pending.answers(session.waits);
    return { status: "committed", inbox: session.inbox };
  }

  #writeRecords(number: number, { records, entries, firstSeq }: CommitBatch, now: number): void {
    if (records.length > 0) {
      const body = encodeRecords(records, this.#blobs);
      const checksum = journalChecksum(number, firstSeq, records.length, now, body);
      this.#insertJournal.run(number, firstSeq, records.length, now, body, checksum);
    }
    for (const entry of entries) {
      const record = findRecordOf(entry.content, records);
      this.#insertEntry.run(...entryValues(number, entry, record, now, this.#blobs));
    }
  }

  /** Answers the highest number among them. */
  #consume(head: Head, signalIds: readonly string[]): number {
    let last = 0;
    for (const signalId of signalIds) {
      const order = head.pending.remove(signalId);
      this.#deleteSignal.run(head.number, order);
      last = Math.max(last, order);
    }
    return last;
  }

  #sendSignal(head: Head, signal: SendSignal, now: number): ChangeResult {
    const { sessionId, signalId, name, payload, dedupKey } = signal;
    const problem =
      findTextProblem("signal id", signalId) ??
      findTextProblem("signal name", name) ??
      findTextProblem("dedup key", dedupKey) ??
      findTextProblem("payload", payload);
    if (problem !== undefined) return { status: "invalid", reason: problem };
    const seen =
      this.#hasSeen(head, `i:${signalId}`) ||
      (dedupKey !== undefined && this.#hasSeen(head, `k:${dedupKey}`));
    const decision = decideSignal(head.session, signal, { seen, pending: head.pending.size }, now);
    if (!("session" in decision)) return decision.result;

    this.#touch(head);
    const { order, awaited } = decision.result;
    const stored = { signalId, name, payload, order, sentAt: now };
    this.#insertSignal.run(...signalValues(head.number, stored, this.#blobs));
    this.#insertSeen.run(`i:${signalId}`, head.number);
    if (dedupKey !== undefined) this.#insertSeen.run(`k:${dedupKey}`, head.number);
    // The row in the file stays: the signal's own number says what the inbox is.
    head.session = decision.session;
    head.pending.add(signalId, order, name, stored);
    head.answered ||= isAnsweredBy(head.session.waits, name);
    this.arrived.push({ sessionId, awaited });
    return decision.result;
  }

  #hasSeen(head: Head, key: string): boolean {
    return this.#selectSeen.get(key, head.number) !== undefined;
  }

  #requestCancel(head: Head, request: RequestCancel, now: number): ChangeResult {
    const { result, session } = decideCancel(head.session, request, now);
    if (session === undefined) return result;
    this.#touch(head);
    this.#replaceSession(head, session);
    head.answered = head.pending.answers(session.waits);
    this.arrived.push({ sessionId: request.sessionId, awaited: true });
    return result;
  }

  #release(head: Head, token: number): ChangeResult {
    const status = decideRelease(head.claim, token);
    if (status === "released") {
      this.#touch(head);
      head.claim = { token, until: -Infinity };
      this.#heads.place(head);
    }
    return { status };
  }

  #replaceSession(head: Head, session: Session): void {
    const updated = this.#updateState.run(...stateValues(head.number, session, this.#blobs));
    invariant(updated === 1, `session ${session.sessionId} has no row to update`);
    head.session = session;
    head.writtenInbox = session.inbox;
    if (!isEnded(session.status)) return;
    // Terminal is final: nothing will ask for its signals again.
    if (head.pending.size > 0) this.#deleteSignals.run(head.number);
    head.pending.clear();
    head.answered = false;
    this.#heads.place(head);
  }

  #touch(head: Head): void {
    if (!this.touched.has(head)) this.touched.set(head, head.claim);
  }
}

class Lookups implements BatchLookups {
  readonly #head: Head;
  readonly #reads: Reads;

  constructor(head: Head, reads: Reads) {
    this.#head = head;
    this.#reads = reads;
  }

  holdsRecords({ firstSeq, records }: CommitBatch): boolean {
    const held = this.#reads.journal(this.#head.number, firstSeq, records.length);
    return encodeRecords(held, INLINE_BLOBS) === encodeRecords(records, INLINE_BLOBS);
  }

  isPending(signalId: string): boolean {
    return this.#head.pending.has(signalId);
  }
}

/** A shorter text is not worth the look-up on reading it. */
const REFERRED_CHARS_MIN = 256;

/** Position of the record whose payload is this very text. Large texts are stored once anyway, as blobs. */
function findRecordOf(content: JsonText, records: readonly JournalRecord[]): number | undefined {
  if (content.length < REFERRED_CHARS_MIN || content.length >= FORMAT_LIMITS.blobChars) return undefined;
  return records.find(({ payload }) => payload === content)?.seq;
}

/** For comparing only: a large payload stands for itself. */
const INLINE_BLOBS = { put: (text: string) => text };

/** W4. */
function findBatchProblem({ records, entries, session }: CommitBatch): string | undefined {
  for (const { payload, seq } of records) {
    const problem = payload === undefined ? undefined : findTextProblem(`payload of record ${seq}`, payload);
    if (problem !== undefined) return problem;
  }
  for (const { seq, role, content } of entries) {
    const problem = findTextProblem(`role of entry ${seq}`, role) ?? findTextProblem(`entry ${seq}`, content);
    if (problem !== undefined) return problem;
  }
  return findTextProblem("output", session?.output);
}

function findTextProblem(what: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  if (!text.isWellFormed()) return `${what} has a lone surrogate that is not escaped`;
  return text.includes("\n") ? `${what} has a line break that is not escaped` : undefined;
}
