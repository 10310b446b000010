// `refuseClaim`, `nextClaim`, `decideRelease`: the rules for claims. Only the holder of a session's claim may
// advance the session.
//
//   - A claim ends with its release, or when another claim is made. The end of its lease only allows another
//     claim: until then the holder may commit, and may renew the lease.
//   - A renewal never shortens a lease, because clocks of several machines differ and an answer may come
//     late.
//   claims-3. Losses are counted between commits. A released claim is not a loss, and does not reset the
//       count: a holder that only claims and releases has proven nothing. A commit that only records lost
//       attempts, or attempts that are handed over, does not reset the count either. A release on behalf of a holder that is gone is a loss,
//       once, as if its lease had passed.
//
// These rules know no sessions but their status, and no time but the time they are given. The storage keeps
// the claims.

import type { ClaimResult, HeldClaim, HeldClaimsQuery } from "../session/claim-results.ts";
import type { CommitBatch, HeldAs, ReleaseClaim } from "../session/changes.ts";
import { movedAway } from "./moving.ts";
import { isEnded, type Session } from "../session/session.ts";

export interface Claim {
  /** Grows with every claim of the session, also over restarts (ST6). 0 before the first. */
  readonly token: number;
  /** Absent once released. */
  readonly owner?: string;
  /** End of the lease in epoch milliseconds; at that instant it has passed. */
  readonly until: number;
  /** How many claims before this one ran out since the session's last commit (ST39). */
  readonly losses: number;
}

/** The number of losses in a row that makes a session a suspect, to be tried alone. */
export const SUSPECT_LOSSES = 2;
/** The default for how often a suspect may be lost alone. */
export const ALONE_LOSSES_MAX = 5;

export const NO_CLAIM: Claim = { token: 0, until: -Infinity, losses: 0 };

export function isHeld(claim: Claim, now: number): boolean {
  return claim.owner !== undefined && claim.until > now;
}

/** Whether a caller that names a claim may act for the session. The claim's lease may have ended. */
export function isHeldAs(
  { status, move }: Pick<Session, "status" | "move">,
  claim: Claim,
  { token, owner = claim.owner }: HeldAs,
): boolean {
  if (isEnded(status) || move !== undefined || claim.owner === undefined) return false;
  return claim.token === token && claim.owner === owner;
}

/**
 * Why a session cannot be claimed, or `undefined` when it can: the adapter then makes a claim with a higher
 * token.
 *
 * The holder itself may claim again. It does so when the reply to its first claim was lost; the token it
 * never saw is fenced from then on. Refusing it would lock it out until its own lease passes, which under one
 * owner is never.
 */
export function refuseClaim(
  session: Pick<Session, "status" | "move">,
  claim: Claim,
  asked: { readonly owner: string; readonly now: number; readonly unlessHeld?: boolean | undefined },
): ClaimResult | undefined {
  if (isEnded(session.status)) return { status: "ended", sessionStatus: session.status };
  const moved = movedAway(session);
  if (moved !== undefined) return moved;
  if (claim.owner === undefined || !isHeld(claim, asked.now)) return undefined;
  if (claim.owner === asked.owner && asked.unlessHeld !== true) return undefined;
  return { status: "busy", owner: claim.owner };
}

/** The claim that follows one that does not refuse it. */
export function nextClaim(
  claim: Claim,
  asked: { readonly owner: string; readonly now: number; readonly leaseMs: number },
  token: number,
): Claim {
  const { owner, now, leaseMs } = asked;
  const isLost = claim.owner !== undefined && !isHeld(claim, now);
  return { token, owner, until: now + leaseMs, losses: claim.losses + (isLost ? 1 : 0) };
}

/** The answer to a claim that was made. @param before the claim that it follows. */
export function claimedAfter(before: Claim, { token, losses }: Claim): ClaimResult {
  return { status: "claimed", token, losses, before: before.token };
}

/** A claim after its renewal; the same object when nothing changes. */
export function renewedClaim(claim: Claim, until: number): Claim {
  // mutant: renewal-shortens
  return claim.until >= until ? claim : { ...claim, until };
}

/** A claim after a commit (claims-3); the same object when nothing changes. */
export function provenClaim(claim: Claim, batch: Pick<CommitBatch, "records">): Claim {
  // mutant: losses-kept
  return claim.losses === 0 || !isProof(batch) ? claim : { ...claim, losses: 0 };
}

/**
 * claims-3. Whether a batch proves that its claim holder can commit. A batch of lost attempts does not: their
 * process may have died of them. Attempts that are handed over do not prove it either: their process was stopped
 * before they could end it.
 */
export function isProof({ records }: Pick<CommitBatch, "records">): boolean {
  return records.length === 0 || records.some((record) => !isLostOrHandedOver(record));
}

function isLostOrHandedOver(record: CommitBatch["records"][number]): boolean {
  // mutant: hand-over-proves
  return (
    record.type === "attempt_lost" || (record.type === "attempt_failed" && record.handedOver !== undefined)
  );
}

/** Whether a session may be the cause of its losses. */
export function isSuspect(losses: number): boolean {
  return losses >= SUSPECT_LOSSES;
}

/** Whether a session must be paused. @param lossesMax how often a session may be lost alone. */
export function isPoison(losses: number, lossesMax: number): boolean {
  // mutant: shared-losses-counted
  return losses >= SUSPECT_LOSSES + lossesMax;
}

/** A claim after its release. @param isLost whether its holder is gone, which counts as a loss (claims-3). */
export function releasedClaim({ token, owner, losses }: Claim, isLost = false): Claim {
  return { token, until: -Infinity, losses: losses + (isLost && owner !== undefined ? 1 : 0) };
}

/**
 * Releasing twice is releasing once; a claim that was taken over, or is used, is not the caller's to release.
 */
export function decideRelease(
  { nextSeq, updatedAt }: Pick<Session, "nextSeq" | "updatedAt">,
  claim: Claim,
  { token, ifUnchanged }: Pick<ReleaseClaim, "token" | "ifUnchanged">,
): "released" | "fenced" {
  if (token !== claim.token || token === NO_CLAIM.token) return "fenced";
  if (ifUnchanged === undefined) return "released";
  return ifUnchanged.nextSeq === nextSeq && ifUnchanged.updatedAt === updatedAt ? "released" : "fenced";
}

/** A session with its claim, and the length of the claim's lease. */
interface LeasedSession {
  readonly session: Pick<Session, "sessionId" | "status" | "inbox">;
  readonly claim: Claim;
  readonly leaseMs: number;
}

/**
 * A page of the claims that are held by a lease that ends (ST48), for adapters that keep claims in memory.
 */
export function pageOfClaims(
  all: Iterable<LeasedSession>,
  { now, limit, sessionId, owner, after }: HeldClaimsQuery,
): HeldClaim[] {
  const held: HeldClaim[] = [];
  for (const { session, claim, leaseMs } of all) {
    const { token, until, losses } = claim;
    if (claim.owner === undefined || until === Infinity || !isHeld(claim, now) || isEnded(session.status))
      continue;
    if (sessionId !== undefined && session.sessionId !== sessionId) continue;
    if (owner !== undefined && claim.owner !== owner) continue;
    if (after !== undefined && session.sessionId <= after) continue;
    const { inbox } = session;
    held.push({ sessionId: session.sessionId, owner: claim.owner, token, until, leaseMs, inbox, losses });
  }
  return held.sort((a, b) => (a.sessionId < b.sessionId ? -1 : 1)).slice(0, limit);
}
