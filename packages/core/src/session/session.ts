// The row of a session (`Session`) and its transitions, as pure functions.
//
//   submitted → working ⇄ waiting | input_required → completed | failed | cancelled
//   working, waiting, input_required → cancelling → cancelled | failed
//   anything that has not ended ⇄ paused(reason)
//
// - `submitted`: stored, and its agent was never called.
// - `working`: the session has something to do, whether or not a process is doing it.
// - `waiting`: the session is blocked on its `waits`.
// - `input_required`: the session is blocked on its `waits`, and one of them is for a person.
// - `cancelling`: a graceful cancel was acknowledged. No path leads to `completed` any more.
// - `paused`: a person can fix the cause in `reason`. All that the driver did before it saw the pause still
//   counts, so even an end may follow.
// - `completed`, `failed`, `cancelled`: final.
//
// A transition that is not listed in `NEXT` does not happen (L1).

import { defined } from "../defined.ts";
import { HoldfastError } from "../errors/errors.ts";
import type { RecordedError } from "../errors/recorded-error.ts";
import type { JsonText } from "../json/json.ts";
import type { CancelCause, SessionCost } from "../journal/amounts.ts";
import type { AnswerShape } from "../journal/approval.ts";
import { JOURNAL_FORMAT } from "../journal/record.ts";
import { REQUEST_PREFIX } from "../journal/signal-names.ts";
import type { Account, Exhausted } from "../budget/budget.ts";

/** How a session stands. `docs/states.md` has the transitions. */
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

/**
 * `agent_fault`: the agent broke a rule for agents, or its own code made a mistake. `quota`: a provider's
 * usage limit is reached.
 * `auth_required`: a server or provider refused the credentials that `error` names.
 */
export type PauseReason =
  | "by_user"
  | "nondeterminism"
  | "agent_fault"
  | "budget_exceeded"
  | "poison"
  | "no_matching_runner"
  | "quota"
  | "auth_required";

/** The usage limit that a session waits for. Times are epoch milliseconds. */
export interface QuotaWait {
  /** The name of what is limited, such as `anthropic/claude-sonnet-5`. */
  readonly pool: string;
  readonly resetsAt?: number;
  /** When the session continues without a person, because the user asked for that. */
  readonly resumesAt?: number;
}

/** The statuses that may follow for a session that has begun and has not ended. */
const OPEN: readonly SessionStatus[] = [
  "working",
  "waiting",
  "input_required",
  "paused",
  "cancelling",
  "completed",
  "failed",
  "cancelled",
];

const NEXT: { readonly [from in SessionStatus]: readonly SessionStatus[] } = {
  submitted: ["submitted", ...OPEN],
  working: OPEN,
  waiting: OPEN,
  input_required: OPEN,
  paused: OPEN,
  cancelling: ["cancelling", "paused", "failed", "cancelled"],
  completed: [],
  failed: [],
  cancelled: [],
};

/** All statuses, in the order in which a session meets them. */
export const SESSION_STATUSES = Object.keys(NEXT) as readonly SessionStatus[];

export function mayBecome(from: SessionStatus, to: SessionStatus): boolean {
  // mutant: any-transition-allowed
  return NEXT[from].includes(to);
}

export function isEnded(status: SessionStatus): status is "completed" | "failed" | "cancelled" {
  return NEXT[status].length === 0;
}

/** Whether the session is active in this storage: it has not ended, and has not moved away. */
export function isActive({ status, move }: Pick<Session, "status" | "move">): boolean {
  return !isEnded(status) && move?.isDone !== true;
}

type News = Pick<Session, "status" | "cancel" | "move">;

/** The parts of a row that others change while a process drives the session. */
export function newsOf({ status, cancel, move }: News): News {
  return { status, ...defined({ cancel, move }) };
}

/**
 * An item that a session is blocked on, by the number of the command that asked. Running tasks are not waits:
 * with them a session is `working`.
 */
export type Wait =
  | { readonly type: "timer"; readonly id: number; readonly at: number }
  | { readonly type: "signal"; readonly id: number; readonly name: string; readonly until?: number }
  | {
      readonly type: "input";
      readonly id: number;
      readonly name: string;
      readonly prompt: string;
      /** The shape of an answer, where it is recorded. */
      readonly answer?: AnswerShape;
      /**
       * The incarnation that asks, of a session without a journal. The next incarnation asks under the same
       * number.
       */
      readonly life?: number;
      readonly until?: number;
    };

/** The author's description of an agent, as recorded when the session started. */
export interface AgentRef {
  readonly name: string;
  readonly version: string;
  /** Where the agent was loaded from, as a text of Holdfast. Absent for an agent that a program of the user has made. */
  readonly file?: string;
  /**
   * W3C trace context in which the session was started. A process that continues the session continues the
   * trace.
   */
  readonly traceparent?: string;
}

/**
 * The version of an agent that its parent's process does not know. A coordinator replaces it by the version
 * that runners offer.
 */
export const UNKNOWN_VERSION = "";

/** The owner of a session, and the demands on the runners that may run it. */
export interface Placement {
  /** A user's name. */
  readonly owner?: string;
  /** Labels a runner must have, each with this value. */
  readonly demands?: Readonly<Record<string, string>>;
  /** Higher priorities are claimed first; 0 when absent. */
  readonly priority?: number;
}

export interface CancelRequest {
  readonly mode: "graceful" | "hard";
  /** When a graceful cancel ends the session without its agent. Epoch milliseconds. */
  readonly deadlineAt: number;
  readonly reason?: string;
  readonly cause?: CancelCause;
  /** The limit that `budget_exceeded` is about. */
  readonly exhausted?: Exhausted;
}

/** The session that created this one, and the policy for when that session ends. */
export interface ParentRef {
  readonly sessionId: string;
  /**
   * Number of the parent's command that created the child. The child's signals to the parent carry this
   * number.
   */
  readonly child: number;
  readonly onEnd: ParentEndPolicy;
  /** The notices that reach the parent; `events` when absent. */
  readonly notify?: Exclude<ParentNotice, "events">;
}

/**
 * The notices of a child that reach its parent. `events`: signals, progress, pauses and its end, for a parent
 * that waits for this child. `end`: its end alone. `callback`: its end alone, which also arrives under the
 * one name `CHILD_ENDED`, for a parent that waits for any of its children.
 */
export type ParentNotice = "events" | "end" | "callback";

/** `cancel` the child, `wait` for it before the parent ends, or `leave` it running. */
export type ParentEndPolicy = "cancel" | "wait" | "leave";

/**
 * The context that a session was given from another session. The session sees a conversation up to `leaf`.
 * Under `conversation` its own entries are a branch of that conversation, under `conversation_read_only` they
 * are a separate conversation. `custom` is a value.
 */
export type SharedContext =
  | {
      readonly kind: "conversation" | "conversation_read_only";
      readonly sessionId: string;
      /** Absent when there was no entry yet. */
      readonly leaf?: number;
    }
  | { readonly kind: "custom"; readonly value: JsonText };

/** The environments and variables that the call which starts a session names for its agent files. No value is a secret. */
export interface GivenEnvironment {
  /** Names of environments, which follow those of the agent. */
  readonly references?: readonly string[];
  /** Values by the names of variables. They count more than those of environments. */
  readonly values?: Readonly<Record<string, string>>;
}

export interface ForkOrigin {
  /** The session whose journal the fork began with, and that session's own origins, nearest first. */
  readonly origins: readonly string[];
  /** Length of the journal it began with. */
  readonly at: number;
  /** Seed of the randomness after `at`, when `at` is no checkpoint. */
  readonly seed: number;
  readonly tasks: "rerun" | "cancel";
  /** The parent that the recorded part notified. The fork itself notifies no parent. */
  readonly parent?: ParentRef;
}

/**
 * Whether a session is the child that the parent created under this number, or a successor of it. The id
 * alone does not prove that, because anybody may choose such an id.
 */
export function isChildOf(
  session: Pick<Session, "parent"> | undefined,
  { sessionId, child }: Pick<ParentRef, "sessionId" | "child">,
): boolean {
  return session?.parent?.sessionId === sessionId && session.parent.child === child;
}

/** The placement with an owner in place of its own. */
export function ownedBy(owner: string | undefined, placement: Placement | undefined): Placement | undefined {
  return owner === undefined ? placement : { ...placement, owner };
}

export interface Move {
  readonly moveId: string;
  /** The file or the address of the destination, for people to read. */
  readonly to: string;
  /** The session lives at its destination. */
  readonly isDone?: true;
}

/** The position of a storage in the sequence of storages that a moved session has lived in. */
export interface Home {
  /** 0 for the storage where the session was created. */
  readonly number: number;
  /** The move it came with. */
  readonly moveId: string;
}

/**
 * The progress of an earlier try that the agent is told. A session that keeps nothing else reports its own
 * progress.
 */
export function resumedFromOf({
  persistence,
  progress,
  resumedFrom,
}: Pick<Session, "persistence" | "progress" | "resumedFrom">): JsonText | undefined {
  return persistence === undefined ? resumedFrom : (progress ?? resumedFrom);
}

/**
 * The behaviours of a session's kernel that older kernels did not have, one bit each. Sessions that began
 * without a behaviour replay without it. Format 1 has none.
 */
export const BEHAVIOUR: Readonly<Record<string, number>> = {};

/** The flags of a session that begins now. */
export const BEHAVIOUR_FLAGS: number = Object.values(BEHAVIOUR).reduce((all, flag) => all | flag, 0);

/**
 * Whether this build can run a session. A build that ignored an unknown flag or format would replay the
 * session differently, and store the difference as right. It is called before anything is stored because the
 * agent is to run, and before its journal is replayed.
 *
 * @param at names the place of the session in the error, where that is not its storage.
 * @throws HoldfastError `version_unsupported` when a newer Holdfast began the session.
 */
export function refuseNewerSession(
  { sessionId, flags, format }: Pick<Session, "sessionId" | "flags" | "format">,
  at?: string,
): void {
  // The known flags are the lowest bits, without a gap: an unknown flag makes the number larger.
  const isNewer = flags > BEHAVIOUR_FLAGS || format > JOURNAL_FORMAT;
  if (!isNewer) return;
  throw new HoldfastError("version_unsupported", `session ${sessionId} was begun by a newer Holdfast`, {
    ...defined({ at }),
    got: `journal format ${format}, behaviour flags ${flags}`,
    expected: `journal format ${JOURNAL_FORMAT} or older, behaviour flags up to ${BEHAVIOUR_FLAGS}`,
    fix: "run it with the newer Holdfast; the session was left as it is",
  });
}

/**
 * How much of a session survives its process.
 *
 * `full`: everything. `minimal`: its row, input and unread signals, so that it restarts from scratch.
 * `ephemeral`: only that it existed, so that it fails.
 */
export type Persistence = "full" | "minimal" | "ephemeral";

/**
 * Whether the session is lost for a process that does not have it in memory: it had begun, and none of its
 * work was kept.
 */
export function isLost({ persistence, status }: Pick<Session, "persistence" | "status">): boolean {
  return persistence === "ephemeral" && status !== "submitted" && !isEnded(status);
}

/** A session as storage knows it, without its journal. Times are in epoch milliseconds. */
export interface Session {
  /** The id, by which everything refers to the session. */
  readonly sessionId: string;
  /** The name and version of its agent. */
  readonly agent: AgentRef;
  /**
   * One line for people: the beginning of its request, or another text in the place of that. Absent where the
   * request says nothing.
   */
  readonly title?: string;
  /** The input with which it was started, as JSON. */
  readonly input: JsonText | undefined;
  /** Where it stands, such as `working`, `input_required` or `completed`. */
  readonly status: SessionStatus;
  /** Why the session is paused. */
  readonly pauseReason?: PauseReason;
  /** The limit that `budget_exceeded` is about. */
  readonly exhausted?: Exhausted;
  /** The usage limit that `quota` is about. */
  readonly quota?: QuotaWait;
  /** The waits on which the session is blocked. */
  readonly waits: readonly Wait[];
  /** The time at which the session wakes up even if nothing arrives. */
  readonly wakeAt?: number;
  /** Length of the journal: the `seq` of the next record. */
  readonly nextSeq: number;
  /** `seq` of the last checkpoint's record. */
  readonly checkpointSeq?: number;
  /** The number of entries in its conversation. */
  readonly entryCount: number;
  /** The number of its checkpoints. */
  readonly turn: number;
  /** How many signals and cancel requests have ever arrived (S2). */
  readonly inbox: number;
  /** The seed of its random numbers. */
  readonly seed: number;
  /** The rules of replay that its journal was written by, as bits. */
  readonly flags: number;
  /** The format of its journal. */
  readonly format: number;
  /** The request to cancel it. */
  readonly cancel?: CancelRequest;
  /** The output of a completed session; of a cancelled one a partial output. */
  readonly output?: JsonText;
  /** The error with which the session ended. */
  readonly error?: RecordedError;
  /** The session that created it, and how they belong together. */
  readonly parent?: ParentRef;
  /** The parent that an imported session had, and that was not imported with it (detachment-2). */
  readonly detachedFrom?: ParentRef;
  /** The length of the chain of parents and predecessors above the session. */
  readonly depth: number;
  /** How many children the session has ever created. */
  readonly children: number;
  /** The successor. It notifies the parent in this session's place. */
  readonly handedOffTo?: string;
  /** The value that its parent shared with it. */
  readonly shared?: SharedContext;
  /** The environments and variables that its start named. Its children have them, too. */
  readonly environment?: GivenEnvironment;
  /** Its owner, its priority, and what it demands of a runner. */
  readonly placement?: Placement;
  /** Set when the session moves to another storage, or has moved (MV1). */
  readonly move?: Move;
  /** Set for a session that came from another storage. */
  readonly home?: Home;
  /** Absent for `full`. */
  readonly persistence?: Exclude<Persistence, "full">;
  /** The time at which the session is cancelled if it has not ended. Epoch milliseconds. */
  readonly deadlineAt?: number;
  /**
   * The budget of the session and the sessions below it, and the amounts spent; absent without a budget of
   * its own.
   */
  readonly account?: Account;
  /** The cost of its own calls of models, by its journal. Absent while it has called none. */
  readonly cost?: SessionCost;
  /** The journal that a fork began with, and what becomes of the origin's open tasks. */
  readonly fork?: ForkOrigin;
  /**
   * The sessions whose accounts pay for this one: itself, if it has a budget, and those above, nearest first.
   */
  readonly payers: readonly string[];
  /** The progress that the session last reported. */
  readonly progress?: JsonText;
  /** The progress that the session in whose place this one was created had reported. */
  readonly resumedFrom?: JsonText;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly endedAt?: number;
}

/**
 * Whether an arrival concerns a wait that the session has recorded; only then is there something to run (S2).
 * Only a person wakes a `paused` session.
 */
export function isAwaited(session: Pick<Session, "status" | "waits">, signalName: string): boolean {
  if (session.status === "submitted" || session.status === "working") return true;
  if (session.status === "paused" || isEnded(session.status)) return false;
  return isAnsweredBy(session.waits, signalName);
}

/** Whether a signal of this name answers one of the waits. A child's request is always awaited. */
export function isAnsweredBy(waits: readonly Wait[], signalName: string): boolean {
  if (signalName.startsWith(REQUEST_PREFIX)) return true;
  if (waits.length > SEARCHED_MAX) return namesOf(waits).has(signalName);
  return waits.some((wait) => "name" in wait && wait.name === signalName);
}

/**
 * Longer lists of waits have their names collected once, however many signals arrive. Shorter lists are
 * searched.
 */
const SEARCHED_MAX = 16;
/** Keyed by the list, because a row's waits are replaced and never changed in place. */
const collectedNames = new WeakMap<readonly Wait[], ReadonlySet<string>>();

function namesOf(waits: readonly Wait[]): ReadonlySet<string> {
  let names = collectedNames.get(waits);
  if (names === undefined) {
    names = new Set(waits.flatMap((wait) => ("name" in wait ? wait.name : [])));
    collectedNames.set(waits, names);
  }
  return names;
}
