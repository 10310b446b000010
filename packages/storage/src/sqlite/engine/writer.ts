// One change after another, inside a transaction that its caller began: look up, ask the rules, write. What a change means for
// other sessions is the core's (`cascade.ts`); this is its door.
//
//   writer-1. All that can be refused is refused before the first write of its change, so that a refusal needs no
//       savepoint. That a signal was seen before is told by the row that would say so: it is not written twice.
//   writer-2. A step that changes neither status nor waits is one INSERT. The session's row is written when a patch, a
//       checkpoint or the inbox says so.
//   writer-3. Heads are changed here at once, so that later changes of the group see earlier ones (ST5). Which were
//       touched, and the claims they had, is kept in `touched`: after a failed transaction all of that is forgotten.
//   writer-5. An account is written once per transaction, when it ends or before the file is asked for a session.
//   writer-4. Text that SQLite or the journal's lines would change without a word is refused (`texts.ts`).

import {
  encodeRecords,
  FORMAT_LIMITS,
  invariant,
  isEnded,
  type Account,
  type Amount,
  type Arrival,
  type AuditRow,
  type ChangeResult,
  type CommitBatch,
  type CreateSession,
  type Hold,
  type ImportSession,
  type JournalRecord,
  type JsonText,
  type ReleaseClaim,
  type Schedule,
  type SeenSignals,
  type SendSignal,
  type Session,
  type StoredDocument,
} from "@holdfast/core";
import {
  applyBatch,
  createSession,
  decideRelease,
  decideSignal,
  dedupMark,
  findImportProblem,
  firstBatch,
  isAnsweredBy,
  isSameRecords,
  nextClaim,
  provenClaim,
  refuseBatch,
  refuseCreation,
  releasedClaim,
  type Applied,
  type BatchLookups,
  type CascadeDoor,
  type ChildRow,
  type Claim,
} from "@holdfast/core/internal";
import type { Blobs } from "../tables/blobs.ts";
import { journalChecksum, sha256 } from "../tables/checksum.ts";
import type { SqlDriver, SqlStatement } from "../file/driver.ts";
import { newHead, type Head, type Heads } from "./heads.ts";
import type { Leases } from "../tables/leases.ts";
import type { Reads } from "./reads.ts";
import { Removal } from "../tables/removal.ts";
import {
  checkpointMark,
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
} from "../tables/rows.ts";
import { SessionHolds } from "../tables/session-holds.ts";
import { partsOf } from "../../journal-parts.ts";
import {
  findBatchProblem,
  findDocumentProblem,
  findImportTextProblem,
  findScheduleProblem,
  findSessionProblem,
  findSignalProblem,
} from "../../texts.ts";
import type { Tokens } from "../tables/tokens.ts";

export class Writer implements CascadeDoor {
  /** What this transaction changed, and the claims as they were before it (writer-3). */
  touched = new Map<Head, Claim>();
  /** What listeners hear of when it is committed. */
  readonly arrived: Arrival[] = [];

  readonly hash = sha256;
  /** Those whose account or its holds have changed (writer-5). */
  readonly #unwritten = new Set<Head>();
  readonly #heads: Heads;
  readonly #reads: Reads;
  readonly #blobs: Blobs;
  readonly #tokens: Tokens;
  readonly #leases: Leases;
  readonly #removal: Removal;
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

  constructor(
    driver: SqlDriver,
    parts: { heads: Heads; reads: Reads; blobs: Blobs; tokens: Tokens; leases: Leases },
  ) {
    this.#heads = parts.heads;
    this.#heads.beforeRead = () => this.writeAccounts();
    this.#reads = parts.reads;
    this.#blobs = parts.blobs;
    this.#tokens = parts.tokens;
    this.#leases = parts.leases;
    this.#removal = new Removal(driver, parts.blobs);
    this.#removal.sweep();
    this.#nextNumber = this.#removal.nextNumber();
    this.#insertSession = driver.prepare(INSERT_SESSION);
    this.#insertState = driver.prepare(INSERT_STATE);
    this.#updateState = driver.prepare(UPDATE_STATE);
    this.#insertJournal = driver.prepare(INSERT_JOURNAL);
    this.#insertEntry = driver.prepare(INSERT_ENTRY);
    this.#insertSignal = driver.prepare(INSERT_SIGNAL);
    this.#deleteSignal = driver.prepare("DELETE FROM signal WHERE session = ? AND ord = ?");
    this.#deleteSignals = driver.prepare("DELETE FROM signal WHERE session = ?");
    this.#insertSeen = driver.prepare("INSERT INTO seen (key, session) VALUES (?, ?) ON CONFLICT DO NOTHING");
    this.#selectSeen = driver.prepare("SELECT 1 FROM seen WHERE key = ? AND session = ?");
  }

  session(sessionId: string): Session | undefined {
    return this.#heads.get(sessionId)?.session;
  }

  claimOf(sessionId: string): Claim {
    return this.#find(sessionId).claim;
  }

  children(sessionId: string): readonly ChildRow[] {
    // One that is not here, or not at hand, may have children all the same.
    return this.#heads.get(sessionId)?.hasChildren === false ? [] : this.#reads.children(sessionId);
  }

  exhaustedBy(payer: string): readonly string[] {
    return this.#reads.exhaustedBy(payer);
  }

  holds(sessionId: string): readonly Hold[] {
    return this.#find(sessionId).holds?.list() ?? [];
  }

  held(sessionId: string, task: number): Amount | undefined {
    return this.#find(sessionId).holds?.get(task);
  }

  schedule(scheduleId: string): Schedule | undefined {
    return this.#reads.schedules.get(scheduleId);
  }

  isPending(sessionId: string, signalId: string): boolean {
    return this.#find(sessionId).pending.has(signalId);
  }

  document(collection: string, id: string): StoredDocument | undefined {
    return this.#reads.ledger.document(collection, id);
  }

  lastAudit(): AuditRow | undefined {
    return this.#reads.ledger.lastAudit();
  }

  /** Make a claim with a new token. */
  claim(
    head: Head,
    asked: { readonly owner: string; readonly now: number; readonly leaseMs: number },
  ): Claim {
    this.#touch(head);
    head.claim = nextClaim(head.claim, asked, this.#tokens.next());
    this.#leases.file(head.number, head.session.sessionId, head.claim, asked.leaseMs);
    this.#heads.place(head);
    return head.claim;
  }

  create(change: CreateSession, now: number, forerunner?: Session): Applied {
    const { sessionId, claimFor, parent } = change;
    const problem = findSessionProblem(change);
    if (problem !== undefined) return refused({ status: "invalid", reason: problem });
    if (this.#heads.get(sessionId) !== undefined) return refused({ status: "exists" });
    const refusal = refuseCreation(change, now, {
      asker: (id) => this.#heads.get(id),
      hasSeen: (id, signalId) => this.#hasSeen(this.#find(id), `i:${signalId}`),
    });
    if (refusal !== undefined) return refused(refusal);

    const above = parent === undefined ? undefined : this.#heads.get(parent.sessionId)?.session;
    const head = this.#insert(createSession(change, now, above, forerunner));
    const before = head.session;
    const token = claimFor === undefined ? undefined : this.claim(head, { ...claimFor, now }).token;
    const first = token === undefined ? undefined : firstBatch(change, token);
    if (first !== undefined) {
      this.#writeRecords(head.number, first, now);
      head.session = applyBatch(head.session, first, now);
      if (isEnded(head.session.status)) this.#leases.spend(sessionId, head.claim.until);
    }
    this.#insertState.run(...stateValues(head.number, head.session, this.#blobs));
    this.#heads.place(head);
    const result =
      token === undefined ? ({ status: "created" } as const) : { status: "created" as const, token };
    return { result, rows: { before, after: head.session } };
  }

  import(change: ImportSession): ChangeResult {
    const { sessionId, session, records, entries } = change;
    if (this.#heads.get(sessionId) !== undefined) return { status: "exists" };
    const problem = findImportProblem(change) ?? findImportTextProblem(change);
    if (problem !== undefined) return { status: "invalid", reason: `session ${sessionId} ${problem}` };
    const head = this.#insert(session);
    head.hasChildren = true; // Some may have stayed while it was elsewhere: the file is asked.
    for (const part of partsOf(records)) this.#writeJournal(head.number, part, session.updatedAt);
    for (const entry of entries)
      this.#insertEntry.run(...entryValues(head.number, entry, undefined, entry.createdAt, this.#blobs));
    this.#insertState.run(...stateValues(head.number, session, this.#blobs));
    this.#heads.place(head);
    return { status: "created" };
  }

  /** The rows of a new session that never change, and its account. */
  #insert(session: Session): Head {
    const head = newHead(this.#nextNumber++, session);
    this.#touch(head);
    this.#insertSession.run(...sessionValues(head.number, session, this.#blobs));
    if (session.account !== undefined) this.#unwritten.add(head);
    const parent = session.parent === undefined ? undefined : this.#heads.peek(session.parent.sessionId);
    if (parent !== undefined) parent.hasChildren = true;
    return head;
  }

  commitBatch(batch: CommitBatch, now: number): Applied {
    const head = this.#heads.get(batch.sessionId);
    if (head === undefined) return refused({ status: "not_found" });
    const { session: before, number } = head;
    const refusal = refuseBatch(before, head.claim, batch, new Lookups(head, this.#reads));
    if (refusal !== undefined) return refused(refusal);
    const problem = findBatchProblem(batch);
    if (problem !== undefined)
      return refused({ status: "invalid", reason: `session ${before.sessionId}: ${problem}` });

    this.#touch(head);
    const claim = provenClaim(head.claim, batch);
    if (claim !== head.claim) {
      head.claim = claim;
      this.#leases.file(number, batch.sessionId, claim);
    }
    const { consumed } = batch;
    this.#writeRecords(number, batch, now);
    const lastConsumed = this.#consume(head, consumed);

    const session = applyBatch(before, batch, now);
    const mustWrite =
      batch.session !== undefined ||
      batch.records.length === 0 || // Else its time is that of the records.
      session.checkpointSeq !== before.checkpointSeq ||
      session.children !== before.children ||
      lastConsumed > head.writtenInbox;
    if (mustWrite) this.#replaceSession(head, session); // writer-2.
    else head.session = session;
    if (consumed.length > 0 || session.waits !== before.waits)
      head.answered = head.pending.answers(session.waits);
    return { result: { status: "committed", inbox: session.inbox }, rows: { before, after: session } };
  }

  #writeRecords(number: number, { records, entries }: CommitBatch, now: number): void {
    if (records.length > 0) this.#writeJournal(number, records, now);
    for (const entry of entries) {
      const record = findRecordOf(entry.content, records);
      this.#insertEntry.run(...entryValues(number, entry, record, now, this.#blobs));
    }
  }

  /** One row; there is at least one record. */
  #writeJournal(number: number, records: readonly JournalRecord[], now: number): void {
    const { seq } = records[0]!;
    const body = encodeRecords(records, this.#blobs.sinkFor(number));
    const checksum = journalChecksum(number, seq, records.length, now, body);
    this.#insertJournal.run(number, seq, records.length, now, body, checkpointMark(records), checksum);
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

  send(signal: SendSignal, now: number): ChangeResult {
    const { sessionId, signalId, name, payload, dedupKey } = signal;
    const head = this.#heads.get(sessionId);
    if (head === undefined) return { status: "not_found" };
    const problem = findSignalProblem(signal);
    if (problem !== undefined) return { status: "invalid", reason: problem };
    const seen = dedupKey !== undefined && this.#hasSeenKey(head, name, dedupKey);
    const decision = decideSignal(head.session, signal, { seen, pending: head.pending.size }, now);
    if (!("session" in decision)) {
      const isRepeated = decision.result.status === "invalid" && this.#hasSeen(head, `i:${signalId}`);
      return isRepeated ? DUPLICATE : decision.result;
    }
    if (this.#insertSeen.run(`i:${signalId}`, head.number) === 0) return DUPLICATE;

    this.#touch(head);
    const { order, awaited } = decision.result;
    const stored = { signalId, name, payload, order, sentAt: now };
    this.#insertSignal.run(...signalValues(head.number, stored, this.#blobs));
    if (dedupKey !== undefined) this.#insertSeen.run(`d:${dedupMark(name, dedupKey)}`, head.number);
    // The row in the file stays: the signal's own number says what the inbox is.
    head.session = decision.session;
    head.pending.add(signalId, order, name, stored);
    head.answered ||= isAnsweredBy(head.session.waits, name);
    this.arrived.push({ sessionId, awaited });
    return decision.result;
  }

  addSeen(sessionId: string, { ids, dedupKeys }: SeenSignals): void {
    const head = this.#find(sessionId);
    const keys = [
      ...ids.map((id) => `i:${id}`),
      ...dedupKeys.map(([name, dedupKey]) => `d:${dedupMark(name, dedupKey)}`),
    ];
    for (const key of keys) if (!this.#hasSeen(head, key)) this.#insertSeen.run(key, head.number);
  }

  #hasSeen(head: Head, key: string): boolean {
    return this.#selectSeen.get(key, head.number) !== undefined;
  }

  /** Keys of before step 2 of the schema count for every name: of which they were is not known. */
  #hasSeenKey(head: Head, name: string, dedupKey: string): boolean {
    return this.#hasSeen(head, `d:${dedupMark(name, dedupKey)}`) || this.#hasSeen(head, `k:${dedupKey}`);
  }

  release(change: ReleaseClaim): ChangeResult {
    const { sessionId } = change;
    const head = this.#heads.get(sessionId);
    if (head === undefined) return { status: "not_found" };
    const status = decideRelease(head.session, head.claim, change);
    if (status === "released") {
      this.#touch(head);
      head.claim = releasedClaim(head.claim);
      this.#leases.file(head.number, sessionId, head.claim);
      this.#heads.place(head);
    }
    return { status };
  }

  replace(session: Session): void {
    const head = this.#find(session.sessionId);
    this.#touch(head);
    this.#replaceSession(head, session);
    head.answered = head.pending.answers(session.waits);
  }

  setAccount(sessionId: string, account: Account): void {
    const head = this.#find(sessionId);
    this.#touch(head);
    this.#unwritten.add(head);
    head.session = { ...head.session, account };
  }

  setHold(sessionId: string, task: number, amount: Amount | undefined): void {
    const head = this.#find(sessionId);
    this.#touch(head);
    head.holds ??= new SessionHolds();
    const place = head.holds.set(task, amount, head.session.account !== undefined);
    if (place === "account") this.#unwritten.add(head);
    else this.#reads.accounts.putHold(head.number, task, amount);
  }

  /** writer-5. */
  writeAccounts(): void {
    for (const { number, session, holds } of this.#unwritten)
      if (session.account !== undefined)
        this.#reads.accounts.put(number, session.account, holds?.inAccount ?? []);
    this.#unwritten.clear();
  }

  /** After a transaction that failed: nothing of it is to be written any more. */
  undo(): void {
    this.#unwritten.clear();
    this.touched = new Map();
    this.arrived.length = 0;
  }

  putSchedule(schedule: Schedule): ChangeResult {
    const problem = findScheduleProblem(schedule);
    if (problem !== undefined) return { status: "invalid", reason: problem };
    this.#reads.schedules.put(schedule);
    return { status: "done", schedule };
  }

  removeSchedule(scheduleId: string): void {
    this.#reads.schedules.remove(scheduleId);
  }

  remove(sessionId: string): void {
    const head = this.#find(sessionId);
    this.#touch(head);
    this.#unwritten.delete(head);
    this.#removal.remove(head.number);
    this.#leases.drop(sessionId);
    this.#heads.remove(sessionId);
  }

  putDocument(collection: string, document: StoredDocument): ChangeResult | undefined {
    const problem = findDocumentProblem(document);
    if (problem !== undefined) return { status: "invalid", reason: problem };
    this.#reads.ledger.put(collection, document);
    return undefined;
  }

  removeDocument(collection: string, id: string): void {
    this.#reads.ledger.remove(collection, id);
  }

  appendAudit(row: AuditRow): void {
    this.#reads.ledger.appendAudit(row);
  }

  announce(sessionId: string, awaited: boolean): void {
    this.arrived.push({ sessionId, awaited });
  }

  #find(sessionId: string): Head {
    const head = this.#heads.get(sessionId);
    invariant(head !== undefined, `session ${sessionId} is gone in the middle of a change`);
    return head;
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
    this.#leases.spend(session.sessionId, head.claim.until);
    this.#heads.place(head);
  }

  #touch(head: Head): void {
    if (!this.touched.has(head)) this.touched.set(head, head.claim);
  }
}

const DUPLICATE: ChangeResult = { status: "duplicate" };

class Lookups implements BatchLookups {
  readonly #head: Head;
  readonly #reads: Reads;

  constructor(head: Head, reads: Reads) {
    this.#head = head;
    this.#reads = reads;
  }

  holdsRecords({ firstSeq, records }: CommitBatch): boolean {
    const held = this.#reads.journal(this.#head.number, firstSeq, records.length);
    return isSameRecords(held, records);
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

function refused(result: ChangeResult): Applied {
  return { result };
}
