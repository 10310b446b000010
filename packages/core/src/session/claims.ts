// Who may advance a session, as pure functions over its claim. Where a claim is kept is the adapter's affair.
//
//   claims-1. A claim is over by its release, or when another one is made. That its lease has passed only allows that:
//       until then its holder may commit, and may renew it.
//   claims-2. A renewal never shortens: clocks of several machines differ, and an answer may come late.
//   claims-3. Losses are counted from commit to commit. A claim that was released is none, and takes none back either:
//       whoever claims and releases without a commit has proven nothing; nor has who has only written down what was
//       lost with the one before.
//
// It knows no sessions but their status, and no time but the one it is told.

import type { ClaimResult, HeldClaim, HeldClaimsQuery } from "./claim-results.ts";
import type { CommitBatch, HeldAs, ReleaseClaim } from "./changes.ts";
import { movedAway } from "./moving.ts";
import { isEnded, type Session } from "./session.ts";

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

export const NO_CLAIM: Claim = { token: 0, until: -Infinity, losses: 0 };

export function isHeld(claim: Claim, now: number): boolean {
  return claim.owner !== undefined && claim.until > now;
}

/** Whether something may be done in a session's name by who says that it holds it so: its lease may have passed (claims-1). */
export function isHeldAs(
  { status, move }: Pick<Session, "status" | "move">,
  claim: Claim,
  { token, owner = claim.owner }: HeldAs,
): boolean {
  if (isEnded(status) || move !== undefined || claim.owner === undefined) return false;
  return claim.token === token && claim.owner === owner;
}

/**
 * Why a session cannot be claimed, or `undefined` when it can: the adapter then makes a claim with a higher token.
 *
 * The holder itself may claim again. It does so when the reply to its first claim was lost; the token it never saw is
 * fenced from then on. Refusing it would lock it out until its own lease passes, which under one owner is never.
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

/** A claim that its holder goes on with (claims-2); itself when nothing changes. */
export function renewedClaim(claim: Claim, until: number): Claim {
  return claim.until >= until ? claim : { ...claim, until };
}

/** A claim under which a batch was committed (claims-3); itself when nothing changes. */
export function provenClaim(claim: Claim, batch: Pick<CommitBatch, "records">): Claim {
  return claim.losses === 0 || !isProof(batch) ? claim : { ...claim, losses: 0 };
}

/** claims-3. What only tells that attempts were lost begins the next ones, and whoever did the last ones may have died of them. */
export function isProof({ records }: Pick<CommitBatch, "records">): boolean {
  return records.length === 0 || records.some(({ type }) => type !== "attempt_lost");
}

/** What is left of a claim that was released. */
export function releasedClaim({ token, losses }: Claim): Claim {
  return { token, until: -Infinity, losses };
}

/** Releasing twice is releasing once; a claim that was taken over, or is used, is not the caller's to release. */
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

/** A page of the claims that are held by a lease that ends (ST48), for adapters that have them at hand. */
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
