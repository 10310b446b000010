// `RowPort`: what a storage does inside one transaction, for `applyChange`.
//
// The rules of the core decide what a change does. A storage finds rows and writes rows; it decides nothing.
// The members below are all that one storage does differently from another.
//
//   - Every write is seen by the reads after it, within the transaction.
//   - A member that writes is called only for a session that `find` returned in this transaction. By then
//     every rule that can refuse the change was asked, so a write refuses nothing but a signal that the
//     session has seen.

import type { AuditRow } from "../session/audit/audit.ts";
import type { Account } from "../budget/budget.ts";
import type { CommitBatch, Entry, SeenSignals, StoredSignal } from "../session/changes.ts";
import type { Schedule } from "../session/schedules.ts";
import type { Session, SessionStatus } from "../session/session.ts";
import type { StoredDocument } from "../session/stored-documents.ts";
import type { Hash } from "../hash.ts";
import type { Amount } from "../journal/amounts.ts";
import type { JournalRecord } from "../journal/record.ts";
import type { Claim } from "../rules/claims.ts";

export interface RowPort {
  find(sessionId: string): StoredSession | undefined;
  /**
   * Whether a session of this id is stored. A storage that answers `false` without a read must refuse the
   * second `insert`.
   */
  exists(sessionId: string): boolean;
  /** The sessions that name this one as their parent, in the order of their creation. */
  children(sessionId: string): readonly ChildRow[];
  /**
   * Ids of the sessions that are paused because this session's account is exhausted, in the order of their
   * creation.
   */
  exhaustedBy(sessionId: string): readonly string[];
  /** Whether the session remembers one of these ids, or one of these keys. */
  hasSeen(sessionId: string, seen: SeenSignals): boolean;
  /** Whether the journal holds these very records, byte for byte, at the batch's `firstSeq`. */
  holdsRecords(batch: CommitBatch): boolean;

  /** Store a session that storage does not have. Returns the session's claim. */
  insert(created: NewSession): Claim;
  /** Append a batch to the session's journal, consume its signals, and store `after` as the session's row. */
  commit(batch: CommitBatch, after: Session, now: number): void;
  /**
   * Returns whether it was written. Only a signal that the session has seen is not: one of the ids or keys of
   * `seen` is remembered already.
   */
  update(sessionId: string, patch: RowPatch): boolean;
  /** Remove everything of a session: row, account, holds, claim, journal, entries, signals. */
  remove(sessionId: string): void;
  /** Tell the listeners of the storage about the session once the transaction is committed. */
  announce(sessionId: string, awaited: boolean): void;

  /** Schedules, documents and the audit. */
  readonly ledger: LedgerPort;
}

/**
 * A session as it is stored at this point of the transaction. A later write may change the object or replace
 * it: find it again.
 */
export interface StoredSession {
  readonly session: Session;
  /** The newest claim. */
  readonly claim: Claim;
  /** The signals that nobody has consumed. */
  readonly pending: { readonly size: number; has(signalId: string): boolean };
  /** Reservations for open tasks, by the task's number; `undefined` for none. */
  readonly holds: HoldsByTask | undefined;
}

export interface HoldsByTask extends Iterable<readonly [task: number, amount: Amount]> {
  get(task: number): Amount | undefined;
}

export interface ChildRow {
  readonly sessionId: string;
  readonly status: SessionStatus;
  readonly onEnd: "cancel" | "wait" | "leave";
  readonly owner: string | undefined;
}

export interface NewSession {
  readonly session: Session;
  readonly records: readonly JournalRecord[];
  readonly entries: readonly Entry[];
  /** Time of the records, epoch milliseconds. */
  readonly committedAt: number;
  /** The claim that the session is created with. Storage gives the claim a token. */
  readonly claimFor?: { readonly owner: string; readonly leaseMs: number };
  /** An imported journal may have many checkpoints. A session that comes back may have left ended children here. */
  readonly isImported: boolean;
}

/** The fields that `update` writes; an absent field stays as it is. */
export interface RowPatch {
  /** The row, all but its account. If the session has ended, `update` drops its pending signals. */
  readonly session?: Session;
  /**
   * A signal to add to the pending ones. It comes with `session`; its `order` is the row's inbox, so the row
   * need not be written.
   */
  readonly signal?: StoredSignal;
  readonly account?: Account;
  /** `amount` is `undefined` when nothing is reserved for the task any more. */
  readonly hold?: { readonly task: number; readonly amount: Amount | undefined };
  readonly claim?: Claim;
  /** Ids and keys that the session takes for duplicates from now on. */
  readonly seen?: SeenSignals;
}

export interface LedgerPort {
  readonly hash: Hash;
  schedule(scheduleId: string): Schedule | undefined;
  putSchedule(schedule: Schedule): void;
  removeSchedule(scheduleId: string): void;
  document(collection: string, id: string): StoredDocument | undefined;
  putDocument(collection: string, document: StoredDocument): void;
  removeDocument(collection: string, id: string): void;
  /** The newest row of the audit; `undefined` before the first. */
  lastAudit(): Pick<AuditRow, "seq" | "hash"> | undefined;
  appendAudit(row: AuditRow): void;
  /** At most `limit` rows of the audit, from the oldest on. */
  oldestAudit(limit: number): readonly AuditRow[];
  /** Remove all rows of the audit up to this number. */
  removeAudit(through: number): void;
}
