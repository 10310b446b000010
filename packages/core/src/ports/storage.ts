// Where sessions live between runs, and while they run.
//
// The port knows nothing of agents, tasks or kernels: it keeps what it is given, in order, or says why not.

import type { JsonText } from "../json/json.ts";
import type { JournalRecord } from "../journal/record.ts";
import type { Admission, Budget, Charge, Exhausted, Hold, Remaining } from "../session/budget.ts";
import type {
  AgentRef,
  CancelCause,
  ParentRef,
  PauseReason,
  Persistence,
  Placement,
  Session,
  SessionStatus,
  SharedContext,
  Wait,
} from "../session/session.ts";
import type { HoldfastError, RecordedError } from "../errors/errors.ts";
import type { Audit, AuditRow } from "../session/audit.ts";
import type { ClaimResult, HeldClaim } from "../session/claim-results.ts";
import type { PutDocument, RemoveDocument, StoredDocument } from "../session/stored-documents.ts";
import type { RunNote } from "../session/ended-runs.ts";
import type { PutSchedule, RemoveSchedule, Schedule } from "../session/schedules.ts";

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
 *         transaction (K10: no lost wake-up).
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
 *         (`session/ended-runs.ts`), in the same transaction. A change that is not applied adds none; deletion removes the document.
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
  heldClaims(query: {
    readonly now: number;
    readonly limit: number;
    /** Only the one of this session. */
    readonly sessionId?: string;
    /** Only those of this owner. */
    readonly owner?: string;
    /** Only sessions behind this id. */
    readonly after?: string;
  }): Promise<readonly HeldClaim[]>;

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

export type Change =
  | CreateSession
  | ImportSession
  | SendSignal
  | RequestCancel
  | PauseSession
  | ResumeSession
  | SetBudget
  | CommitBatch
  | ReleaseClaim
  | PutSchedule
  | RemoveSchedule
  | FireSchedule
  | DeleteSession
  | BeginMove
  | EndMove
  | PutDocument
  | RemoveDocument
  | Audited;

export interface CreateSession {
  readonly type: "create_session";
  readonly sessionId: string;
  readonly agent: AgentRef;
  readonly input: JsonText | undefined;
  readonly seed: number;
  readonly flags: number;
  readonly format: number;
  readonly parent?: ParentRef;
  /** 0 for one that nobody asked for. */
  readonly depth?: number;
  readonly shared?: SharedContext;
  readonly persistence?: Exclude<Persistence, "full">;
  readonly budget?: Budget;
  readonly deadlineAt?: number;
  readonly resumedFrom?: JsonText;
  readonly placement?: Placement;
  /** Claim it in the same transaction for this owner; the result carries the token. */
  readonly claimFor?: { readonly owner: string; readonly leaseMs: number };
  /** What its agent did before it first waited, in the same transaction and under that claim, which it needs. */
  readonly first?: FirstBatch;
  /** Only while another session is held so, and once (ST49). Not for effects: they go with a batch, which says both. */
  readonly under?: HeldAs;
}

/** A claim of a session, as who says that it holds it knows it. */
export interface HeldAs {
  readonly sessionId: string;
  readonly token: number;
  /** Whose it must be; anybody's when absent. */
  readonly owner?: string;
}

/** A batch at the beginning of a journal, when nothing can have arrived yet. */
export type FirstBatch = Pick<CommitBatch, "records" | "entries" | "session" | "effects" | "charges">;

/** A session made elsewhere, or from another one: everything it is, under an id that is not taken yet. Nobody holds it. */
export interface ImportSession {
  readonly type: "import_session";
  readonly sessionId: string;
  /** Its row. `inbox` is 0, and it has no claim. */
  readonly session: Session;
  /** From position 0 on, `session.nextSeq` of them. */
  readonly records: readonly JournalRecord[];
  /** All of them, in order. */
  readonly entries: readonly Entry[];
  /** Nobody has read them; they arrive with it, oldest first. */
  readonly signals?: readonly ImportedSignal[];
  /** What is held for its tasks: together what its account has reserved. None by default. */
  readonly holds?: readonly Hold[];
  readonly seen?: SeenSignals;
}

/** What a session remembers of signals it once took, and of what was made under its claims, so that neither comes again (ST9, ST49). */
export interface SeenSignals {
  readonly ids: readonly string[];
  /** Name and key of each. */
  readonly dedupKeys: readonly (readonly [name: string, dedupKey: string])[];
}

export type ImportedSignal = Pick<SendSignal, "signalId" | "name" | "payload">;

export interface SendSignal {
  readonly type: "send_signal";
  readonly sessionId: string;
  readonly signalId: string;
  readonly name: string;
  readonly payload: JsonText | undefined;
  readonly dedupKey?: string;
}

export interface RequestCancel {
  readonly type: "request_cancel";
  readonly sessionId: string;
  readonly mode: "graceful" | "hard";
  readonly graceMs: number;
  readonly reason?: string;
  readonly cause?: CancelCause;
  /** The limit that `budget_exceeded` is about. */
  readonly exhausted?: Exhausted;
}

/** A person wants it to stand still. */
export interface PauseSession {
  readonly type: "pause_session";
  readonly sessionId: string;
}

/** A person has mended what it was paused for. */
export interface ResumeSession {
  readonly type: "resume_session";
  readonly sessionId: string;
}

/** Replace limits of a session that has a budget; what is absent stays. */
export interface SetBudget {
  readonly type: "set_budget";
  readonly sessionId: string;
  readonly limits: Budget;
  /** What its account was charged for lost attempts is to be unspent (ST51). */
  readonly releaseLost?: true;
}

/** Forget a session that has ended, and with `delete` all below it. */
export interface DeleteSession {
  readonly type: "delete_session";
  readonly sessionId: string;
  /** What becomes of sessions below it: they stand in its way, or go with it. */
  readonly subtree: "refuse" | "delete";
}

/** Freeze a session that goes to live in another storage. The same again is the same. */
export interface BeginMove {
  readonly type: "begin_move";
  readonly sessionId: string;
  readonly moveId: string;
  /** For people: where to. */
  readonly to: string;
}

/** It lives there, for good; or it is known not to, and goes on here. */
export interface EndMove {
  readonly type: "end_move";
  readonly sessionId: string;
  readonly moveId: string;
  readonly outcome: "moved" | "stayed";
}

/** Apply a change, and record that it was asked for and what became of it. Without a change: record something that was done. */
export interface Audited {
  readonly type: "audited";
  readonly change?: Exclude<Change, Audited>;
  readonly audit: Audit;
}

/** What a batch does to other sessions. */
export type Effect = CreateSession | SendSignal | RequestCancel;

/** One segment: everything asked for, and everything delivered, between two commits. */
export interface CommitBatch {
  readonly type: "commit_batch";
  readonly sessionId: string;
  readonly token: number;
  /** The journal's length before this batch; `records` are contiguous from here. May be empty of records. */
  readonly firstSeq: number;
  readonly records: readonly JournalRecord[];
  readonly entries: readonly NewEntry[];
  /** Ids of pending signals these records consume, each once. */
  readonly consumed: readonly string[];
  /** What becomes of the session; what is absent stays. */
  readonly session?: SessionPatch;
  readonly effects?: readonly Effect[];
  readonly charges?: readonly Charge[];
  /** Keep a record of the run that this batch is of, if the batch ends its session (ST50). */
  readonly run?: RunNote;
}

export interface SessionPatch {
  readonly status: SessionStatus;
  readonly pauseReason?: PauseReason;
  readonly exhausted?: Exhausted;
  /** What it stands on; replaces the former waits. */
  readonly waits?: readonly Wait[];
  /** `undefined` clears it whenever `waits` is given. */
  readonly wakeAt?: number;
  readonly turn?: number;
  readonly output?: JsonText;
  readonly error?: RecordedError;
  readonly progress?: JsonText;
  /** The session that takes over from this one, which ends by it. */
  readonly handedOffTo?: string;
  /** From now on everything of it survives. */
  readonly persistence?: "full";
  /** What its agent was told of an earlier try: with all else that survives from now on. */
  readonly resumedFrom?: JsonText;
}

export interface ReleaseClaim {
  readonly type: "release_claim";
  readonly sessionId: string;
  readonly token: number;
  /** What its row said when it was claimed: then it is released only if it says so still. */
  readonly ifUnchanged?: Pick<Session, "nextSeq" | "updatedAt">;
  /** Keep a record of the run that ends with this claim (ST50). */
  readonly run?: RunNote;
}

/** It is due at `dueAt`, as stored: do what it says, and set when it fires next. */
export interface FireSchedule {
  readonly type: "fire_schedule";
  readonly scheduleId: string;
  readonly dueAt: number;
  readonly nextAt: number;
  readonly effect: CreateSession | SendSignal;
}

/** What became of a batch's charges. */
export interface Paid {
  /** One for each `reserve` and `turn` among them. */
  readonly admissions?: readonly Admission[];
  /** What is left to spend, when anybody pays for the session. */
  readonly remaining?: Remaining;
}

/** Results by what was asked; `invalid` carries a reason for people. */
export type ChangeResult =
  | ({ readonly status: "created"; readonly token?: number } & Paid)
  | { readonly status: "exists" }
  | { readonly status: "stored"; readonly order: number; readonly awaited: boolean }
  | { readonly status: "duplicate" }
  | { readonly status: "not_found" }
  | { readonly status: "ended"; readonly sessionStatus: SessionStatus }
  | { readonly status: "requested"; readonly sessionStatus: SessionStatus }
  | ({ readonly status: "committed"; readonly inbox: number } & Paid)
  /**
   * A schedule or a document was stored or removed, or it has fired. `version` is that of a document that was put, `schedule` what is
   * stored of a schedule that was: a coordinator of an earlier version does not say it.
   */
  | { readonly status: "done"; readonly version?: number; readonly schedule?: Schedule }
  /** The version the document has. */
  | { readonly status: "conflict"; readonly version: number }
  | { readonly status: "deleted"; readonly sessions: number }
  /** This one stands in the way: the session itself, one below it, or one that took over from one of them. */
  | { readonly status: "not_ended"; readonly sessionId: string; readonly sessionStatus: SessionStatus }
  | { readonly status: "has_children" }
  /** It is on its way to another storage, or there. */
  | { readonly status: "moved"; readonly to: string }
  | { readonly status: "fenced" }
  /** `isTooLarge`: it is never taken as it is, whatever else becomes of the session. */
  | { readonly status: "invalid"; readonly reason: string; readonly isTooLarge?: true }
  | { readonly status: "released" };

export interface NewEntry {
  /** Number of the `append_entry` command. */
  readonly id: number;
  /** 0..n-1 over the session. */
  readonly index: number;
  /** Number of the entry it hangs under; absent for a root. */
  readonly parent?: number;
  readonly role: string;
  readonly turn: number;
  readonly content: JsonText;
}

export interface Entry extends NewEntry {
  readonly createdAt: number;
}

export interface StoredSignal {
  readonly signalId: string;
  readonly name: string;
  readonly payload: JsonText | undefined;
  /** The session's `inbox` when it was stored: grows, with gaps. */
  readonly order: number;
  readonly sentAt: number;
}

export interface Arrivals {
  readonly inbox: number;
  readonly signals: readonly StoredSignal[];
  readonly session: Pick<Session, "status" | "cancel" | "move">;
  /** What is left to spend, when anybody pays for the session: others may have spent of it. */
  readonly remaining?: Remaining;
}

export interface SessionSnapshot {
  readonly session: Session;
  /** From the last checkpoint's record on (that record first), or from 0. */
  readonly records: readonly JournalRecord[];
  readonly signals: readonly StoredSignal[];
  /** Payloads of the checkpoints the last one builds on, from its `base` on; empty when it holds its state whole. */
  readonly states: readonly JsonText[];
  /** Tasks that are paid for in advance. */
  readonly holds: readonly Hold[];
  /** What is left to spend, when anybody pays for the session. */
  readonly remaining?: Remaining;
}

export interface Arrival {
  readonly sessionId: string;
  /** Whether it satisfies something the session waits for. */
  readonly awaited: boolean;
}

export interface Due {
  readonly sessionIds: readonly string[];
  readonly schedules: readonly Schedule[];
  /** The earliest time after `now` when there can be more without an arrival: a `wakeAt`, a cancel deadline, a lease's end. */
  readonly nextAt?: number;
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
