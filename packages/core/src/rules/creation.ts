// `createSession`, `refuseCreation`, `findImportProblem`, `findTreeProblem`: the rules for sessions that are
// created or imported.

import { findAccountProblem, NO_AMOUNT, openAccount, sumOf } from "../budget/budget.ts";
import type {
  ChangeResult,
  CommitBatch,
  CreateSession,
  HeldAs,
  ImportedSession,
  ImportTree,
} from "../session/changes.ts";
import { ownedBy, type Session } from "../session/session.ts";
import { titleFrom } from "../title.ts";
import { findRecordProblem, refuseBatch, type BatchLookups } from "./batches.ts";
import { isHeldAs, NO_CLAIM, type Claim } from "./claims.ts";

/**
 * The row of a new session.
 *
 * @param predecessor the session that the new one takes over from. Its payers pay for its successor, and its
 * deadline is the latest for it.
 * @param predecessor the session that the new one takes over from. The accounts that paid for the predecessor
 *   pay for its successor.
 */
export function createSession(
  change: CreateSession,
  now: number,
  parent?: Session,
  predecessor?: Session,
): Session {
  const { sessionId, budget, shared, persistence, resumedFrom } = change;
  const above = (predecessor ?? parent)?.payers ?? [];
  const deadlineAt = Math.min(change.deadlineAt ?? Infinity, predecessor?.deadlineAt ?? Infinity);
  const environment = change.environment ?? (predecessor ?? parent)?.environment;
  const placement = ownedBy(change.placement?.owner ?? parent?.placement?.owner, change.placement);
  const title = titleFrom(change);
  return {
    sessionId,
    agent: change.agent,
    ...(title === undefined ? {} : { title }),
    input: change.input,
    status: "submitted",
    waits: [],
    nextSeq: 0,
    entryCount: 0,
    turn: 0,
    inbox: 0,
    seed: change.seed,
    flags: change.flags,
    format: change.format,
    depth: change.depth ?? 0,
    children: 0,
    payers: budget === undefined ? above : [sessionId, ...above],
    ...(change.parent === undefined ? {} : { parent: change.parent }),
    ...(budget === undefined ? {} : { account: openAccount(budget) }),
    ...(shared === undefined ? {} : { shared }),
    ...(environment === undefined ? {} : { environment }),
    ...(placement === undefined ? {} : { placement }),
    ...(persistence === undefined ? {} : { persistence }),
    ...(deadlineAt === Infinity ? {} : { deadlineAt }),
    ...(resumedFrom === undefined ? {} : { resumedFrom }),
    createdAt: now,
    updatedAt: now,
  };
}

/** Reads for a session that is created under a claim of another session. */
export interface CreationLookups {
  /** The session that holds the claim. */
  asker(sessionId: string): { readonly session: Session; readonly claim: Claim } | undefined;
  /** Whether that session remembers this signal id. */
  hasSeen(sessionId: string, id: string): boolean;
}

/**
 * Why a session is not created, or `undefined`: the claim is not held (ST49), or the first batch is invalid
 * (ST25). The session's id is not taken.
 *
 * @param row the row of the new session.
 */
export function refuseCreation(
  change: CreateSession,
  row: Session,
  lookups: CreationLookups,
): ChangeResult | undefined {
  const { claimFor, under } = change;
  if (under !== undefined) {
    const asker = lookups.asker(under.sessionId);
    // mutant: queued-task-any-claim
    if (asker === undefined || !isHeldAs(asker.session, asker.claim, under)) return { status: "fenced" };
    if (lookups.hasSeen(under.sessionId, madeMark(change.sessionId, under))) return { status: "duplicate" };
  }
  const token = claimFor === undefined ? NO_CLAIM.token : NO_CLAIM.token + 1;
  const first = firstBatch(change, token);
  if (first === undefined) return undefined;
  return refuseBatch(row, { ...NO_CLAIM, ...claimFor, token }, first, NOTHING_YET);
}

/**
 * The mark of a session that was created under a claim. The claim's session remembers the mark like a
 * signal's id (ST49).
 */
export function madeMark(sessionId: string, { token }: HeldAs): string {
  return `made:${token}:${sessionId}`;
}

/** The reads for a session that does not exist yet. */
const NOTHING_YET: BatchLookups = { holdsRecords: () => false, isPending: () => false };

/** Why a session cannot be imported, or `undefined` when it can. */
export function findImportProblem({
  sessionId: asked,
  session,
  records,
  entries,
  holds,
}: ImportedSession): string | undefined {
  const { sessionId, nextSeq, entryCount, checkpointSeq, account, payers } = session;
  if (sessionId !== asked) return `is the row of ${sessionId}, to be stored as ${asked}`;
  if (records.length !== nextSeq) return `has ${records.length} records and says it has ${nextSeq}`;
  if (entries.length !== entryCount) return `has ${entries.length} entries and says it has ${entryCount}`;
  const problem = findRecordProblem(
    { ...session, nextSeq: 0, entryCount: 0 },
    { firstSeq: 0, records, entries },
  );
  if (problem !== undefined) return problem;
  const last = records.findLast(({ type }) => type === "checkpoint")?.seq;
  if (last !== checkpointSeq) return `says its last checkpoint is at ${checkpointSeq}, and it is at ${last}`;
  const held = sumOf(holds ?? []);
  const reserved = account?.reserved ?? NO_AMOUNT;
  if (held.tokens !== reserved.tokens || held.costMicroUsd !== reserved.costMicroUsd)
    return "its reserved amount does not equal the sum of the imported task reservations";
  const overcharged = account === undefined ? undefined : findAccountProblem(account);
  if (overcharged !== undefined) return overcharged;
  if (payers.includes(sessionId) !== (account !== undefined))
    return account === undefined
      ? "pays for itself and has no budget"
      : "has a budget and does not pay for itself";
  return session.inbox === 0 ? undefined : "has an inbox, and signals are not imported";
}

/**
 * Why these sessions are not one tree, or `undefined` when they are. Each session but the first comes after
 * its parent, or after the session that it took over from. No walk over parents or successors is therefore a
 * circle.
 */
export function findTreeProblem({ sessionId: root, sessions }: ImportTree): string | undefined {
  const all = new Set(sessions.map(({ sessionId }) => sessionId));
  if (all.size < sessions.length) return "holds a session twice";
  const earlier = new Set<string>();
  const below = new Set([root]);
  for (const { sessionId, session } of sessions) {
    const above = session.parent?.sessionId ?? "";
    const isBelow = below.has(sessionId) || earlier.has(above);
    if (!isBelow || (all.has(above) && !earlier.has(above)))
      return `holds session ${sessionId} before its parent, or without it`;
    earlier.add(sessionId);
    const { handedOffTo } = session;
    if (handedOffTo === undefined) continue;
    if (earlier.has(handedOffTo))
      return `holds session ${handedOffTo} before the session that it took over from`;
    below.add(handedOffTo);
  }
  return earlier.has(root) ? undefined : `does not hold its first session, ${root}`;
}

/** The batch that a session is created with (ST25); `undefined` when it is created without one. */
export function firstBatch({ sessionId, first }: CreateSession, token: number): CommitBatch | undefined {
  if (first === undefined) return undefined;
  return { type: "commit_batch", sessionId, token, firstSeq: 0, consumed: [], ...first };
}
