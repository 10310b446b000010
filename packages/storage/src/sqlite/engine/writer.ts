// `Writer`: the row port of a SQLite file, inside a transaction that its caller began.
//
//   - A commit that changes neither status nor waits is one INSERT. The session's row is written when the
//     batch has a patch or changes the checkpoint, the children or the inbox.
//   - Heads are changed here at once, so a later change of the group sees an earlier one (ST5). `touched`
//     holds each changed head with its former claim: after a failed transaction all of these are forgotten.
//   - An account is written once per transaction: at the transaction's end, or before a session is read from
//     the file.

import {
  type Amount,
  type Arrival,
  type ChildRow,
  type Claim,
  claimedAfter,
  type ClaimResult,
  type CommitBatch,
  dedupMark,
  encodeRecords,
  FORMAT_LIMITS,
  invariant,
  isAnsweredBy,
  isEnded,
  isProof,
  isSameRecords,
  type JournalRecord,
  type JsonText,
  type NewEntry,
  type NewSession,
  nextClaim,
  provenClaim,
  type RowPatch,
  type RowPort,
  type SeenSignals,
  type Session,
  type StoredSignal,
} from "@holdfast/core";
import type { Blobs } from "../tables/blobs.ts";
import { journalChecksum } from "../tables/checksum.ts";
import type { SqlDriver, SqlStatement } from "../file/driver.ts";
import { entryValues, INSERT_ENTRY } from "../tables/entry-rows.ts";
import { newHead, type Head, type Heads } from "./heads.ts";
import type { Filing, Leases } from "../tables/leases.ts";
import type { Ledger } from "../tables/ledger.ts";
import type { Reads } from "./reads.ts";
import { StateRows } from "./state-rows.ts";
import { Removal } from "../tables/removal.ts";
import {
  checkpointMark,
  INSERT_JOURNAL,
  INSERT_SESSION,
  INSERT_SIGNAL,
  sessionValues,
  signalValues,
} from "../tables/rows.ts";
import { SessionReservations } from "../tables/session-reservations.ts";
import { partsOf } from "../../journal-parts.ts";
import type { Tokens } from "../tables/tokens.ts";

export class Writer implements RowPort {
  /** The heads that this transaction changed, with their former claims. */
  touched = new Map<Head, Claim>();
  /** The arrivals to announce when the transaction is committed. */
  readonly arrived: Arrival[] = [];

  /** The heads whose account or reservations have changed. */
  readonly #unwritten = new Set<Head>();
  readonly #heads: Heads;
  readonly #reads: Reads;
  readonly #blobs: Blobs;
  readonly #tokens: Tokens;
  readonly #leases: Leases;
  readonly #removal: Removal;
  #nextNumber: number;

  readonly #states: StateRows;
  readonly #insertSession: SqlStatement;
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
    this.#states = new StateRows(driver, parts.blobs);
    this.#insertJournal = driver.prepare(INSERT_JOURNAL);
    this.#insertEntry = driver.prepare(INSERT_ENTRY);
    this.#insertSignal = driver.prepare(INSERT_SIGNAL);
    this.#deleteSignal = driver.prepare("DELETE FROM signal WHERE session = ? AND ord = ?");
    this.#deleteSignals = driver.prepare("DELETE FROM signal WHERE session = ?");
    this.#insertSeen = driver.prepare("INSERT INTO seen (key, session) VALUES (?, ?) ON CONFLICT DO NOTHING");
    this.#selectSeen = driver.prepare("SELECT 1 FROM seen WHERE key = ? AND session = ?");
  }

  get ledger(): Ledger {
    return this.#reads.ledger;
  }

  find(sessionId: string): Head | undefined {
    return this.#heads.get(sessionId);
  }

  exists(sessionId: string): boolean {
    return this.#heads.get(sessionId) !== undefined;
  }

  children(sessionId: string): readonly ChildRow[] {
    // A session that is not stored, or has no head, may have children.
    return this.#heads.get(sessionId)?.hasChildren === false ? [] : this.#reads.children(sessionId);
  }

  exhaustedBy(sessionId: string): readonly string[] {
    return this.#reads.exhaustedBy(sessionId);
  }

  hasSeen(sessionId: string, seen: SeenSignals): boolean {
    const { number } = this.#find(sessionId);
    return marksOf(seen).some((mark) => this.#selectSeen.get(mark, number) !== undefined);
  }

  holdsRecords({ sessionId, firstSeq, records }: CommitBatch): boolean {
    return isSameRecords(
      this.#reads.journal(this.#find(sessionId).number, firstSeq, records.length),
      records,
    );
  }

  /** Make a claim with a new token. */
  claim(
    head: Head,
    asked: { readonly owner: string; readonly now: number; readonly leaseMs: number },
    isFiled = this.#leases.mustFile(head.session.sessionId, head.claim),
  ): ClaimResult {
    const { leaseMs } = asked;
    const { claim } = head;
    this.#setClaim(head, nextClaim(claim, asked, this.#tokens.next()), { leaseMs, isFiled });
    return claimedAfter(claim, head.claim);
  }

  insert({ session, records, entries, committedAt, claimFor, isImported }: NewSession): Claim {
    const head = newHead(this.#nextNumber++, session);
    const { number } = head;
    this.#touch(head);
    this.#insertSession.run(...sessionValues(number, session, this.#blobs));
    if (session.account !== undefined) this.#unwritten.add(head);
    const parent = session.parent === undefined ? undefined : this.#heads.peek(session.parent.sessionId);
    if (parent !== undefined) parent.hasChildren = true;
    if (claimFor !== undefined) this.claim(head, { ...claimFor, now: committedAt }, false);
    if (isImported) {
      // A session that comes back may have left ended children here; the file knows.
      head.hasChildren = true;
      for (const part of partsOf(records)) this.#writeJournal(number, part, committedAt);
      for (const entry of entries) this.#writeEntry(number, entry, [], entry.createdAt);
    } else {
      this.#append(number, { records, entries }, committedAt);
    }
    this.#states.insert(number, session);
    if (isEnded(session.status)) this.#leases.spend(session.sessionId, head.claim.until);
    this.#heads.place(head);
    return head.claim;
  }

  commit(batch: CommitBatch, after: Session, now: number): void {
    const { sessionId, records, consumed } = batch;
    const head = this.#find(sessionId);
    const { session: before, number } = head;
    this.#touch(head);
    const claim = provenClaim(head.claim, batch);
    const isProven = claim !== head.claim || (this.#leases.isUnending(sessionId) && isProof(batch));
    if (isProven) {
      head.claim = claim;
      this.#leases.file(number, sessionId, claim);
    }
    this.#append(number, batch, now);
    const lastConsumed = this.#consume(head, consumed);
    const mustWrite =
      batch.session !== undefined ||
      records.length === 0 || // Otherwise the records have the row's time.
      after.checkpointSeq !== before.checkpointSeq ||
      after.children !== before.children ||
      after.cost !== before.cost || // A list shows it, and reads no journal.
      lastConsumed > head.writtenInbox;
    if (mustWrite) this.#writeRow(head, after);
    else head.session = after;
    if (consumed.length > 0 || after.waits !== before.waits)
      head.answered = head.pending.answers(after.waits);
  }

  update(sessionId: string, { session, signal, account, hold, claim, seen }: RowPatch): boolean {
    const head = this.#find(sessionId);
    if (seen !== undefined && !this.#remember(head, seen, signal !== undefined)) return false;
    this.#touch(head);
    if (signal !== undefined) {
      this.#addSignal(head, session ?? head.session, signal);
    } else if (session !== undefined) {
      this.#writeRow(head, session);
      head.answered = head.pending.answers(session.waits);
    }
    if (account !== undefined) {
      this.#unwritten.add(head);
      head.session = { ...head.session, account };
    }
    if (hold !== undefined) this.#setHold(head, hold.task, hold.amount);
    if (claim !== undefined) this.#setClaim(head, claim);
    return true;
  }

  remove(sessionId: string): void {
    const head = this.#find(sessionId);
    this.#touch(head);
    this.#unwritten.delete(head);
    this.#removal.remove(head.number);
    this.#leases.drop(sessionId);
    this.#heads.remove(sessionId);
  }

  announce(sessionId: string, awaited: boolean): void {
    this.arrived.push({ sessionId, awaited });
  }

  writeAccounts(): void {
    for (const { number, session, holds } of this.#unwritten)
      if (session.account !== undefined)
        this.#reads.accounts.put(number, session.account, holds?.inAccount ?? []);
    this.#unwritten.clear();
  }

  /** Forget what a failed transaction wanted to write. */
  undo(): void {
    this.#unwritten.clear();
    this.touched = new Map();
    this.arrived.length = 0;
  }

  #find(sessionId: string): Head {
    const head = this.#heads.get(sessionId);
    invariant(head !== undefined, `session ${sessionId} is gone in the middle of a change`);
    return head;
  }

  #touch(head: Head): void {
    if (!this.touched.has(head)) this.touched.set(head, head.claim);
  }

  #setClaim(head: Head, claim: Claim, filing?: Filing): void {
    this.#touch(head);
    head.claim = claim;
    this.#leases.file(head.number, head.session.sessionId, claim, filing);
    this.#heads.place(head);
  }

  #append(
    number: number,
    {
      records,
      entries,
    }: { readonly records: readonly JournalRecord[]; readonly entries: readonly NewEntry[] },
    now: number,
  ): void {
    if (records.length > 0) this.#writeJournal(number, records, now);
    for (const entry of entries) this.#writeEntry(number, entry, records, now);
  }

  /** One row; there is at least one record. */
  #writeJournal(number: number, records: readonly JournalRecord[], now: number): void {
    const { seq } = records[0]!;
    const body = encodeRecords(records, this.#blobs.sinkFor(number));
    const checksum = journalChecksum(number, seq, records.length, now, body);
    this.#insertJournal.run(number, seq, records.length, now, body, checkpointMark(records), checksum);
  }

  /**
   * @param records the records of the entry's commit: the entry refers to a record that has the same text.
   */
  #writeEntry(number: number, entry: NewEntry, records: readonly JournalRecord[], now: number): void {
    const record = findRecordOf(entry.content, records);
    this.#insertEntry.run(...entryValues(number, entry, record, now, this.#blobs));
  }

  /** Returns the highest order of the consumed signals. */
  #consume(head: Head, signalIds: readonly string[]): number {
    let last = 0;
    for (const signalId of signalIds) {
      const order = head.pending.remove(signalId);
      this.#deleteSignal.run(head.number, order);
      last = Math.max(last, order);
    }
    return last;
  }

  /** Leaves the session's row in the file unchanged, because the signal's own number gives the inbox. */
  #addSignal(head: Head, session: Session, signal: StoredSignal): void {
    const { signalId, order, name } = signal;
    this.#insertSignal.run(...signalValues(head.number, signal, this.#blobs));
    head.session = session;
    head.pending.add(signalId, order, name, signal);
    head.answered ||= isAnsweredBy(session.waits, name);
  }

  /**
   * With `isOne` these are the id of one signal and its key, and nothing is remembered when one of them is
   * already. A signal without a key needs no question for that.
   */
  #remember({ number, session }: Head, seen: SeenSignals, isOne: boolean): boolean {
    const marks = marksOf(seen);
    if (isOne && marks.length > 1 && this.hasSeen(session.sessionId, seen)) return false;
    let added = 0;
    for (const mark of marks) added += this.#insertSeen.run(mark, number);
    return !isOne || added > 0;
  }

  #setHold(head: Head, task: number, amount: Amount | undefined): void {
    head.holds ??= new SessionReservations();
    const place = head.holds.set(task, amount, head.session.account !== undefined);
    if (place === "account") this.#unwritten.add(head);
    else this.#reads.accounts.putHold(head.number, task, amount);
  }

  #writeRow(head: Head, session: Session): void {
    this.#states.update(head.number, head.session, session);
    head.session = session;
    head.writtenInbox = session.inbox;
    if (!isEnded(session.status)) return;
    // Nothing reads the signals of an ended session.
    if (head.pending.size > 0) this.#deleteSignals.run(head.number);
    head.pending.clear();
    head.answered = false;
    this.#leases.spend(session.sessionId, head.claim.until);
    this.#heads.place(head);
  }
}

/** The keys of rows of `seen`: ids, and dedup keys, which count for signals of one name. */
function marksOf({ ids, dedupKeys }: SeenSignals): readonly string[] {
  const marks = ids.map((id) => `i:${id}`);
  for (const [name, key] of dedupKeys) marks.push(`d:${dedupMark(name, key)}`);
  return marks;
}

/** A shorter text is not worth the look-up on reading it. */
const REFERRED_CHARS_MIN = 256;

/** Position of the record whose payload is this very text. Large texts are stored once anyway, as blobs. */
function findRecordOf(content: JsonText, records: readonly JournalRecord[]): number | undefined {
  if (content.length < REFERRED_CHARS_MIN || content.length >= FORMAT_LIMITS.blobChars) return undefined;
  return records.find(({ payload }) => payload === content)?.seq;
}
