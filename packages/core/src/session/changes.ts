// Change, ChangeResult and SessionSnapshot: what a storage is asked to write, how it answers, and what it returns.
//
// This file has types only. `ports/storage.ts` says what each change promises (ST1 to ST51).

import type { JsonText } from "../json/json.ts";
import type { JournalRecord } from "../journal/record.ts";
import type { Admission, Budget, Charge, Exhausted, Hold } from "./budget.ts";
import type { Remaining } from "../journal/amounts.ts";
import type {
  AgentRef,
  ParentRef,
  PauseReason,
  Persistence,
  Placement,
  Session,
  SessionStatus,
  SharedContext,
  Wait,
} from "./session.ts";
import type { CancelCause } from "../journal/amounts.ts";
import type { RecordedError } from "../errors/errors.ts";
import type { Audit } from "./audit.ts";
import type { PutDocument, RemoveDocument } from "./stored-documents.ts";
import type { PutSchedule, RemoveSchedule, Schedule } from "./schedules.ts";

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

/** Facts about a run that a storage cannot know without the coordinator. */
export interface RunNote {
  /** The runner that held the claim, by its id. */
  readonly holder: string;
  /** When the claim was made, epoch milliseconds; absent when that is not known. */
  readonly since?: number;
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
