// `ClaimResult`: the answer of a storage to an attempt to claim a session. A claim is the right of one owner
// to advance it until a lease ends. `HeldClaimsQuery` and `HeldClaim`: the claims that are held.

import type { SessionStatus } from "./session.ts";

export type ClaimResult =
  /** `losses`: ST39. `before`: the token of the session's claim before this one, as far as storage knows it (ST6). */
  | {
      readonly status: "claimed";
      readonly token: number;
      readonly losses: number;
      readonly before?: number;
    }
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
  /** The length of the lease that the last claim or renewal gave. */
  readonly leaseMs: number;
  /** The `inbox` of the session. */
  readonly inbox: number;
  /** The losses before this claim that no commit has reset (ST39). */
  readonly losses: number;
}
