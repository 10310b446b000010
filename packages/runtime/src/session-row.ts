// What a session's row says, for those who look at it from outside: how it stands, what it waits for, how it ended.
//
// The row is written by the same commit as the segment it tells of, and only when it changes. States of a session that is driven:
// *working* (a task runs, or the agent is about to), *waiting* (nothing but timers and signals), *input_required* (a person is
// asked, whatever else goes on), *cancelling* (from the request on, until it ends). A fault parks it as *paused*, or fails it.
//
// It knows no journal and no storage: it makes patches, and remembers what the last of them said.

import {
  recordError,
  type Ending,
  type HoldfastError,
  type Kernel,
  type Session,
  type SessionPatch,
  type SessionStatus,
} from "@holdfast/core";

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

  constructor({ status, waits, wakeAt }: Session) {
    this.#status = status;
    this.#waitsKey = waitsKeyOf(waits, wakeAt);
  }

  get isPaused(): boolean {
    return this.#status === "paused";
  }

  /** A person resumed it. */
  unpause(): SessionPatch {
    this.#status = "working";
    return { status: "working", waits: [] };
  }

  /** The row after a segment that goes on; `undefined` when nothing of it changed. */
  standing({ kernel, isCheckpoint, isCancelling, wakeAt }: Stand): SessionPatch | undefined {
    const waits = isCheckpoint ? [] : kernel.open.waits();
    const status = isCancelling
      ? "cancelling"
      : isCheckpoint
        ? "working"
        : statusOf(waits, kernel.open.taskCount);
    const until = status === "working" ? undefined : wakeAt();
    const key = waitsKeyOf(waits, until);
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
    const output = ending.output === undefined ? {} : { output: ending.output };
    return { status: cancelled ? "cancelled" : "completed", waits: [], ...output };
  }
  const byCancel = cancelled && ending.error.code === "cancelled";
  return { status: byCancel ? "cancelled" : "failed", waits: [], error: ending.error };
}

/** K5: the row of a session whose agent did what it must not. Another program may go on with it, unless all would fail alike. */
export function faultPatch(fault: HoldfastError): SessionPatch {
  const error = recordError(fault);
  return fault.code === "nondeterminism" || fault.code === "non_durable_await"
    ? { status: "paused", pauseReason: "nondeterminism", waits: [], error }
    : { status: "failed", waits: [], error };
}

function statusOf(waits: Session["waits"], taskCount: number): SessionStatus {
  if (waits.some((wait) => wait.type === "input")) return "input_required";
  return waits.length > 0 && taskCount === 0 ? "waiting" : "working";
}

function waitsKeyOf(waits: Session["waits"], wakeAt: number | undefined): string {
  return waits.length === 0 && wakeAt === undefined
    ? ""
    : `${waits.map((wait) => wait.id).join(",")}@${wakeAt ?? ""}`;
}
