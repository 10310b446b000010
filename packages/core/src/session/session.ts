// A session's row and its transitions, as pure functions.
//
//   submitted → working ⇄ waiting | input_required → completed | failed | cancelled
//   working, waiting, input_required → cancelling → cancelled | failed
//   anything that has not ended ⇄ paused(reason)
//
// `submitted`: stored, its agent never called. `working`: it has something to do, whoever does it. `waiting`: it stands on
// what its `waits` name. `input_required`: the same, and one of them is a person. `cancelling`: a graceful cancel was
// acknowledged; from here no path leads to `completed`. `paused`: a person can mend what is in `reason`. `completed`,
// `failed`, `cancelled`: final. What is not listed in `NEXT` does not happen (L1).

import type { RecordedError } from "../errors.ts";
import type { JsonText } from "../json.ts";
import type { AnswerShape } from "../journal/approval.ts";

export type SessionStatus =
  | "submitted"
  | "working"
  | "waiting"
  | "input_required"
  | "paused"
  | "cancelling"
  | "completed"
  | "failed"
  | "cancelled";

export type PauseReason = "by_user" | "nondeterminism" | "budget_exceeded" | "poison" | "no_matching_runner";

const NEXT: { readonly [from in SessionStatus]: readonly SessionStatus[] } = {
  submitted: [
    "submitted",
    "working",
    "waiting",
    "input_required",
    "paused",
    "cancelling",
    "completed",
    "failed",
    "cancelled",
  ],
  working: [
    "working",
    "waiting",
    "input_required",
    "paused",
    "cancelling",
    "completed",
    "failed",
    "cancelled",
  ],
  waiting: [
    "working",
    "waiting",
    "input_required",
    "paused",
    "cancelling",
    "completed",
    "failed",
    "cancelled",
  ],
  input_required: [
    "working",
    "waiting",
    "input_required",
    "paused",
    "cancelling",
    "completed",
    "failed",
    "cancelled",
  ],
  paused: ["paused", "working", "waiting", "input_required", "cancelling", "failed", "cancelled"],
  cancelling: ["cancelling", "paused", "failed", "cancelled"],
  completed: [],
  failed: [],
  cancelled: [],
};

/** Every status there is, in the order a session meets them. */
export const SESSION_STATUSES = Object.keys(NEXT) as readonly SessionStatus[];

export function mayBecome(from: SessionStatus, to: SessionStatus): boolean {
  return NEXT[from].includes(to);
}

export function isEnded(status: SessionStatus): status is "completed" | "failed" | "cancelled" {
  return NEXT[status].length === 0;
}

/** What a session stands on, by the number of the command that asked. Tasks that run are not waits: with them a session is `working`. */
export type Wait =
  | { readonly type: "timer"; readonly id: number; readonly at: number }
  | { readonly type: "signal"; readonly id: number; readonly name: string; readonly until?: number }
  | {
      readonly type: "input";
      readonly id: number;
      readonly name: string;
      readonly prompt: string;
      /** What it takes for an answer, where that is recorded. */
      readonly answer?: AnswerShape;
      readonly until?: number;
    };

/** What the author says an agent is, as recorded when the session started. */
export interface AgentRef {
  readonly name: string;
  readonly version: string;
  /** Absolute path of the file it was loaded from, when it was loaded from one. */
  readonly file?: string;
}

export interface CancelRequest {
  readonly mode: "graceful" | "hard";
  /** When a graceful cancel ends the session without its agent. Epoch milliseconds. */
  readonly deadlineAt: number;
  readonly reason?: string;
}

/** A session as storage knows it, without its journal. Times in epoch milliseconds. */
export interface Session {
  readonly sessionId: string;
  readonly agent: AgentRef;
  readonly input: JsonText | undefined;
  readonly status: SessionStatus;
  readonly pauseReason?: PauseReason;
  readonly waits: readonly Wait[];
  /** When it is to be woken even if nothing arrives. */
  readonly wakeAt?: number;
  /** Length of the journal: the `seq` of the next record. */
  readonly nextSeq: number;
  /** `seq` of the last checkpoint's record. */
  readonly checkpointSeq?: number;
  readonly entryCount: number;
  readonly turn: number;
  /** How many signals and cancel requests ever arrived (K10). */
  readonly inbox: number;
  readonly seed: number;
  readonly flags: number;
  readonly format: number;
  readonly cancel?: CancelRequest;
  readonly output?: JsonText;
  readonly error?: RecordedError;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly endedAt?: number;
}

/**
 * Whether an arrival concerns a wait the session has recorded: only then is there something to run (K10).
 * A `paused` session is not woken by anything but a person.
 */
export function isAwaited(session: Pick<Session, "status" | "waits">, signalName: string): boolean {
  if (session.status === "submitted" || session.status === "working") return true;
  if (session.status === "paused" || isEnded(session.status)) return false;
  return session.waits.some(
    (wait) => (wait.type === "signal" || wait.type === "input") && wait.name === signalName,
  );
}

/** A graceful cancel whose time is up: whoever owns the storage ends the session, without its agent. */
export function isCancelOverdue(session: Pick<Session, "status" | "cancel">, now: number): boolean {
  return !isEnded(session.status) && session.cancel !== undefined && session.cancel.deadlineAt <= now;
}
