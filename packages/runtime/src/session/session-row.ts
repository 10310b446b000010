// `SessionRow`: the patches of a session's row, which shows people and tools its status, its waits and its
// end.
//
// The commit of a segment also writes the row, and only when the row changes. A driven session is in one of
// these states. *working*: a task runs, or the agent is about to. *waiting*: it waits only for timers and
// signals. *input_required*: a person is asked, even if tasks run. *cancelling*: it was cancelled and has not
// ended. A fault pauses the session, or fails it.
//
// It knows no journal and no storage: it makes patches, and keeps the content of the last one.

import {
  type HoldfastError,
  LimitError,
  recordError,
  type Ending,
  type Exhausted,
  type Kernel,
  type Session,
  type SessionPatch,
  type SessionStatus,
} from "@holdfast/core";
import type { Departure } from "./session-outcome.ts";
import { sessionPaused } from "./session-errors.ts";

/** The state of a session at the end of a segment. */
export interface Stand {
  readonly kernel: Pick<Kernel, "open" | "turn">;
  readonly isCheckpoint: boolean;
  readonly isCancelling: boolean;
  /** The earliest due time, if any. */
  readonly wakeAt: () => number | undefined;
}

export class SessionRow {
  #status: SessionStatus;
  #waitsKey: string;
  /** The last list of waits, so that a long list does not slow down commits that leave it unchanged. */
  #looked: Looked;

  constructor({ status, waits, wakeAt }: Session) {
    this.#status = status;
    this.#looked = lookAt(waits);
    this.#waitsKey = waitsKeyOf(this.#looked, wakeAt);
  }

  /** The status in the row. */
  get status(): SessionStatus {
    return this.#status;
  }

  /** The patch of an orderly stop. The session is due at once, and a person who is asked still finds the question. */
  handedOver(now: number): SessionPatch {
    return this.#status === "input_required" ? { status: "input_required", wakeAt: now } : HANDED_OVER;
  }

  /** The patch after a segment that does not end the session; `undefined` when the row is unchanged. */
  patchAfter({ kernel, isCheckpoint, isCancelling, wakeAt }: Stand): SessionPatch | undefined {
    const waits = isCheckpoint ? NO_WAITS : kernel.open.waits();
    if (waits !== this.#looked.waits) this.#looked = lookAt(waits);
    const status = isCancelling
      ? "cancelling"
      : isCheckpoint
        ? "working"
        : statusOf(this.#looked, kernel.open.taskCount);
    const until = status === "working" ? undefined : wakeAt();
    const key = waitsKeyOf(this.#looked, until);
    if (status === this.#status && key === this.#waitsKey && !isCheckpoint) return undefined;
    this.#status = status;
    this.#waitsKey = key;
    return {
      status,
      waits,
      ...(until === undefined ? {} : { wakeAt: until }),
      ...(isCheckpoint ? { turn: kernel.turn.number } : {}),
    };
  }
}

/** The row of a session whose agent returned or threw. */
export function endPatch(ending: Ending, cancelled: boolean): SessionPatch {
  if (ending.type === "returned") {
    const { handedOffTo } = ending;
    const output = ending.output === undefined ? {} : { output: ending.output };
    const handOff = handedOffTo === undefined ? {} : { handedOffTo };
    return { status: cancelled ? "cancelled" : "completed", waits: [], ...output, ...handOff };
  }
  const { code, cause } = ending.error;
  const byCancel = cancelled && (code === "cancelled" || cause?.code === "budget_exceeded");
  return { status: byCancel ? "cancelled" : "failed", waits: [], error: ending.error };
}

/**
 * K5: the row of a session whose agent broke a rule. The session is paused until its code is fixed. It fails
 * if the fault is internal, or if it was being cancelled. A child beyond the depth limit fails too, so that
 * every session above it is notified of the reason.
 */
export function faultPatch(fault: HoldfastError, cancelled: boolean): SessionPatch {
  const error = recordError(fault);
  const isTooDeep = fault instanceof LimitError && fault.limit === "depth";
  if (isTooDeep || fault.code === "internal" || (cancelled && fault.code !== "nondeterminism"))
    return { status: "failed", waits: [], error };
  const pauseReason = fault.code === "nondeterminism" ? "nondeterminism" : "agent_fault";
  return { status: "paused", pauseReason, waits: [], error };
}

/** The row of an ephemeral session whose process has ended. */
export function lostPatch({ sessionId, cancel }: Session): SessionPatch {
  const message = `session ${sessionId} was ephemeral, and is gone with the process that ran it`;
  const error = { name: "HoldfastError", message, code: "session_lost" };
  return { status: cancel === undefined ? "failed" : "cancelled", waits: [], error };
}

/** The patch of a pause by a person, which the stored row has already. */
export const PAUSED_BY_USER: SessionPatch = { status: "paused", pauseReason: "by_user" };

/** The row of a session that may not spend what it needs. */
export function exhaustedPatch(exhausted: Exhausted): SessionPatch {
  const { payer, limit, per, used, max, asked = 0, until } = exhausted;
  const limited = per === undefined ? `${max}` : `${max} per ${per}`;
  const left = Math.max(0, max - used);
  const needs =
    limit === "maxTurns" || asked === 0 ? "" : `; the next task may need ${asked}, and ${left} are left`;
  const message = `the budget of session ${payer} is used up: ${limit} is ${limited}, and ${used} are spent${needs}`;
  const least = used + Math.max(1, asked);
  const window = per === undefined ? "" : ` per ${per}`;
  const wait = until === undefined ? "" : ", or wait until the window has rolled on";
  const fix = `raise ${limit}${window} to at least ${least}: \`holdfast budget ${payer}\` shows the limits, and \`--raise\` raises them${wait}`;
  const error = { name: "HoldfastError", message, code: "budget_exceeded", fix };
  return { status: "paused", pauseReason: "budget_exceeded", exhausted, waits: [], error };
}

/**
 * The patch of the last commit at an orderly stop: its next process has something to do (`sealLast`,
 * `SessionRow.handedOver`).
 */
export const HANDED_OVER: SessionPatch = { status: "working" };

/** The row of a session with a task that no grace is long enough for. */
export function stoppedTooOftenPatch(kind: string, times: number): SessionPatch {
  const error = {
    name: "HoldfastError",
    message: `task "${kind}" was cut off ${times} times, because its process was stopped and the grace was over first`,
    code: "session_paused",
    fix: "give the process a longer grace (`--grace` of the commands, `graceMs` of runtime.close), or make the task shorter",
  };
  return { status: "paused", pauseReason: "agent_fault", waits: [], error };
}

const NO_WAITS: Session["waits"] = [];

/** A list of waits, and values computed from it. */
interface Looked {
  readonly waits: Session["waits"];
  readonly ids: string;
  readonly asksPerson: boolean;
}

function lookAt(waits: Session["waits"]): Looked {
  const ids = waits.map(({ id }) => id).join(",");
  return { waits, ids, asksPerson: waits.some(({ type }) => type === "input") };
}

function statusOf({ waits, asksPerson }: Looked, taskCount: number): SessionStatus {
  if (asksPerson) return "input_required";
  return waits.length > 0 && taskCount === 0 ? "waiting" : "working";
}

function waitsKeyOf({ waits, ids }: Looked, wakeAt: number | undefined): string {
  return waits.length === 0 && wakeAt === undefined ? "" : `${ids}@${wakeAt ?? ""}`;
}

/** The departure of a session that was paused. */
export function pausedBy(sessionId: string, patch: SessionPatch): Departure {
  const { pauseReason: reason = "by_user" } = patch;
  return { type: "paused", reason, fault: sessionPaused({ ...patch, sessionId, pauseReason: reason }) };
}
