// The runs of a session that have ended: one document for each session that has any, newest run last.
//
//   - A run ends with its claim: when a batch under the claim or a cancel ends the session, or when the claim
//     is released.
//   - At most `ENDED_RUNS_MAX` runs are kept for a session; the oldest are dropped first.
//   - Its token identifies a run within its session: no two claims of a session have the same one (O2). The
//     first record of a run stays.
//
// A batch or a release keeps a run only if the change carries a `run` note. A coordinator adds the note to
// what its runners commit. A cancel carries no note, so the run gets its holder from the claim. A claim whose
// lease never ends belongs to a process that runs sessions without a coordinator. Such a process has no runs
// to list.

import type { RunNote } from "../session/changes.ts";
import type { StoredDocument } from "../session/stored-documents.ts";
import type { Session, SessionStatus } from "../session/session.ts";

/** The collection of these documents; a document's id is its session's. */
export const ENDED_RUNS = "runs";
const ENDED_RUNS_MAX = 50;

export interface EndedRun extends RunNote {
  readonly token: number;
  /** Epoch milliseconds. */
  readonly endedAt: number;
  /**
   * The status of the session when the run ended. `waiting`, `input_required` and `paused` are suspensions.
   * `working` and `submitted` say that the runner released the session before it had finished.
   */
  readonly outcome: SessionStatus;
}

/** The part of the transaction that these rules use. */
interface EndedRunsLedger {
  document(collection: string, id: string): StoredDocument | undefined;
  putDocument(collection: string, document: StoredDocument): void;
  removeDocument(collection: string, id: string): void;
}

/**
 * ST50. Add the run that a change ends, when the change says which run that is. `session`: as it is after the
 * change.
 */
export function keepEndedRun(
  ledger: EndedRunsLedger,
  { token, run }: { readonly token: number; readonly run?: RunNote },
  session: Pick<Session, "sessionId" | "status"> | undefined,
  now: number,
): void {
  if (run === undefined || session === undefined) return;
  const { sessionId, status: outcome } = session;
  const stored = ledger.document(ENDED_RUNS, sessionId);
  const before = stored === undefined ? [] : endedRunsOf(stored);
  if (before.some((kept) => kept.token === token)) return;
  const ended: EndedRun = { token, ...run, endedAt: now, outcome };
  const runs = [...before, ended].slice(-ENDED_RUNS_MAX);
  ledger.putDocument(ENDED_RUNS, {
    id: sessionId,
    body: JSON.stringify(runs),
    version: (stored?.version ?? 0) + 1,
    updatedAt: now,
  });
}

/** ST50. Add the run whose session was ended by a cancel. `session`: as it is after the cancel. */
export function keepClaimedRun(
  ledger: EndedRunsLedger,
  { owner, token, until }: { readonly owner?: string; readonly token: number; readonly until: number },
  session: Session,
  now: number,
): void {
  if (owner !== undefined && until !== Infinity)
    keepEndedRun(ledger, { token, run: { holder: owner } }, session, now);
}

/** ST50. Remove the document of ended runs with its session. */
export function removeEndedRuns(ledger: EndedRunsLedger, sessionId: string): void {
  if (ledger.document(ENDED_RUNS, sessionId) !== undefined) ledger.removeDocument(ENDED_RUNS, sessionId);
}

/** Oldest first. */
export function endedRunsOf({ body }: Pick<StoredDocument, "body">): readonly EndedRun[] {
  return JSON.parse(body) as readonly EndedRun[];
}
