// Where sessions live between runs, and while they run.
//
// The port knows nothing of agents, tasks or kernels: it keeps what it is given, in order, or says why not.

import type { JournalRecord } from "../journal/record.ts";
import type { Session, SessionStatus } from "../session/session.ts";
import type { HoldfastError } from "../errors/errors.ts";
import type { AuditRow } from "../session/audit.ts";
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

/**
 * Storage of agent sessions. Every method is one transaction; every method that depends on time is told the time.
 * Expected outcomes are values. An adapter passes when `storageConformance` passes; the clauses below are its tests.
 *
 *   ST1.  A change of `commit` is applied whole or not at all; its result says which.
 *   ST2.  A batch under anything but the newest claim's token is `fenced`: it changes nothing, and in particular
 *         consumes no signal.
 *   ST3.  A batch whose `firstSeq` is not the journal's length is `invalid`, unless it has records and the journal already
 *         holds these very ones there: then it is `committed`, as it was the first time, and nothing is applied again,
 *         whatever became of the session since. So is one without records, of a session that is minimal or ephemeral and goes
 *         on, when of the signals it consumes none is pending any more.
 *   ST4.  A change that is fenced, invalid or refused leaves its neighbours in the group untouched.
 *   ST5.  Changes of one group are applied in the order given, and later ones see earlier ones.
 *   ST6.  Tokens of a session's claims only grow, also over restarts.
 *   ST7.  A claimed session is not claimed by another owner before its lease has passed or it was released. Its own owner
 *         may claim it again, with a higher token, as the reply to the first claim may have been lost; `unlessHeld` it is busy
 *         for that one, too. A release `ifUnchanged` is `fenced` once anything was committed under the claim, also a batch
 *         without records, or has arrived.
 *   ST8.  Signals of a session are numbered in the order they were stored; `arrivals` gives them in that order.
 *   ST9.  A signal whose id the session has already seen, or whose `dedupKey` it has seen on a signal of this name, is
 *         `duplicate` and stores nothing, also after the first one was consumed.
 *   ST10. A consumed signal is never given again; a batch that consumes a signal that is not pending is `invalid`.
 *   ST11. A signal to a session that has ended is `ended`, to one that does not exist `not_found`.
 *   ST12. Every arrival (a stored signal, a cancel request that changes something) raises the session's `inbox`, and `commit` of a batch answers the inbox as it stands in the same
 *         transaction (S2: no lost wake-up).
 *   ST13. Creating a session that exists changes nothing and answers `exists`.
 *   ST14. `load` gives the last checkpoint, every record after it, and all pending signals; after a commit it gives
 *         exactly what was committed.
 *   ST15. A session that has ended never changes again: batches are `invalid`, cancels `ended`.
 *   ST16. After an acknowledged cancel the session cannot become `completed`: such a batch is `invalid`. One that says
 *         `working`, `waiting`, `input_required`, or `paused` for `budget_exceeded` or `agent_fault`, was made before its agent heard of
 *         it: it is committed, the session stays `cancelling` and stands on nothing, so it is due. An agent that has heard says
 *         `cancelling`.
 *   ST17. A hard cancel ends the session at once; a graceful one sets its deadline, and past it `due` ends the session. A
 *         second graceful one changes nothing.
 *   ST18. `due` names the sessions that are unclaimed (never claimed, released, or the lease has passed) and have something
 *         to do by `now`, and when to look again. An ephemeral one that has begun always has: it is lost.
 *   ST19. Entries are numbered 0..n-1 without gap, each beside its `append_entry` record, keep their content to the byte,
 *         and are only ever appended.
 *   ST20. Text is kept exactly: any JSON text, NUL and lone surrogates as JSON escapes, blobs of any size.
 *   ST21. What `commit` answered survives closing and opening again (durable adapters only).
 *   ST22. `subscribe` hears of every arrival at a session, and of an end by `due`, after it is stored, in this process.
 *   ST23. Undeclared transitions of a session's status are `invalid` (L1), and so is waiting for nothing, or pausing without
 *         a reason.
 *   ST24. The reader gives the same session, journal, entries and signals as were stored, and pages sessions newest first. A
 *         session's `updatedAt` is when the last change was applied to it, also a batch that holds nothing.
 *   ST25. A session may be created with its first batch: it is stored with both or not at all.
 *   ST26. A batch's effects on other sessions (creating them, signalling them, cancelling them) are applied with it, in order,
 *         in the same transaction; sent again, none is applied again. One that finds its target ended or gone does nothing
 *         and refuses nothing; where another took over from it, a cancel and an agent's signal are for that one. A child that
 *         cannot be made, as another session has its id, is told to its parent as one that failed; what is asked of it does nothing.
 *         One that is there already, asked for in the same way, is that child, and if it has ended its end is told again.
 *   ST27. What a change does to those above and below follows in the same transaction: a session that ends tells its parent
 *         once (or, when another took over from it, not at all), answers what its children asked of it and wait for, and has
 *         them cancelled unless they were to be left; what is asked of one that has ended is answered at once; a cancel
 *         reaches the whole tree below, whenever it came to be; a pause is told to the parent, and so is a cancel because of a
 *         budget, with the limit, before the end.
 *   ST28. Charges are decided in order, each against all payers, in the batch's transaction. Nothing is admitted above a limit
 *         (B1). Asking again for a task that is held for answers `admitted` and holds nothing more; settling one that is not
 *         held changes nothing: it was settled before. Accounts and holds survive like everything else (B2). Who takes over from
 *         a session has its payers, besides its own budget, and no later deadline. `load`, `commit` and `arrivals` answer what
 *         is left.
 *   ST29. Below a tenth of a limit the payer's parent is told `budget-low`, once until it is raised.
 *   ST30. A paused session is not due and stays paused whatever its driver commits, short of an end. Resuming makes it `working`;
 *         what it stood on stays named until its agent stands again, as it can be answered.
 *         Raising a budget resumes whoever below it is paused for want of one; that of a session that has ended can be raised
 *         as long as one below it goes on. Who was refused a turn pays for it when it is resumed, or stays paused.
 *   ST31. A session past its `deadlineAt` is cancelled by `due` as if asked gracefully, with the cause `deadline`.
 *   ST32. An imported session is stored whole or not at all, with the signals that come along, and is as if it had been made
 *         here; one that exists is `exists`.
 *   ST33. `load` gives the states a checkpoint's changes build on: of the checkpoints from its `base` to the one before it.
 *   ST34. A schedule fires once for each time it is due: its effect and its next time are one transaction, and whoever comes
 *         second is told `fenced`. Schedules that are due are found by `due`, those to come by its `nextAt`.
 *         It sends no signal as long as the one it sent last is unread. Put again with the same cron and zone it keeps its next
 *         time, put again at all what it fired last. Putting it answers it as it is stored.
 *   ST35. A session keeps its placement, also when it is imported. What has no owner of its own takes its parent's, and nothing
 *         else of its placement. What a session or a schedule with an owner makes is that owner's, whatever it says.
 *   ST36. An effect of a session or a schedule with an owner on a session of another owner, or of none, does nothing, as if that
 *         one were gone (ST26); a session reaches its parent of no owner all the same. Nor does what another owner's session is named as in
 *         a row that was brought in: a parent hears nothing of it and has it not below itself, a payer pays nothing for it, and an
 *         heir is none.
 *   ST37. `renew` makes every claim of an owner, or those of the sessions it names, last until `now + leaseMs` at least, also one whose lease has passed and that
 *         nobody else took, and answers how many they are. Claims that were released or taken over, and those of sessions that
 *         have ended, are none of them.
 *   ST38. A claim whose lease ends survives closing and opening again, with its token and its owner, and lasts its `leaseMs`
 *         at least from the first `now` that is told after that (durable adapters only).
 *   ST39. A claim is told how many before it ran out, unreleased, since the session's last commit that says more than which
 *         attempts were lost.
 *   ST40. A document is put or removed only at the version that is `expected`, if one is, else `conflict` says which it has;
 *         0 is that of one that does not exist. Each put makes the version one higher. A body is kept to the byte.
 *   ST41. The reader gives documents of a collection in the order of their ids, but those that are damaged.
 *   ST42. An audited change and its row are one transaction, whatever becomes of the change; its result is the change's. Rows are
 *         a chain of hashes, in the order they were written.
 *   ST43. Only a session that has ended is deleted, with all below it or with none there, and only when no session that took over
 *         from one of them goes on. Nothing of it is left that was its own, and a session of its id may be created anew.
 *   ST45. From `begin_move` on nothing changes a session but `end_move`: it is not due, batches of it are `fenced`, and other
 *         changes and claims of it are `moved`, saying where to. One that `stayed` goes on as before.
 *   ST46. An imported session brings what is held for its tasks and what it has seen of signals. Where it moved away from, its
 *         tombstone is deleted, alone, before it can come back.
 *   ST47. Who follows a session is told after each change of its row is stored, at once of what this process stores, soon of what
 *         others do, and not after having left (adapters that have `follow` only).
 *   ST48. `heldClaims` tells who holds which sessions by a lease that ends and has not passed by `now`, in the order of their ids. It
 *         tells the `leaseMs` of the last claim or renewal, how much has arrived for each session, and the losses before each claim
 *         that no commit has taken back yet (ST39). It changes nothing.
 *   ST49. A session made `under` a claim of another one is made only while that is the other's newest claim, unreleased, and its session
 *         has not ended, else `fenced`; and once under it: made before and deleted since it is `duplicate`. One that exists is `exists`.
 *   ST50. A release, or a batch that ends its session, adds the run that its `run` note names to the session's document of ended runs
 *         (`transaction/ended-runs.ts`), in the same transaction. A change that is not applied adds none; deletion removes the document.
 *         A cancel that ends a session adds the run of its unreleased claim, with the owner as its holder, if the lease ends. A run is
 *         added once.
 *   ST51. An account says which part of what it has spent was charged for lost attempts. `set_budget` with `releaseLost` makes that part
 *         of this account unspent, once, and resumes as a raise does (ST30). The accounts above and below keep theirs.
 *   ST44. The reader's filters of sessions (owner, agent, status, parent) hold together, page by page.
 */
export interface AgentStorage {
  readonly name: string;
  /** Whether what was acknowledged survives the end of the process. */
  readonly durable: boolean;
  /** How many groups it may be given at once, of changes that name nothing in common; 1 when absent. */
  readonly groupsMax?: number;

  /**
   * What time it is to this storage, where that is not the wall clock of whoever asks: whoever drives sessions over it tells it this
   * time, and sets timers by it.
   */
  now?(): number;

  /**
   * Apply a group of changes in one transaction.
   *
   * @returns one result per change, in the same order.
   * @throws UnavailableError when it is not known whether the group was applied; sending it again is safe (ST3, ST9, ST13).
   */
  commit(changes: readonly Change[], now: number): Promise<readonly ChangeResult[]>;

  /**
   * Take the right to advance a session until `now + leaseMs` (which may be Infinity under one owner process). `owner` names
   * one process, or one part of it that keeps its own account of what it runs (ST7).
   */
  claim(claim: {
    readonly sessionId: string;
    readonly owner: string;
    readonly now: number;
    readonly leaseMs: number;
    /** Refuse it to the owner itself, too, while it holds it: for who claims in the name of others. */
    readonly unlessHeld?: boolean;
  }): Promise<ClaimResult>;

  /**
   * Go on with claims of an owner until `now + leaseMs` (ST37). Claims for ever are none of its affair: they stay so.
   */
  renew(renewal: {
    readonly owner: string;
    /** The sessions it knows that it holds; all it has claimed when absent. What it was given and never heard of must run out. */
    readonly sessionIds?: readonly string[];
    readonly now: number;
    readonly leaseMs: number;
  }): Promise<{ readonly sessions: number }>;

  /** Claims that are held by a lease that ends (ST48). Those of one owner process, which never end, are its own affair. */
  heldClaims(query: HeldClaimsQuery): Promise<readonly HeldClaim[]>;

  /** Everything a process that never saw the session needs to go on with it. */
  load(sessionId: string): Promise<SessionSnapshot | undefined>;

  /**
   * Pending signals with a number above `after`, and what others decide of the session: a cancel, a move.
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
   * Sessions to run now: submitted or working, waiting with `wakeAt` passed, waiting on something that has arrived, or
   * cancelling and told to wait for nothing; at most `limit`. Before it answers, it ends sessions whose cancel deadline has
   * passed (ST17) and cancels those past their own (ST31).
   */
  due(query: {
    readonly now: number;
    readonly limit: number;
    /** Only sessions of these agents; of all when absent. */
    readonly agents?: readonly string[];
  }): Promise<Due>;

  /** Be told of arrivals. The listener must not throw and must not call back synchronously. Returns the unsubscriber. */
  subscribe(listener: (arrival: Arrival) => void): () => void;

  /**
   * Have `onNotice` called whenever a session's row has changed (ST47), whether there is such a session or not; a notice is only a
   * reason to look, and may be one too many; `goesOn` when it is known that it has not ended and has not moved away. It must not throw and must not
   * call back synchronously. Returns how to leave. An adapter that cannot tell leaves it out: then whoever wants to know looks again
   * and again.
   */
  follow?(sessionId: string, onNotice: (goesOn: boolean) => void): () => void;

  /**
   * Resolves, with the reason, when nothing can be stored here any more: `commit` and `claim` reject with it from then on, and reads
   * still answer. Never rejects. An adapter that cannot be lost, or does not know, leaves it out.
   */
  readonly lost?: Promise<HoldfastError> | undefined;

  /** Reads for people: never on the path of a commit. */
  readonly reader: StorageReader;

  /** Release everything. Calls that are under way finish first. */
  close(): Promise<void>;
}

/** Reads for people and tools. Paging by cursor; every list has a limit. */
export interface StorageReader {
  /**
   * Newest first. `before` is the last session id of the page before.
   *
   * @throws NotFoundError when that one is not there any more.
   */
  sessions(query: {
    readonly limit: number;
    readonly before?: string;
    readonly status?: SessionStatus;
    /** Only those whose placement names this owner. */
    readonly owner?: string;
    /** Only those of the agent of this name. */
    readonly agent?: string;
    /** Only the children of this one. */
    readonly parent?: string;
  }): Promise<readonly Session[]>;
  session(sessionId: string): Promise<Session | undefined>;
  /** Records from `fromSeq` on, at most `limit`. */
  journal(sessionId: string, fromSeq: number, limit: number): Promise<readonly JournalRecord[]>;
  /** Entries from index `from` on, at most `limit`. */
  entries(sessionId: string, from: number, limit: number): Promise<readonly Entry[]>;
  pendingSignals(sessionId: string): Promise<readonly StoredSignal[]>;
  /** Of all its signals, those that wait for it too. Nothing for a session that has ended. */
  seenSignals(sessionId: string): Promise<SeenSignals>;
  /** All of them, the next to fire first. */
  schedules(): Promise<readonly Schedule[]>;
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
