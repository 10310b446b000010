// A session as JSON for programs: decoded, without what only storage needs.

import { decodeJson, defined, type Session } from "@holdfast/core";
import { currentError } from "./describe-session.ts";
import { kinJson } from "./session-tree.ts";

export function sessionJson(session: Session): object {
  const { sessionId, title, agent, status, pauseReason, waits, wakeAt, turn, cancel, move } = session;
  const error = currentError(session);
  const { input, output, cost, entryCount, nextSeq, createdAt, updatedAt, endedAt } = session;
  return {
    sessionId,
    ...defined({ title }),
    agent,
    status,
    ...defined({ pauseReason }),
    input: decodeJson(input) ?? null,
    ...(output === undefined ? {} : { output: decodeJson(output) }),
    ...defined({ error }),
    waits,
    ...defined({ wakeAt, cancel, move }),
    ...kinJson(session),
    ...defined({ cost }),
    turn,
    entryCount,
    recordCount: nextSeq,
    createdAt,
    updatedAt,
    ...defined({ endedAt }),
  };
}
