// `AgentStorage`: the port to the storage of sessions, and the clauses that every adapter keeps.
//
// The port does not know agents, tasks or kernels. It stores what it is given, in order, or says why it does
// not.

import type { JournalRecord } from "../journal/record.ts";
import type { Session, SessionStatus } from "../session/session.ts";
import type { SharedDrafts } from "./shared-drafts.ts";
import type { HoldfastError } from "../errors/errors.ts";
import type { AuditRow } from "../session/audit/audit.ts";
import type { ClaimResult, HeldClaim, HeldClaimsQuery } from "../session/claim-results.ts";
import type { StoredDocument } from "../session/stored-documents.ts";
import type { Schedule } from "../session/schedules.ts";
import type {
  Arrival,
  Arrivals,
  Change,
  ChangeResult,
  Due,
  Entry,
  SeenSignals,
  SessionSnapshot,
  StoredSignal,
} from "../session/changes.ts";

/** A module that renews claims in a thread, and what its function `renew` is given. */
export interface ThreadRenewal {
  /** The URL of a module that exports a `RenewInThread` as `renew`. */
  readonly module: string;
  /** Can be sent to a thread. */
  readonly data: unknown;
  /**
   * How long claims without an end last after the last sign of life of their process, in milliseconds. Absent
   * where such claims need none.
   */
  readonly silentMs?: number;
}

/**
 * Renews claims as `AgentStorage.renew` does. @returns whether any was extended, or those without an end are
 * still held: if not, others may hold them.
 *
 * @throws when storage does not answer.
 */
export type RenewInThread = (
  data: unknown,
  renewal: {
    readonly owner: string;
    readonly sessionIds: readonly string[];
    readonly leaseMs: number;
    /** The step that blocks the event loop, for people. */
    readonly blockedBy: string;
    readonly signal: AbortSignal;
  },
) => Promise<boolean>;

/**
 * Storage of agent sessions. Every method is one transaction, and every method that depends on time is told
 * the time. Expected outcomes are values. An adapter passes when `storageConformance` passes, and its tests
 * are named by the clauses below. Where a clause names a file or a type, the details are there.
 *
 * Creation
 *
 *   ST13. Creating a session that exists changes nothing and answers `exists`.
 *   ST25. A session may be created with its first batch, and then both are stored or neither.
 *   ST49. With `under`, a session is created only while that claim is its session's newest, unreleased and of
 *         an active session; otherwise the answer is `fenced`. Each claim creates an id once: the answer is
 *         then `exists`, or `duplicate` after its deletion.
 *
 * Batches
 *
 *   ST1.  `commit` applies each change whole or not at all, and the change's result says which.
 *   ST4.  A change that is fenced, invalid or refused leaves the other changes of its group untouched.
 *   ST5.  The changes of one group are applied in the order given, and later changes see what earlier ones
 *         did.
 *   ST2.  A batch under any token but the newest claim's is `fenced`: it changes nothing, and consumes no
 *         signal.
 *   ST3.  A batch whose `firstSeq` is not the journal's length is `invalid`, unless the journal holds these
 *         very records there. It was committed before, and is `committed` again without effect
 *         (`rules/batches.ts`).
 *   ST15. An ended session never changes again: batches are `invalid` and tell how it ended, cancels `ended`.
 *   ST19. Entries are numbered 0..n-1 without a gap, each beside its `append_entry` record. They keep their
 *         content to the byte, and are only ever appended.
 *   ST20. Text is kept exactly: any JSON text, NUL and lone surrogates as JSON escapes, blobs of any size.
 *   ST21. Everything that `commit` acknowledged survives closing and reopening (durable adapters only).
 *   ST23. A batch with an undeclared status transition is `invalid` (L1), and so is a batch that waits for
 *         nothing or pauses without a reason.
 *
 * Signals
 *
 *   ST8.  A session's signals are numbered in the order they were stored, and `arrivals` returns them in that
 *         order.
 *   ST9.  A signal is `duplicate` when the session has seen its id, or its `dedupKey` under the same name,
 *         even if that signal was consumed. A duplicate is not stored.
 *   ST10. A consumed signal is never returned again, and a batch that consumes a signal that is not pending
 *         is `invalid`.
 *   ST11. A signal to an ended session answers `ended`, and a signal to a session that does not exist
 *         `not_found`.
 *   ST12. Every arrival (a stored signal, or a cancel request that changes something) raises the session's
 *         `inbox`. A committed batch answers the `inbox` as of its own transaction, so no wake-up is lost
 *         (S2).
 *   ST22. `subscribe` reports every arrival at a session, and every end by `due`, in this process after it is
 *         stored.
 *
 * Claims and leases
 *
 *   ST6.  The tokens of a session's claims only grow, also across restarts. A claim is told the token of the
 *         claim before it, or nothing true of any claim where that is not known.
 *   ST7.  Another owner cannot claim a claimed session before its lease has passed or the claim was released.
 *         The same owner may claim it again, with a higher token, unless it asks `unlessHeld`.
 *   ST18. `due` returns the unclaimed sessions (never claimed, released, or the lease has passed) that have
 *         something to do by `now`, and when to look again. An ephemeral session that has begun is lost, and
 *         therefore due unless it is paused.
 *   ST37. `renew` extends the claims of an owner, or of the sessions that it names, to `now + leaseMs` at
 *         least, and answers their number. A lapsed claim that nobody took over is extended too, but no
 *         released claim and no claim of an ended session.
 *   ST38. A claim whose lease ends survives closing and reopening with its token and owner (durable adapters
 *         only). Its lease then lasts at least `leaseMs` from the first `now` that the reopened storage is
 *         told.
 *   ST39. A claim is told how many claims before it were lost since the session's last commit. A claim is
 *       lost
 *         when its lease runs out, or when it is released with `isLost`. A claim without an end is lost when
 *         its process dies. SQLite counts such a death where the owner before had died as well. A commit that
 *         records only lost attempts does not count as one.
 *   ST48. `heldClaims` lists the claims whose lease ends and has not passed by `now`, in the order of their
 *         sessions' ids, and changes nothing. It returns the length of each lease, the session's `inbox`, and
 *         the losses (ST39).
 *   ST50. A release, or a batch that ends its session, adds the run that its `run` note names to the
 *         session's document of ended runs. A cancel that ends a session adds the run of its claim
 *         (`transaction/ended-runs.ts`).
 *
 * Cancel and pause
 *
 *   ST16. After an acknowledged cancel a batch that says `completed` is `invalid`. A batch whose agent had
 *         not seen the cancel is committed, but the session stays `cancelling` without waits, and is
 *         therefore due (batches-4).
 *   ST17. A hard cancel ends the session at once. A graceful cancel sets a deadline, past which `due` ends
 *         the session, and a second graceful cancel changes nothing.
 *   ST30. A paused session is not due, and stays paused whatever its driver commits, short of an end. A
 *         resume, also by `SetBudget`, makes it `working` and keeps its recorded waits until its agent blocks
 *         again.
 *   ST31. `due` cancels a session past its `deadlineAt` as a graceful request would, with the cause
 *         `deadline`.
 *
 * Families
 *
 *   ST26. A batch's effects on other sessions are applied with it, in order, in one transaction, and only
 *         once. An effect on an ended or missing target does nothing, or reaches the target's successor
 *         (`transaction/cascade.ts`).
 *   ST27. The consequences of a change for the sessions above and below it are applied in the same
 *         transaction (`rules/consequences.ts`).
 *   ST35. A session keeps its placement, also when it is imported; without an owner it takes its parent's
 *         owner, and nothing else. All that an owner's session or schedule creates is that owner's, whatever
 *         its placement says.
 *   ST36. An effect of an owner's session or schedule on a session of another owner or of none does nothing,
 *         unless that session is the parent.
 *
 * Budgets
 *
 *   ST28. A batch's charges are decided and stored in its transaction, in order, each against the limits of
 *         all payers (B1, B2). A reservation or a settlement that is repeated changes nothing
 *         (`budget/budget.ts`).
 *   ST29. Below a tenth of a limit the payer's parent is sent `budget-low`, once until the limit is raised.
 *   ST51. An account says which part of its spent amount was charged for lost attempts. `set_budget` with
 *         `releaseLost` makes that part of this account unspent, once, and resumes sessions as a raise does.
 *   ST53. A limit may have a window (`budget/windows.ts`). `due` resumes a session that is paused for a
 *       window
 *         at the time that its refusal named (`exhausted.until`). The remaining amount of `load`
 *         and `arrivals` is as of the latest time that a call had.
 *   ST54. `set_budget` with `grant` empties a window of this account, and resumes sessions as a raise does.
 *   ST56. A signal that `spends` is charged to the payers of its session once, in the transaction that stores
 *       it. A
 *         duplicate charges nothing. The result says what is not spent of the limits.
 *
 * Import and moves
 *
 *   ST32. An imported session is stored whole or not at all, with the signals that come along. It behaves as
 *         if it had been created here, and if it exists the answer is `exists`. It is detached from a parent,
 *         payers and successors that were not imported with it (`rules/detachment.ts`).
 *   ST52. The sessions of a tree are imported all or none, and stay relatives of each other.
 *   ST45. From `begin_move` on only `end_move` changes a session: it is not due, its batches are `fenced`,
 *         and anything else answers `moved` with the destination. A session that `stayed` continues as
 *         before.
 *   ST46. An imported session keeps the reservations for its tasks and the signals that it has seen. Before a
 *         session moves back, its tombstone is deleted, alone.
 *
 * Titles
 *
 *   ST57. A session is created with the title that its creation names, or else with one that is made of its
 *         input. `set_title` replaces the title, also of an ended session, and nothing else. A title is one
 *         line of at most 80 characters (`title.ts`).
 *
 * Deletion
 *
 *   ST43. Only an ended session is deleted, with all sessions below it or only if there are none. A deletion
 *         is refused while any of them or of their successors is active, leaves nothing of them behind, and
 *         frees their ids.
 *   ST58. `remove_ended` deletes those of its sessions that ended before its time, and answers their number.
 *         A session stays while a session below it is stored, while its parent or a session that continues it
 *         is active, and while it moves. A damaged one stays as well. Where none is deleted, an audited
 *         removal leaves no row.
 *
 * Schedules
 *
 *   ST34. A schedule fires once for each of its times: the effect and the next time are one transaction, and
 *         a second attempt is `fenced`. A put does not change what has fired (`session/schedules.ts`). A
 *         paused schedule is never due, and a put that does not end its pause keeps it.
 *
 * Documents and audit
 *
 *   ST40. A document is put or removed only at its `expected` version, if one is given; otherwise `conflict`
 *         names its version, 0 if there is none. Each put makes the version one higher, and the body is kept
 *         to the byte.
 *   ST41. The reader returns the documents of a collection in the order of their ids, without the damaged
 *         ones.
 *   ST42. An audited change and its row are one transaction, whatever the change's result, which is returned.
 *         The rows are a chain of hashes in the order they were written.
 *   ST59. `trim_audit` removes rows from the oldest on, as far as they are older than its time, and never the
 *         newest. A row that it appends names the last removed one, so the chain still shows a row that was
 *         removed in another way. The rows keep their numbers.
 *
 * Reading
 *
 *   ST14. `load` returns the last checkpoint, every record after it and all pending signals, exactly as
 *         committed.
 *   ST33. `load` returns the states that a checkpoint's changes build on, from its `base` to the checkpoint
 *         before it.
 *   ST24. The reader returns sessions, journals, entries and signals as they were stored, and pages sessions
 *         newest or oldest first. A session's `updatedAt` is the time of the last change that was applied, also of an
 *         empty batch, but not of a title. Its `cost` is the sum of the usage in its journal.
 *   ST44. The reader's filters of sessions (owner, agent, status, parent) hold together, page by page.
 *   ST60. The reader counts sessions by status, all of them or those that its filters leave, as far as the limit
 *         goes.
 *   ST47. A follower of a session is notified after each change of its row is stored: at once of this
 *         process's changes, soon of others'. It is not notified after it left (adapters that have `follow`
 *         only).
 *   ST55. A follower of all sessions is notified like a follower of each (adapters that have `follow` only).
 */
export interface AgentStorage {
  readonly name: string;
  /** Whether acknowledged changes survive the end of the process. */
  readonly durable: boolean;
  /** How many groups may be committed at once, if they name nothing in common; 1 when absent. */
  readonly groupsMax?: number;

  /**
   * This storage's time, where it is not the caller's wall clock. A caller that drives sessions over this
   * storage passes this time back, and sets its timers by it.
   */
  now?(): number;

  /**
   * Apply a group of changes in one transaction.
   *
   * @returns one result per change, in the same order.
   * @throws UnavailableError when it is not known whether the group was applied; sending it again is safe
   *   (ST3, ST9, ST13).
   */
  commit(changes: readonly Change[], now: number): Promise<readonly ChangeResult[]>;

  /**
   * Claim the right to advance a session until `now + leaseMs`, which may be Infinity under one owner
   * process. `owner` names a process, or a part of one that keeps track of its own sessions (ST7).
   */
  claim(claim: {
    readonly sessionId: string;
    readonly owner: string;
    readonly now: number;
    readonly leaseMs: number;
    /** Refuse the claim also to the owner that holds it: for callers that claim on behalf of others. */
    readonly unlessHeld?: boolean;
  }): Promise<ClaimResult>;

  /**
   * How a thread renews claims while the event loop of its process is blocked. Absent where no lease needs
   * that, or no thread can.
   */
  renewal?(): ThreadRenewal;

  /**
   * Extend claims of an owner until `now + leaseMs` (ST37). Claims without an end stay as they are: with
   * `Infinity`, the call only shows that the process lives.
   */
  renew(renewal: {
    readonly owner: string;
    /**
     * The sessions that the owner knows it holds; all its claims when absent. A claim whose reply was lost
     * must run out.
     */
    readonly sessionIds?: readonly string[];
    readonly now: number;
    readonly leaseMs: number;
  }): Promise<{ readonly sessions: number }>;

  /**
   * Claims that are held by a lease that ends (ST48). An owner whose claims never end keeps track of them
   * itself.
   */
  heldClaims(query: HeldClaimsQuery): Promise<readonly HeldClaim[]>;

  /** Everything that a process needs to continue a session that it has never seen. */
  load(sessionId: string): Promise<SessionSnapshot | undefined>;

  /**
   * Pending signals with a number above `after`, and what others decided about the session: a cancel, a move.
   *
   * @throws NotFoundError when there is no such session.
   */
  arrivals(sessionId: string, after: number): Promise<Arrivals>;

  /**
   * The conversation from its root to `leaf` (an entry's `id`), oldest first.
   *
   * @throws NotFoundError when there is no such session.
   * @throws CorruptRecordError when there is no such entry: leaves come from a journal.
   */
  conversation(sessionId: string, leaf: number): Promise<readonly Entry[]>;

  /**
   * At most `limit` sessions that have something to do now (ST18). They are submitted, working, cancelling
   * without waits, waiting past their `wakeAt`, or waiting for something that has arrived.
   *
   * The call first ends sessions whose cancel deadline has passed (ST17), and cancels those past their own
   * deadline (ST31). It resumes those whose window has rolled on (ST53).
   */
  due(query: {
    readonly now: number;
    readonly limit: number;
    /** Only sessions of these agents; of all when absent. */
    readonly agents?: readonly string[];
  }): Promise<Due>;

  /**
   * Report arrivals to a listener, which must not throw or call back synchronously. Returns the unsubscriber.
   */
  subscribe(listener: (arrival: Arrival) => void): () => void;

  /**
   * Call `onNotice` after each change of a session's row (ST47), whether or not the session exists. A notice
   * is only a reason to read, and there may be one too many. `isActive` says that the session is known to be
   * active here. `onNotice` must not throw or call back synchronously. Returns the unsubscriber.
   *
   * Without a `sessionId`, `onNotice` is called for every session (ST55), with the session if it is known.
   *
   * An adapter that receives no change notifications leaves this method out, and callers poll.
   */
  follow?(
    sessionId: string | undefined,
    onNotice: (isActive: boolean, session?: Session) => void,
  ): () => void;

  /**
   * Resolves with the reason when nothing can be stored here any more: `commit` and `claim` then reject, and
   * reads still answer. Never rejects. An adapter that cannot be lost, or does not know, leaves it out.
   */
  readonly lost?: Promise<HoldfastError> | undefined;

  /**
   * The texts that models are writing. `show` is absent where no other process shows these sessions, and
   * `watch` where none runs them.
   */
  readonly drafts?: Partial<SharedDrafts> | undefined;

  /** Reads for people: never on the path of a commit. */
  readonly reader: StorageReader;

  /** Release everything. Calls that are under way finish first. */
  close(): Promise<void>;
}

/** The number of sessions of each status that has some. */
export type SessionCounts = Readonly<Partial<Record<SessionStatus, number>>>;

/** Reads for people and tools. Paging by cursor; every list has a limit. */
export interface StorageReader {
  /**
   * Newest first, or with `oldestFirst` in the order of their creation. `before` is the last session id of
   * the page before.
   *
   * @throws NotFoundError when that one is not there any more.
   */
  sessions(query: {
    readonly limit: number;
    readonly before?: string;
    readonly oldestFirst?: true;
    readonly status?: SessionStatus;
    /** Only sessions whose placement names this owner. */
    readonly owner?: string;
    /** Only sessions of the agent with this name. */
    readonly agent?: string;
    /** Only the children of this session. */
    readonly parent?: string;
  }): Promise<readonly Session[]>;
  /**
   * How many sessions have each status, by one statement over an index. Without a filter at most `limit` of
   * each status are counted. With filters, which `sessions` has too, the newest `limit` that they leave are.
   */
  counts(query: {
    readonly limit: number;
    readonly owner?: string;
    readonly agent?: string;
    readonly parent?: string;
  }): Promise<SessionCounts>;
  /** One session; `undefined` for an unknown id. */
  session(sessionId: string): Promise<Session | undefined>;
  /** Records from `fromSeq` on, at most `limit`. */
  journal(sessionId: string, fromSeq: number, limit: number): Promise<readonly JournalRecord[]>;
  /** Entries from index `from` on, at most `limit`. */
  entries(sessionId: string, from: number, limit: number): Promise<readonly Entry[]>;
  /** The signals that the session has not taken yet, in the order in which they arrived. */
  pendingSignals(sessionId: string): Promise<readonly StoredSignal[]>;
  /** All signals that the session has seen, also its pending ones. Empty for a session that has ended. */
  seenSignals(sessionId: string): Promise<SeenSignals>;
  /** All schedules, the next to fire first. */
  schedules(): Promise<readonly Schedule[]>;
  /** One document; `undefined` for an unknown id. */
  document(collection: string, id: string): Promise<StoredDocument | undefined>;
  /** In the order of their ids, behind `after`. Fewer than `limit` are the last. */
  documents(query: {
    readonly collection: string;
    readonly after?: string;
    readonly limit: number;
  }): Promise<readonly StoredDocument[]>;
  /** In the order they were written, behind the row numbered `after`. */
  audit(query: { readonly after?: number; readonly limit: number }): Promise<readonly AuditRow[]>;
}
