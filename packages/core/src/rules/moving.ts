// `decideBeginMove`, `decideEndMove`: the rules for a session that moves to another storage. A session lives
// in one storage at most.
//
//   frozen here ──► imported there, with the next home number ──► here a tombstone that names the new place
//
//   moving-1. A frozen session accepts no change: no batch, claim, signal, cancel, pause or timer. Every
//       caller gets the destination, so nothing is acknowledged that would not move with it.
//   moving-2. Only the process that froze the session may unfreeze it, because it knows that the session is
//       nowhere else. After the move the tombstone stays until the session comes back with a higher home
//       number. Then the tombstone is deleted, and nothing else.
//   moving-3. A session does not move while a parent, a child or a session that its account pays for is
//       active. A session that another account pays for does not move either.
//   - An ephemeral session that has begun does not move, because it would arrive as lost.
//
// These rules know no other storage and no claims. The driver of a moved session notices the move because its
// next commit is fenced.

import type { BeginMove, ChangeResult, EndMove } from "../session/changes.ts";
import { isEnded, isLost, type Session } from "../session/session.ts";

export interface MoveDecision {
  readonly result: ChangeResult;
  /** The new row; absent when nothing changes. */
  readonly session?: Session;
}

/** The result for a session that is moving or has moved (moving-1); `undefined` for any other session. */
export function movedAway({
  move,
}: Pick<Session, "move">): { readonly status: "moved"; readonly to: string } | undefined {
  return move === undefined ? undefined : { status: "moved", to: move.to };
}

/** The relatives of a session that are stored here. */
export interface Relatives {
  /** The parent and the children. */
  readonly family: readonly Relative[];
  /** The other sessions that its account pays for. */
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
