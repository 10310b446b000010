// What storage answers about claims: that one was made or why not, and which are held.

import type { SessionStatus } from "./session.ts";

export type ClaimResult =
  /** `losses`: ST39. */
  | { readonly status: "claimed"; readonly token: number; readonly losses: number }
  | { readonly status: "busy"; readonly owner: string }
  | { readonly status: "moved"; readonly to: string }
  | { readonly status: "ended"; readonly sessionStatus: SessionStatus }
  | { readonly status: "not_found" };

/** Which held claims to list, in the order of their sessions' ids (ST48). */
export interface HeldClaimsQuery {
  readonly now: number;
  readonly limit: number;
  /** Only the claim of this session. */
  readonly sessionId?: string;
  /** Only the claims of this owner. */
  readonly owner?: string;
  /** Only sessions whose ids come after this one. */
  readonly after?: string;
}

export interface HeldClaim {
  readonly sessionId: string;
  readonly owner: string;
  readonly token: number;
  /** When its lease ends, in epoch milliseconds. */
  readonly until: number;
  /** The length of its lease, as its last claim or renewal gave it. */
  readonly leaseMs: number;
  /** The session's. */
  readonly inbox: number;
  /** What ST39 says of it now. */
  readonly losses: number;
}
