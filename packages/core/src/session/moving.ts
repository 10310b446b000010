// A session that goes to live in another storage, as pure functions over its row. On the way there may be no live place; two there
// never are.
//
//   frozen here ──► imported there, one home further on ──► here a tombstone that says where it went
//
//   MV1. From the freeze on nothing that concerns the session changes it here: no batch, claim, signal, cancel, pause or time. Who
//        asks is told where it goes, so that nothing is acknowledged that does not go along.
//   moving-2. It stays only by the word of who froze it, who knows that it is nowhere else. Once gone it is gone from
//       here for good: when it comes back, a home further on, its tombstone is deleted first, and nothing but that.
//   moving-3. Families are not torn apart: with a parent or a child that has not ended, paid for by another one, or
//       paying for one that goes on, it does not go.
//   moving-4. Nor does what is nowhere but in a process: an ephemeral one that has begun would arrive as lost.
//
// It knows no other storage, and no claims: whoever drives the session learns by being fenced.

import type { BeginMove, ChangeResult, EndMove } from "./changes.ts";
import { isEnded, isLost, type Session } from "./session.ts";

export interface MoveDecision {
  readonly result: ChangeResult;
  /** The row it leaves. */
  readonly session?: Session;
}

/** What is said instead of doing anything to a session that is moving or has moved (MV1). */
export function movedAway({
  move,
}: Pick<Session, "move">): { readonly status: "moved"; readonly to: string } | undefined {
  return move === undefined ? undefined : { status: "moved", to: move.to };
}

/** Those that are stored here. */
export interface Relatives {
  /** Its parent and its children. */
  readonly family: readonly Relative[];
  /** Whom its account pays for besides itself. */
  readonly paid: readonly Relative[];
}

type Relative = Pick<Session, "sessionId" | "status">;

export function decideBeginMove(
  session: Session,
  { moveId, to }: BeginMove,
  { family, paid }: Relatives,
  now: number,
): MoveDecision {
  const { sessionId, status, move, payers } = session;
  if (move !== undefined) {
    if (move.moveId !== moveId) return { result: { status: "moved", to: move.to } };
    return { result: { status: "requested", sessionStatus: status } };
  }
  if (isEnded(status)) return { result: { status: "ended", sessionStatus: status } };
  const open = family.find((relative) => !isEnded(relative.status));
  if (open !== undefined) {
    const reason = `session ${sessionId} is of one family with ${open.sessionId}, which has not ended`;
    return { result: { status: "invalid", reason } };
  }
  if (isLost(session)) {
    const reason = `session ${sessionId} is ephemeral, and is only in the process that runs it`;
    return { result: { status: "invalid", reason } };
  }
  const paying = paid.find((one) => !isEnded(one.status));
  if (paying !== undefined) {
    const reason = `session ${sessionId} pays for ${paying.sessionId}, which has not ended`;
    return { result: { status: "invalid", reason } };
  }
  const payer = payers.find((each) => each !== sessionId);
  if (payer !== undefined)
    return { result: { status: "invalid", reason: `session ${sessionId} is paid for by ${payer}` } };
  return {
    result: { status: "requested", sessionStatus: status },
    session: { ...session, move: { moveId, to }, updatedAt: now },
  };
}

export function decideEndMove(session: Session, { moveId, outcome }: EndMove, now: number): MoveDecision {
  const { move, status, ...rest } = session;
  if (move === undefined || move.moveId !== moveId)
    return {
      result: { status: "invalid", reason: `session ${session.sessionId} is not on the move ${moveId}` },
    };
  const result: ChangeResult = { status: "requested", sessionStatus: status };
  if (move.isDone) return outcome === "moved" ? { result } : { result: { status: "moved", to: move.to } };
  if (outcome === "stayed") return { result, session: { ...rest, status, updatedAt: now } };
  return { result, session: { ...session, move: { ...move, isDone: true }, updatedAt: now } };
}
