// What a session's row says, for those who look at it from outside: how it stands, what it waits for, how it ended.
//
// The row is written by the same commit as the segment it tells of, and only when it changes. States of a session that is driven:
// *working* (a task runs, or the agent is about to), *waiting* (nothing but timers and signals), *input_required* (a person is
// asked, whatever else goes on), *cancelling* (from the request on, until it ends). A fault parks it as *paused*, or fails it.
//
// It knows no journal and no storage: it makes patches, and remembers what the last of them said.

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
import type { Departure } from "./driver-exit.ts";
import { sessionPaused } from "./session-errors.ts";

/** How a session stands where its segment is sealed. */
export interface Stand {
  readonly kernel: Pick<Kernel, "open" | "turn">;
  readonly isCheckpoint: boolean;
  readonly isCancelling: boolean;
  /** When something is due, if anything. */
  readonly wakeAt: () => number | undefined;
}

export class SessionRow {
  #status: SessionStatus;
  #waitsKey: string;
  /** The same list is not looked at again: many waits make no single commit slower that does not change them. */
  #looked: Looked;

  constructor({ status, waits, wakeAt }: Session) {
    this.#status = status;
    this.#looked = lookAt(waits);
    this.#waitsKey = waitsKeyOf(this.#looked, wakeAt);
  }

  /** What the row says of how it stands. */
  get status(): SessionStatus {
    return this.#status;
  }

  /** The row after a segment that goes on; `undefined` when nothing of it changed. */
  standing({ kernel, isCheckpoint, isCancelling, wakeAt }: Stand): SessionPatch | undefined {
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
      ...(isCheckpoint ? { turn: kernel.turn } : {}),
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
 * K5: the row of a session whose agent did what it must not. It goes on with code that is mended, unless the fault is ours, or it
 * was being cancelled and so has nothing to go on to. The last of a chain of children that is too deep fails: each session above
 * it hears why, up to the root.
 */
export function faultPatch(fault: HoldfastError, cancelled: boolean): SessionPatch {
  const error = recordError(fault);
  const isTooDeep = fault instanceof LimitError && fault.limit === "depth";
  if (isTooDeep || fault.code === "internal" || (cancelled && fault.code !== "nondeterminism"))
    return { status: "failed", waits: [], error };
  const pauseReason = fault.code === "nondeterminism" ? "nondeterminism" : "agent_fault";
  return { status: "paused", pauseReason, waits: [], error };
}

/** The row of an ephemeral session that is gone with the process that had it in memory. */
export function lostPatch({ sessionId, cancel }: Session): SessionPatch {
  const message = `session ${sessionId} was ephemeral, and is gone with the process that ran it`;
  const error = { name: "HoldfastError", message, code: "session_lost" };
  return { status: cancel === undefined ? "failed" : "cancelled", waits: [], error };
}

/** A person asked for it; the row says so already. */
export const PAUSED_BY_USER: SessionPatch = { status: "paused", pauseReason: "by_user" };

/** The row of a session that may not spend what it needs. */
export function exhaustedPatch(exhausted: Exhausted): SessionPatch {
  const { payer, limit, used, max } = exhausted;
  const message = `the budget of session ${payer} is used up: ${limit} is ${max}, and ${used} are spent`;
  const error = { name: "HoldfastError", message, code: "budget_exceeded" };
  return { status: "paused", pauseReason: "budget_exceeded", exhausted, waits: [], error };
}

const NO_WAITS: Session["waits"] = [];

/** What is to be known of a list of waits. */
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

/** How a session that stood down left. */
export function pausedBy(sessionId: string, patch: SessionPatch): Departure {
  const { pauseReason: reason = "by_user" } = patch;
  return { type: "paused", reason, fault: sessionPaused({ ...patch, sessionId, pauseReason: reason }) };
}
