// Who calls, and how a service learns it.

import {
  createContextKey,
  createContextValues,
  type ContextValues,
  type HandlerContext,
} from "@connectrpc/connect";

/** What a token says of its bearer; `none` where a method asks for no token. */
export interface Caller {
  readonly kind: "admin" | "user" | "runner" | "job" | "registration" | "none";
  /** Of a user the name, of a runner its id, of a job its session's id; of others what they are called. */
  readonly name: string;
  /** Names the token, and is not the token. */
  readonly tokenId: string;
  /** The user whose objects alone it may see; for a user that is `name`. */
  readonly owner?: string;
}

export type Authenticated =
  | { readonly status: "known"; readonly caller: Caller }
  | { readonly status: "unknown" }
  /** It was good once: revoked, used up or expired. */
  | { readonly status: "revoked" };

/** Whose token this is. Must not throw for a token that is none. Called for every request, and again while a stream lasts. */
export type Authenticate = (token: string) => Promise<Authenticated>;

export const NOBODY: Caller = { kind: "none", name: "", tokenId: "" };

const CALLER = createContextKey<Caller>(NOBODY, { description: "caller" });
const REQUEST_ID = createContextKey("", { description: "request id" });
const REST_STATUS = createContextKey(0, { description: "status of REST" });

/** For services: who calls. */
export function callerOf({ values }: HandlerContext): Caller {
  return values.get(CALLER);
}

/** For services: what logs and audit call this request. */
export function requestIdOf({ values }: HandlerContext): string {
  return values.get(REQUEST_ID);
}

/** The status that ends a stream for a reader which would come back otherwise. */
export const NO_CONTENT = 204;

/** For services: REST answers with another status than the contract's, where one method has two good ends. */
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
