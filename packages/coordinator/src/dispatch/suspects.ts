// What dispatch writes into sessions that were lost with their runners: that one is poison, or that a suspect is pardoned.
//
// It decides nothing: the rules say which session is which (rules-4 and rules-6 in `rules.ts`).

import type { Change, CommitBatch, Session } from "@holdfast/core";

type Row = Pick<Session, "sessionId" | "nextSeq">;

/** rules-4. Pauses a session and releases it. @param lossesMax how often it was lost with a runner that held nothing else. */
export function park(row: Row, token: number, lossesMax: number): readonly Change[] {
  const message = `the session was lost ${lossesMax} times in a row with a runner that held nothing else, without a commit between`;
  const fix = "find out what in the session crashes its runner, correct that, then unpause the session";
  const error = { name: "HoldfastError", message, code: "session_paused", fix } as const;
  return [
    { ...emptyBatch(row, token), session: { status: "paused", pauseReason: "poison", error } },
    { type: "release_claim", sessionId: row.sessionId, token },
  ];
}

/** rules-6. A commit takes the losses back, also one of nothing (claims-3). */
export function pardon(row: Row, token: number): readonly Change[] {
  return [emptyBatch(row, token)];
}

/** A batch without records, as dispatch writes it into a session that it has claimed. */
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
