// Change, ChangeResult and SessionSnapshot: what a storage is asked to write, how it answers, and what it
// returns.
//
// This file has types only. `ports/storage.ts` says what each change promises (ST1 to ST57).

import type { JsonText } from "../json/json.ts";
import type { JournalRecord } from "../journal/record.ts";
import type { Admission, Budget, Charge, Exhausted, Hold } from "../budget/budget.ts";
import type { Amount, RemainingBudget } from "../journal/amounts.ts";
import type { Per } from "../budget/windows.ts";
import type {
  AgentRef,
  ParentRef,
  PauseReason,
  Persistence,
  Placement,
  QuotaWait,
  Session,
  SessionStatus,
  SharedContext,
  GivenEnvironment,
  Wait,
} from "./session.ts";
import type { CancelCause } from "../journal/amounts.ts";
import type { RecordedError } from "../errors/recorded-error.ts";
import type { Audit, TrimAudit } from "./audit/audit.ts";
import type { PutDocument, RemoveDocument } from "./stored-documents.ts";
import type { PutSchedule, RemoveSchedule, Schedule } from "./schedules.ts";

export type Change =
  | CreateSession
  | ImportSession
  | ImportTree
  | SendSignal
  | RequestCancel
  | PauseSession
  | ResumeSession
  | SetBudget
  | SetTitle
  | CommitBatch
  | ReleaseClaim
  | PutSchedule
  | RemoveSchedule
  | FireSchedule
  | DeleteSession
  | RemoveEnded
  | TrimAudit
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
  /** The title in the place of the one that is made of the input. */
  readonly title?: string;
  readonly seed: number;
  readonly flags: number;
  readonly format: number;
  readonly parent?: ParentRef;
  /** 0 for a session that no other session created. */
  readonly depth?: number;
  readonly shared?: SharedContext;
  /** That of the parent or the predecessor when absent. */
  readonly environment?: GivenEnvironment;
  readonly persistence?: Exclude<Persistence, "full">;
  readonly budget?: Budget;
  readonly deadlineAt?: number;
  readonly resumedFrom?: JsonText;
  readonly placement?: Placement;
  /** Claim the session in the same transaction for this owner; the result has the token. */
  readonly claimFor?: { readonly owner: string; readonly leaseMs: number };
  /**
   * The batch of its agent up to the first wait, in the same transaction. It is committed under the claim of
   * `claimFor`.
   */
  readonly first?: FirstBatch;
  /**
   * Create the session only while this claim of another session is held, and once (ST49). Not for effects,
   * because a batch has its own claim.
   */
  readonly under?: HeldAs;
}

/** A claim of a session, as its holder knows it. */
export interface HeldAs {
  readonly sessionId: string;
  readonly token: number;
  /** The owner that the claim must have; any owner when absent. */
  readonly owner?: string;
}

/** A batch at the beginning of a journal, when no signal can have arrived yet. */
export type FirstBatch = Pick<CommitBatch, "records" | "entries" | "session" | "effects" | "charges">;

/**
 * A session that comes from elsewhere, or a fork: everything it has, under an id that is not taken. It has no
 * claim.
 */
export interface ImportSession extends ImportedSession {
  readonly type: "import_session";
}

/**
 * A session with the sessions below it that come from elsewhere, under ids that are not taken. They are
 * stored all or not at all.
 */
export interface ImportTree {
  readonly type: "import_tree";
  /** The first of `sessions`. */
  readonly sessionId: string;
  /** Each session after its parent, or after the session that it took over from. */
  readonly sessions: readonly ImportedSession[];
}

export interface ImportedSession {
  readonly sessionId: string;
  /** Its row, with an `inbox` of 0. */
  readonly session: Session;
  /** All `session.nextSeq` records, from position 0 on. */
  readonly records: readonly JournalRecord[];
  /** All entries, in order. */
  readonly entries: readonly Entry[];
  /** Its unread signals. They arrive with the session, oldest first. */
  readonly signals?: readonly ImportedSignal[];
  /** The reservations for its tasks. Together they are what its account has reserved. Empty when absent. */
  readonly holds?: readonly Hold[];
  readonly seen?: SeenSignals;
}

/**
 * The marks of signals that a session took and of sessions that were created under its claims. A known mark
 * makes a duplicate (ST9, ST49).
 */
export interface SeenSignals {
  readonly ids: readonly string[];
  /** The name and the key of each. */
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
  /** The amount that the sender has used since its last signal, charged when this one is stored (ST56). */
  readonly spends?: Amount;
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

/** Pause a session because a person asks for it. */
export interface PauseSession {
  readonly type: "pause_session";
  readonly sessionId: string;
}

/** Resume a session after a person has fixed the cause of the pause. */
export interface ResumeSession {
  readonly type: "resume_session";
  readonly sessionId: string;
}

/**
 * Replace limits of a session's budget; absent limits stay. Sessions that are paused because this account was
 * exhausted are resumed (ST30). A resumed session pays for a turn that was refused to it, or stays paused.
 * The account of an ended session can change while it pays for an active session.
 */
export interface SetBudget {
  readonly type: "set_budget";
  readonly sessionId: string;
  readonly limits: Budget;
  /**
   * Make unspent what the account was charged for lost attempts (ST51). The accounts above and below do not
   * change.
   */
  readonly releaseLost?: true;
  /** Empty a window of this account: nothing is spent in it yet (ST54). Other accounts do not change. */
  readonly grant?: Per;
}

/** Replace the title of a session, also of one that has ended. Without a title the session has none. */
export interface SetTitle {
  readonly type: "set_title";
  readonly sessionId: string;
  readonly title?: string;
}

/** Delete a session that has ended, and with `delete` all sessions below it. */
export interface DeleteSession {
  readonly type: "delete_session";
  readonly sessionId: string;
  /** Whether sessions below it refuse the deletion or are deleted with it. */
  readonly subtree: "refuse" | "delete";
}

/** Delete those of these sessions that ended before a time, in this order: children first (ST58). */
export interface RemoveEnded {
  readonly type: "remove_ended";
  readonly sessionIds: readonly string[];
  /** Epoch milliseconds. */
  readonly endedBefore: number;
}

/** Freeze a session that moves to another storage. Freezing it again for the same move changes nothing. */
export interface BeginMove {
  readonly type: "begin_move";
  readonly sessionId: string;
  readonly moveId: string;
  /** The destination, for people to read. */
  readonly to: string;
}

/**
 * End a move: the session lives at its destination for good, or is known not to be there and continues here.
 */
export interface EndMove {
  readonly type: "end_move";
  readonly sessionId: string;
  readonly moveId: string;
  readonly outcome: "moved" | "stayed";
}

/**
 * Apply a change, and record the request and its result. Without a change, record something that was done.
 */
export interface Audited {
  readonly type: "audited";
  readonly change?: Exclude<Change, Audited>;
  readonly audit: Audit;
}

/** A change that a batch makes to another session. */
export type Effect = CreateSession | SendSignal | RequestCancel;

/** One segment: everything asked for, and everything delivered, between two commits. */
export interface CommitBatch {
  readonly type: "commit_batch";
  readonly sessionId: string;
  readonly token: number;
  /** The journal's length before this batch. The `records`, if there are any, are contiguous from here. */
  readonly firstSeq: number;
  readonly records: readonly JournalRecord[];
  readonly entries: readonly NewEntry[];
  /** Ids of pending signals these records consume, each once. */
  readonly consumed: readonly string[];
  /** The change of the session's row; absent fields stay. */
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
  readonly quota?: QuotaWait;
  /** The waits that the session is blocked on; they replace the former ones. */
  readonly waits?: readonly Wait[];
  /** `undefined` clears it whenever `waits` is given. */
  readonly wakeAt?: number;
  readonly turn?: number;
  readonly output?: JsonText;
  readonly error?: RecordedError;
  readonly progress?: JsonText;
  /** The successor of the session, which ends by this hand-over. */
  readonly handedOffTo?: string;
  /** Everything of the session survives from now on. */
  readonly persistence?: "full";
  /** The progress of an earlier try that its agent was told. It survives from now on like all else. */
  readonly resumedFrom?: JsonText;
}

export interface ReleaseClaim {
  readonly type: "release_claim";
  readonly sessionId: string;
  readonly token: number;
  /**
   * Release the claim only while the row is as it was when the claim was made (ST7). Any commit, also of an
   * empty batch, and any arrival changes the row.
   */
  readonly ifUnchanged?: Pick<Session, "nextSeq" | "updatedAt">;
  /** Keep a record of the run that ends with this claim (ST50). */
  readonly run?: RunNote;
  /** The holder's process is known to be gone: the release counts as a loss (ST39). */
  readonly isLost?: true;
  /**
   * The holder's code diverged from the journal before it committed anything. It is for a coordinator, which
   * offers the session to a runner with earlier code. Storage releases the claim as usual.
   */
  readonly diverged?: true;
}

/** Facts about a run that a storage cannot know without the coordinator. */
export interface RunNote {
  /** The runner that held the claim, by its id. */
  readonly holder: string;
  /** When the claim was made, epoch milliseconds; absent when that is not known. */
  readonly since?: number;
}

/** Fire a schedule that is due at `dueAt`, as stored: apply its effect, and set the next time. */
export interface FireSchedule {
  readonly type: "fire_schedule";
  readonly scheduleId: string;
  readonly dueAt: number;
  readonly nextAt: number;
  readonly effect: CreateSession | SendSignal;
}

/** The results of a batch's charges. */
export interface Paid {
  /** One admission for each `reserve` and `turn` among the charges. */
  readonly admissions?: readonly Admission[];
  /** The amount left to spend, if an account pays for the session. */
  readonly remaining?: RemainingBudget;
}

/** The results of changes. `invalid` has a reason for people to read. */
export type ChangeResult =
  | ({ readonly status: "created"; readonly token?: number } & Paid)
  | { readonly status: "exists" }
  /** `unspent` answers a signal that spends (ST56). */
  | {
      readonly status: "stored";
      readonly order: number;
      readonly awaited: boolean;
      readonly unspent?: RemainingBudget;
    }
  | { readonly status: "duplicate"; readonly unspent?: RemainingBudget }
  | { readonly status: "not_found" }
  | { readonly status: "ended"; readonly sessionStatus: SessionStatus }
  | { readonly status: "requested"; readonly sessionStatus: SessionStatus }
  | ({ readonly status: "committed"; readonly inbox: number } & Paid)
  /**
   * A schedule or a document was stored or removed, or a schedule fired. `version` is the version of a
   * document that was put. `schedule` is the stored schedule after a put.
   */
  | { readonly status: "done"; readonly version?: number; readonly schedule?: Schedule }
  /** The version that the document has. */
  | { readonly status: "conflict"; readonly version: number }
  | { readonly status: "deleted"; readonly sessions: number }
  | { readonly status: "trimmed"; readonly rows: number }
  /**
   * The active session that prevents the deletion: the session itself, one below it, or a successor of one of
   * them.
   */
  | { readonly status: "not_ended"; readonly sessionId: string; readonly sessionStatus: SessionStatus }
  | { readonly status: "has_children" }
  /** The session is moving to another storage, or has moved. */
  | { readonly status: "moved"; readonly to: string }
  | { readonly status: "fenced" }
  /**
   * With `isTooLarge`, storage never accepts this change, whatever happens to the session. `endedAs` tells
   * how the session of a batch had ended before it.
   */
  | {
      readonly status: "invalid";
      readonly reason: string;
      readonly isTooLarge?: true;
      readonly endedAs?: SessionStatus;
    }
  | { readonly status: "released" };

export interface NewEntry {
  /** Number of the `append_entry` command. */
  readonly id: number;
  /** 0..n-1 over the session. */
  readonly index: number;
  /** Number of the parent entry; absent for a root. */
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
  /** The session's `inbox` when the signal was stored. The numbers grow, with gaps. */
  readonly order: number;
  readonly sentAt: number;
}

export interface Arrivals {
  readonly inbox: number;
  readonly signals: readonly StoredSignal[];
  readonly session: Pick<Session, "status" | "cancel" | "move">;
  /** The amount left to spend, if an account pays for the session. Other sessions may have spent from it. */
  readonly remaining?: RemainingBudget;
}

export interface SessionSnapshot {
  readonly session: Session;
  /** From the last checkpoint's record on (that record first), or from 0. */
  readonly records: readonly JournalRecord[];
  readonly signals: readonly StoredSignal[];
  /**
   * Payloads of the checkpoints the last one builds on, from its `base` on; empty when it holds its state
   * whole.
   */
  readonly states: readonly JsonText[];
  /** The reservations of tasks that have not settled. */
  readonly holds: readonly Hold[];
  /** The amount left to spend, if an account pays for the session. */
  readonly remaining?: RemainingBudget;
}

export interface Arrival {
  readonly sessionId: string;
  /** Whether it satisfies something the session waits for. */
  readonly awaited: boolean;
}

export interface Due {
  readonly sessionIds: readonly string[];
  /** The schedules that are due: each fires for its `nextAt`. */
  readonly schedules: readonly Schedule[];
  /**
   * The earliest time after `now` when there can be more without an arrival. It is a `wakeAt`, a cancel
   * deadline, a lease's end or the next time of a schedule.
   */
  readonly nextAt?: number;
}
