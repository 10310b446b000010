// `Caller` is the bearer of a request's token, and `callerOf` returns it to a service.

import {
  createContextKey,
  createContextValues,
  type ContextValues,
  type HandlerContext,
} from "@connectrpc/connect";

/** The claims of a token about its bearer; `none` for methods that need no token. */
export interface Caller {
  readonly kind: "admin" | "user" | "runner" | "job" | "registration" | "metrics" | "none";
  /** The user's name, the runner's id or the job's session id; otherwise the token's name. */
  readonly name: string;
  /** Identifies the token without revealing it. */
  readonly tokenId: string;
  /** The only user whose objects the caller may see; for a user, the same as `name`. */
  readonly owner?: string;
  /** The only projects that the caller's sessions may demand; any when absent. */
  readonly projects?: readonly string[];
}

export type Authenticated =
  | { readonly status: "known"; readonly caller: Caller }
  | { readonly status: "unknown" }
  /** The token was valid once, but is revoked, used or expired. */
  | { readonly status: "revoked" };

/**
 * Finds the bearer of a token. Must not throw for an unknown token. Called for every request, and repeatedly
 * during a stream.
 */
export type Authenticate = (token: string) => Promise<Authenticated>;

export const NOBODY: Caller = { kind: "none", name: "", tokenId: "" };

const CALLER = createContextKey<Caller>(NOBODY, { description: "caller" });
const REQUEST_ID = createContextKey("", { description: "request id" });
const REST_STATUS = createContextKey(0, { description: "status of REST" });

/** For services: the caller. */
export function callerOf({ values }: HandlerContext): Caller {
  return values.get(CALLER);
}

/** For services: the id of this request in logs and audit rows. */
export function requestIdOf({ values }: HandlerContext): string {
  return values.get(REQUEST_ID);
}

/** The status that ends a stream, so that its reader does not reconnect. */
export const NO_CONTENT = 204;

/** For services: replaces the contract's REST status, for methods that have two good results. */
export function setRestStatus({ values }: HandlerContext, status: number): void {
  values.set(REST_STATUS, status);
}

export function restStatusOf({ values }: HandlerContext): number | undefined {
  return values.get(REST_STATUS) || undefined;
}

export function identify(context: HandlerContext, caller: Caller, requestId: string): void {
  context.values.set(CALLER, caller).set(REQUEST_ID, requestId);
}

export function contextValuesOf(requestId: string): ContextValues {
  return createContextValues().set(REQUEST_ID, requestId);
}
