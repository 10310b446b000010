// `consequencesOf`: the changes to parent and children that follow from a change to one session, in the same
// transaction.
//
//   consequences-1. A session's parent is notified of its end exactly once, whether its agent, a cancel or a
//       deadline ended it (S4). If another session took over, the successor notifies the parent instead.
//   consequences-2. A cancel reaches the whole tree below in the transaction that acknowledges it. A session
//       that is created below later is cancelled in the transaction that creates it. An end cancels those
//       children that were not to be left.
//   consequences-3. Every pause is reported to the parent, because somebody has to fix its cause. A cancel
//       for an exhausted budget is reported as well, with the limit, before the end. The event is the same,
//       whether the budget pauses or cancels.
//   consequences-4. A child that asked its parent something gets an answer when the parent ends without one.
//       A request to a parent that has ended is answered at once.
//   consequences-5. If a child's id belongs to another session already, the parent is notified that the child
//       failed. Effects of the parent on that child do nothing.
//   consequences-6. A parent that asked for a callback, or for the end alone, is told nothing else of the
//       child. A callback is one signal, in the transaction of the end.
//
// This file knows rows and makes changes. The storage finds children, and the cascade applies the changes.

import { positionId } from "../ids.ts";
import { CHILD_ENDED, childEndName, childEventName, replyName } from "../journal/signal-names.ts";
import type { JsonText } from "../json/json.ts";
import { LIMITS } from "../limits.ts";
import type { RequestCancel, SendSignal } from "../session/changes.ts";
import { remainingOf, type Account, type Exhausted } from "../budget/budget.ts";
import { isEnded, type ParentRef, type Session } from "../session/session.ts";
import type { CancelCause } from "../journal/amounts.ts";
import type { Per } from "../budget/windows.ts";

/** A change to another session, or one to all children of a session. */
export type Consequence = SendSignal | CancelChildren;

export interface CancelChildren {
  readonly type: "cancel_children";
  readonly sessionId: string;
  /** Whether also those that were to be left. */
  readonly all: boolean;
  /** Whether it is because their parent has ended. */
  readonly isEnd: boolean;
  readonly request: Omit<RequestCancel, "type" | "sessionId">;
}

/** An event of a child for its parent, as `ctx.waitForChildEvent` returns it. */
export type ChildEvent =
  | { readonly type: "signal"; readonly name: string; readonly payload: unknown }
  | { readonly type: "progress"; readonly data: unknown }
  | { readonly type: "blocked"; readonly reason: string }
  | {
      readonly type: "budget_exceeded";
      readonly limit: string;
      /** Absent for a limit per lifetime. */
      readonly per?: Per;
      readonly used: number;
      readonly max: number;
      /** When the child continues without a person, because the window has rolled on. Epoch milliseconds. */
      readonly until?: number;
    }
  | { readonly type: "completed"; readonly output: unknown }
  | { readonly type: "failed"; readonly error: unknown; readonly progress?: unknown }
  | {
      readonly type: "cancelled";
      readonly reason: string | null;
      readonly cause?: CancelCause;
      readonly output?: unknown;
    }
  | { readonly type: "timed_out"; readonly output?: unknown };

/** The payload of a callback. */
export interface Callback {
  /** The session that ended: the child, or the last successor that it handed over to. */
  readonly child: string;
  readonly event: ChildEvent;
}

/** Whether it is the child's last event. */
export function isLastEvent({ type }: ChildEvent): boolean {
  return type === "completed" || type === "failed" || type === "cancelled" || type === "timed_out";
}

/** In the order they are to be applied. */
export function consequencesOf(before: Session, after: Session, now: number): readonly Consequence[] {
  if (before === after) return NONE;
  if (isEnded(after.status)) return isEnded(before.status) ? NONE : [...notifyEnd(after), cancelBelow(after)];
  // mutant: cancel-of-root-only
  if (after.cancel !== undefined && before.cancel === undefined) {
    const graceMs = after.cancel.deadlineAt - now;
    const below = cancelChildren(after, { all: true, isEnd: false, mode: "graceful", graceMs });
    const { exhausted } = after.cancel;
    // mutant: budget-end-unreported
    if (exhausted === undefined || after.parent === undefined) return [below];
    return [toParent(after.parent, `${after.sessionId}:exhausted`, exhaustedEvent(exhausted)), below];
  }
  return after.status === "paused" && before.status !== "paused" ? notifyPause(after) : NONE;
}

/** The name of the signal to a parent about a child's low budget. No agent can send a signal of this name. */
export const BUDGET_LOW = "budget-low";

/**
 * ST29. The signal to a session's parent when less than a tenth of its budget is left. The successor of a
 * session sends it instead.
 */
export function notifyLow(payer: Session, account: Account, now: number): readonly SendSignal[] {
  const { parent, sessionId } = payer;
  // A session that has ended notifies no parent, though the sessions that it left may still spend.
  if (parent === undefined || isEnded(payer.status)) return NONE;
  const payload = JSON.stringify({
    type: "signal",
    name: BUDGET_LOW,
    payload: remainingOf([account], now),
  });
  // It is low again only after it was raised, which changes the row, or a window has rolled on. Either way
  // more was spent or reserved since.
  const { tokens, costMicroUsd, steps, turns } = account.spent;
  const when = [payer.updatedAt, tokens, costMicroUsd, steps, turns].join(":");
  return [toParent(parent, `${sessionId}:low:${when}`, payload)];
}

/** A signal to the parent's inbox, under the child's name. */
export function toParent(
  parent: Pick<ParentRef, "sessionId" | "child">,
  signalId: string,
  payload: JsonText,
): SendSignal {
  const name = childEventName(parent.child);
  return { type: "send_signal", sessionId: parent.sessionId, signalId, name, payload };
}

/**
 * consequences-4. The answer to a request that the parent will not answer. Sending it twice is sending it
 * once.
 */
export function refuseRequest(asking: string, request: number, parentId: string): SendSignal {
  const signalId = `${positionId(asking, request)}:refused`;
  const payload = JSON.stringify({ ended: parentId });
  return { type: "send_signal", sessionId: asking, signalId, name: replyName(request), payload };
}

/** consequences-1. */
function notifyEnd(session: Session): readonly SendSignal[] {
  const { sessionId, parent, handedOffTo } = session;
  // mutant: child-end-unreported
  if (parent === undefined || handedOffTo !== undefined) return NONE;
  return lastWords(parent, sessionId, endEvent(session));
}

/**
 * The signals of a child's last event: one among its events, one for a wait for its end alone, and the
 * callback (consequences-6).
 */
export function lastWords(
  parent: Pick<ParentRef, "sessionId" | "child" | "notify">,
  childId: string,
  event: JsonText,
  by = childId,
): readonly SendSignal[] {
  const { notify } = parent;
  const last = toParent(parent, `${by}:end`, event);
  const end = { ...last, signalId: `${by}:ended`, name: childEndName(parent.child) };
  // mutant: child-end-reported-twice
  if (notify === undefined) return [last, end];
  // mutant: callback-unsent
  if (notify === "end") return [end];
  const payload = `{"child":${JSON.stringify(childId)},"event":${event}}`;
  return [end, { ...last, signalId: `${by}:callback`, name: CHILD_ENDED, payload }];
}

/** consequences-6. Whether a signal of a session to another one is an event that its parent does not want. */
export function isUnwanted({ parent }: Pick<Session, "parent">, signal: SendSignal): boolean {
  if (parent?.notify === undefined || signal.sessionId !== parent.sessionId) return false;
  return signal.name === childEventName(parent.child);
}

/** consequences-5. */
export function notifyTaken(parent: ParentRef, sessionId: string): readonly SendSignal[] {
  const message = `there is another session ${sessionId} already, so the one that was asked for was not made`;
  const error = { name: "ConflictError", message, code: "session_exists" };
  const event = { type: "failed", error } satisfies ChildEvent;
  return lastWords(parent, sessionId, JSON.stringify(event), `${sessionId}:taken`);
}

/** The last event of a child that is not stored here, because it was deleted or not imported with its parent. */
export function absentEnd(childId: string): JsonText {
  const message = `session ${childId} is not here: it was deleted, or detached from its parent by an import`;
  const error = { name: "NotFoundError", message, code: "session_not_found" };
  return JSON.stringify({ type: "failed", error } satisfies ChildEvent);
}

/** The last event of a session that has ended, for its parent. */
export function endEvent({ status, output, error, cancel, progress }: Session): JsonText {
  const part = output === undefined ? "" : `,"output":${output}`;
  if (status === "completed") return `{"type":"completed","output":${output ?? "null"}}`;
  if (status === "failed") {
    const far = progress === undefined ? "" : `,"progress":${progress}`;
    return `{"type":"failed","error":${JSON.stringify(error ?? null)}${far}}`;
  }
  if (cancel?.cause === "deadline") return `{"type":"timed_out"${part}}`;
  const reason = cancel?.reason ?? cancel?.cause ?? null;
  const why = cancel?.cause === undefined ? "" : `,"cause":${JSON.stringify(cancel.cause)}`;
  return `{"type":"cancelled","reason":${JSON.stringify(reason)}${why}${part}}`;
}

function exhaustedEvent({ limit, per, used, max, until }: Exhausted): JsonText {
  const window = { ...(per === undefined ? {} : { per }), ...(until === undefined ? {} : { until }) };
  return JSON.stringify({ type: "budget_exceeded", limit, used, max, ...window } satisfies ChildEvent);
}

function notifyPause({
  sessionId,
  parent,
  pauseReason,
  exhausted,
  inbox,
  nextSeq,
  updatedAt,
}: Session): readonly Consequence[] {
  if (parent === undefined) return NONE;
  const blocked: ChildEvent = { type: "blocked", reason: pauseReason ?? "unknown" };
  const event = exhausted === undefined ? JSON.stringify(blocked) : exhaustedEvent(exhausted);
  return [toParent(parent, `${sessionId}:paused:${inbox}:${nextSeq}:${updatedAt}`, event)];
}

function cancelBelow(after: Session): Consequence {
  const hard = after.cancel?.mode === "hard";
  return cancelChildren(after, {
    all: hard,
    isEnd: true,
    mode: hard ? "hard" : "graceful",
    graceMs: LIMITS.cancelGraceMs,
  });
}

function cancelChildren(
  { sessionId }: Session,
  {
    all,
    isEnd,
    mode,
    graceMs,
  }: Pick<CancelChildren, "all" | "isEnd"> & Pick<RequestCancel, "mode" | "graceMs">,
): Consequence {
  return { type: "cancel_children", sessionId, all, isEnd, request: { mode, graceMs, cause: "parent" } };
}

const NONE: readonly never[] = [];
