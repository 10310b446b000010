// A session's row and its transitions, as pure functions.
//
//   submitted → working ⇄ waiting | input_required → completed | failed | cancelled
//   working, waiting, input_required → cancelling → cancelled | failed
//   anything that has not ended ⇄ paused(reason)
//
// `submitted`: stored, its agent never called. `working`: it has something to do, whoever does it. `waiting`: it stands on
// what its `waits` name. `input_required`: the same, and one of them is a person. `cancelling`: a graceful cancel was
// acknowledged; from here no path leads to `completed`. `paused`: a person can mend what is in `reason`; what its driver did
// before it heard of it still counts, so that even its end may follow. `completed`, `failed`, `cancelled`: final. What is not
// listed in `NEXT` does not happen (L1).

import { HoldfastError, type RecordedError } from "../errors/errors.ts";
import type { JsonText } from "../json/json.ts";
import type { CancelCause } from "../journal/amounts.ts";
import type { AnswerShape } from "../journal/approval.ts";
import { JOURNAL_FORMAT } from "../journal/record.ts";
import { REQUEST_PREFIX } from "../journal/signal-names.ts";
import type { Account, Exhausted } from "./budget.ts";

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

/** `agent_fault`: the agent did what no agent may, or ran into a mistake of its own code. */
export type PauseReason =
  | "by_user"
  | "nondeterminism"
  | "agent_fault"
  | "budget_exceeded"
  | "poison"
  | "no_matching_runner";

/** What may become of a session that has begun and has not ended. */
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

/** Every status there is, in the order a session meets them. */
export const SESSION_STATUSES = Object.keys(NEXT) as readonly SessionStatus[];

export function mayBecome(from: SessionStatus, to: SessionStatus): boolean {
  return NEXT[from].includes(to);
}

export function isEnded(status: SessionStatus): status is "completed" | "failed" | "cancelled" {
  return NEXT[status].length === 0;
}

/** Whether more may come of a session in this storage: it has not ended, and has not moved away. */
export function goesOn({ status, move }: Pick<Session, "status" | "move">): boolean {
  return !isEnded(status) && move?.isDone !== true;
}

type News = Pick<Session, "status" | "cancel" | "move">;

/** What of a row others decide, for whoever drives the session. */
export function newsOf({ status, cancel, move }: News): News {
  return { status, ...(cancel === undefined ? {} : { cancel }), ...(move === undefined ? {} : { move }) };
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
      /** Which life of it asks, of a session that keeps no journal: the next one asks under the same number. */
      readonly life?: number;
      readonly until?: number;
    };

/** What the author says an agent is, as recorded when the session started. */
export interface AgentRef {
  readonly name: string;
  readonly version: string;
  /** Absolute path of the file it was loaded from, when it was loaded from one. */
  readonly file?: string;
  /** W3C trace context that the session was started in: who goes on with it goes on with the trace. */
  readonly traceparent?: string;
}

/** The version of an agent that its parent's process does not know: a coordinator puts that in its place which runners offer. */
export const UNKNOWN_VERSION = "";

/** For whom a session is, and which runners may have it. */
export interface Placement {
  /** A user's name. */
  readonly owner?: string;
  /** Labels a runner must have, each with this value. */
  readonly demands?: Readonly<Record<string, string>>;
  /** Higher goes first; 0 when absent. */
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

/** Which session asked for this one, and what becomes of it when that one ends. */
export interface ParentRef {
  readonly sessionId: string;
  /** Number of the parent's command that asked for it: what the child sends arrives under that number. */
  readonly child: number;
  readonly onEnd: ParentEndPolicy;
}

/** `cancel` it, `wait` for it before the parent ends, or `leave` it to go on alone. */
export type ParentEndPolicy = "cancel" | "wait" | "leave";

/**
 * What a session was given of another's context. Of a conversation it sees everything up to `leaf`: under `conversation` its own
 * entries are a branch of it, under `conversation_read_only` a conversation of their own. `custom` is a value.
 */
export type SharedContext =
  | {
      readonly kind: "conversation" | "conversation_read_only";
      readonly sessionId: string;
      /** Absent when there was no entry yet. */
      readonly leaf?: number;
    }
  | { readonly kind: "custom"; readonly value: JsonText };

export interface ForkOrigin {
  /** The session whose journal it began with, and the ones that one began with, nearest first. */
  readonly origins: readonly string[];
  /** Length of the journal it began with. */
  readonly at: number;
  /** Chance from there on, when `at` is no checkpoint. */
  readonly seed: number;
  readonly tasks: "rerun" | "cancel";
  /** Whom the origin told what is recorded: nobody hears of the fork. */
  readonly parent?: ParentRef;
}

/** Whether a session is what another one asked for under this number, or took over from that: anybody may choose such an id. */
export function isChildOf(
  session: Pick<Session, "parent"> | undefined,
  { sessionId, child }: Pick<ParentRef, "sessionId" | "child">,
): boolean {
  return session?.parent?.sessionId === sessionId && session.parent.child === child;
}

/** A placement with an owner that it does not name itself. */
export function ownedBy(owner: string | undefined, placement: Placement | undefined): Placement | undefined {
  return owner === undefined ? placement : { ...placement, owner };
}

export interface Move {
  readonly moveId: string;
  /** For people: the file or the address it goes to. */
  readonly to: string;
  /** It lives there. */
  readonly isDone?: true;
}

/** Where in the order of its places a session is, for one that has moved. */
export interface Home {
  /** 0 for where it was created. */
  readonly number: number;
  /** The move it came with. */
  readonly moveId: string;
}

/** What the agent is told of how far an earlier try had come: this one's, when nothing else of that is left. */
export function resumedFromOf({
  persistence,
  progress,
  resumedFrom,
}: Pick<Session, "persistence" | "progress" | "resumedFrom">): JsonText | undefined {
  return persistence === undefined ? resumedFrom : (progress ?? resumedFrom);
}

/** What a session's kernel does that older ones did not: those that began without it replay without it. One bit each. */
export const BEHAVIOUR = {
  /** Repeats of guarded tasks are told and asked about (K14). */
  guardsRepeats: 1,
  /** Which tasks are guarded is recorded with them, and not looked up in whoever replays. */
  recordsGuards: 2,
  /** Who cancels a task that is held back withdraws the question (K14). */
  withdrawsHeld: 4,
  /** A minimal session becomes persistent when it asks for another one, or asks its parent. */
  persistsFamilies: 8,
  /** A graceful cancel ends a session whose agent has returned, and withdraws the tasks that its end waits for (K13). */
  endsWhenCancelled: 16,
  /** A minimal session with a parent becomes persistent when it takes signals. */
  persistsListeners: 32,
} as const;

/** Of a session that begins now. */
export const BEHAVIOUR_FLAGS: number = Object.values(BEHAVIOUR).reduce((all, flag) => all | flag, 0);

/**
 * Whether this build can run a session. A build that ignored an unknown flag or format would replay the session differently, and store
 * the difference as right. It is called before anything is stored because the agent is to run, and before its journal is replayed.
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
    ...(at === undefined ? {} : { at }),
    got: `journal format ${format}, behaviour flags ${flags}`,
    expected: `journal format ${JOURNAL_FORMAT} or older, behaviour flags up to ${BEHAVIOUR_FLAGS}`,
    fix: "run it with the newer Holdfast; the session was left as it is",
  });
}

/**
 * How much of a session survives its process: everything; its row, input and unread signals, so that it starts over; nothing but
 * that it was there, so that it fails.
 */
export type Persistence = "full" | "minimal" | "ephemeral";

/** Whether what a session was is gone, for who has it not in memory: it had begun, and nothing of that was kept. */
export function isLost({ persistence, status }: Pick<Session, "persistence" | "status">): boolean {
  return persistence === "ephemeral" && status !== "submitted" && !isEnded(status);
}

/** A session as storage knows it, without its journal. Times in epoch milliseconds. */
export interface Session {
  readonly sessionId: string;
  readonly agent: AgentRef;
  readonly input: JsonText | undefined;
  readonly status: SessionStatus;
  readonly pauseReason?: PauseReason;
  /** The limit that `budget_exceeded` is about. */
  readonly exhausted?: Exhausted;
  readonly waits: readonly Wait[];
  /** When it is to be woken even if nothing arrives. */
  readonly wakeAt?: number;
  /** Length of the journal: the `seq` of the next record. */
  readonly nextSeq: number;
  /** `seq` of the last checkpoint's record. */
  readonly checkpointSeq?: number;
  readonly entryCount: number;
  readonly turn: number;
  /** How many signals and cancel requests ever arrived (S2). */
  readonly inbox: number;
  readonly seed: number;
  readonly flags: number;
  readonly format: number;
  readonly cancel?: CancelRequest;
  readonly output?: JsonText;
  readonly error?: RecordedError;
  readonly parent?: ParentRef;
  /** How many sessions asked for one another, or took over from one another, before it. */
  readonly depth: number;
  /** How many children it ever asked for. */
  readonly children: number;
  /** Took over from it: what this one would have told its parent, that one does. */
  readonly handedOffTo?: string;
  readonly shared?: SharedContext;
  readonly placement?: Placement;
  /** It goes to live in another storage, or has gone (MV1). */
  readonly move?: Move;
  /** Of one that came from another storage. */
  readonly home?: Home;
  /** Absent for `full`. */
  readonly persistence?: Exclude<Persistence, "full">;
  /** When it is cancelled if it has not ended. Epoch milliseconds. */
  readonly deadlineAt?: number;
  /** What it and those below it may spend, and have; absent without a budget of its own. */
  readonly account?: Account;
  /** The session whose journal it began with, up to `at`, and what becomes there of what that one had open. */
  readonly fork?: ForkOrigin;
  /** Whose accounts pay for it: its own and those of the sessions above, nearest first. */
  readonly payers: readonly string[];
  /** What it last said of how far it is. */
  readonly progress?: JsonText;
  /** How far the one whose place it took had said it was. */
  readonly resumedFrom?: JsonText;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly endedAt?: number;
}

/**
 * Whether an arrival concerns a wait the session has recorded: only then is there something to run (S2).
 * A `paused` session is not woken by anything but a person.
 */
export function isAwaited(session: Pick<Session, "status" | "waits">, signalName: string): boolean {
  if (session.status === "submitted" || session.status === "working") return true;
  if (session.status === "paused" || isEnded(session.status)) return false;
  return isAnsweredBy(session.waits, signalName);
}

/** Whether a signal of this name is what one of the waits stands for. A child's request is always waited for. */
export function isAnsweredBy(waits: readonly Wait[], signalName: string): boolean {
  if (signalName.startsWith(REQUEST_PREFIX)) return true;
  if (waits.length > SEARCHED_MAX) return namesOf(waits).has(signalName);
  return waits.some((wait) => "name" in wait && wait.name === signalName);
}

/** How many waits are compared one by one: a longer list has its names collected once, however many signals arrive. */
const SEARCHED_MAX = 16;
/** By the list: a row's waits are replaced, and never changed in place. */
const collectedNames = new WeakMap<readonly Wait[], ReadonlySet<string>>();

function namesOf(waits: readonly Wait[]): ReadonlySet<string> {
  let names = collectedNames.get(waits);
  if (names === undefined) {
    names = new Set(waits.flatMap((wait) => ("name" in wait ? wait.name : [])));
    collectedNames.set(waits, names);
  }
  return names;
}

/** When whoever owns the storage acts on a session without its agent: its cancel is over, or its own deadline. */
export function overdueAt(session: Pick<Session, "status" | "cancel" | "deadlineAt" | "move">): number {
  if (isEnded(session.status) || session.move !== undefined) return Infinity;
  const at = session.cancel?.deadlineAt ?? session.deadlineAt ?? Infinity;
  // What no integer column holds never comes either.
  return at > Number.MAX_SAFE_INTEGER ? Infinity : at;
}
