// `Call` is what a service knows of a request besides its message: the caller, the request's id, and the
// signal that ends it.

import type { HandlerContext } from "@connectrpc/connect";
import type { Audit } from "@holdfast/core";
import { callerOf, requestIdOf, type Caller } from "./caller.ts";

export interface Call {
  readonly caller: Caller;
  readonly requestId: string;
  /** Aborted when the caller has gone or the time for an answer is over. */
  readonly signal: AbortSignal;
}

export function callOf(context: HandlerContext): Call {
  return new ContextCall(context);
}

/** Few calls look at their signal, which costs more than the rest of a call's context. */
class ContextCall implements Call {
  readonly caller: Caller;
  readonly requestId: string;
  readonly #context: HandlerContext;

  constructor(context: HandlerContext) {
    this.caller = callerOf(context);
    this.requestId = requestIdOf(context);
    this.#context = context;
  }

  get signal(): AbortSignal {
    return this.#context.signal;
  }
}

/** The fields of an audit row for this call. */
export function auditOf({ caller, requestId }: Call, action: string, object: string): Audit {
  return { actor: actorOf(caller), action, object, requestId };
}

/** A caller in an audit row. */
export function actorOf({ kind, name }: Pick<Caller, "kind" | "name">): string {
  return name === "" ? kind : `${kind}:${name}`;
}
