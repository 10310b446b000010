// A session as JSON for programs: decoded, without what only storage needs.

import { decodeJson, type Session } from "@holdfast/core";
import { currentError } from "./describe-session.ts";
import { kinJson } from "./session-tree.ts";

export function sessionJson(session: Session): object {
  const { sessionId, agent, status, pauseReason, waits, wakeAt, turn, cancel, move } = session;
  const error = currentError(session);
  const { input, output, cost, entryCount, nextSeq, createdAt, updatedAt, endedAt } = session;
  return {
    sessionId,
    agent,
    status,
    ...(pauseReason === undefined ? {} : { pauseReason }),
    input: decodeJson(input) ?? null,
    ...(output === undefined ? {} : { output: decodeJson(output) }),
    ...(error === undefined ? {} : { error }),
    waits,
    ...(wakeAt === undefined ? {} : { wakeAt }),
    ...(cancel === undefined ? {} : { cancel }),
    ...(move === undefined ? {} : { move }),
    ...kinJson(session),
    ...(cost === undefined ? {} : { cost }),
    turn,
    entryCount,
    recordCount: nextSeq,
    createdAt,
    updatedAt,
    ...(endedAt === undefined ? {} : { endedAt }),
  };
}
