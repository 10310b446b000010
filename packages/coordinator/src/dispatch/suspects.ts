// `park` and `pardon` make the changes for sessions that were lost with their runners: a poison session is
// paused, a suspect is pardoned.
//
// This file decides nothing: rules-4 and rules-6 in `rules.ts` say which session is which.

import type { Change, CommitBatch, Session } from "@holdfast/core";

type Row = Pick<Session, "sessionId" | "nextSeq">;

/**
 * rules-4. Pauses a session and releases it. @param lossesMax the number of its losses with a runner that
 * held nothing else.
 */
export function park(row: Row, token: number, lossesMax: number): readonly Change[] {
  const message = `the session was lost ${lossesMax} times in a row with a runner that held nothing else, without a commit between`;
  const fix = "find out what in the session crashes its runner, correct that, then unpause the session";
  const error = { name: "HoldfastError", message, code: "session_paused", fix } as const;
  return [
    { ...emptyBatch(row, token), session: { status: "paused", pauseReason: "poison", error } },
    { type: "release_claim", sessionId: row.sessionId, token },
  ];
}

/** rules-6. Any commit clears the losses, also one without records (claims-3). */
export function pardon(row: Row, token: number): readonly Change[] {
  return [emptyBatch(row, token)];
}

/** A batch without records for a session that dispatch has claimed. */
export function emptyBatch({ sessionId, nextSeq }: Row, token: number): CommitBatch {
  return {
    type: "commit_batch",
    sessionId,
    token,
    firstSeq: nextSeq,
    records: [],
    entries: [],
    consumed: [],
  };
}
