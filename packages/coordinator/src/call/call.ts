// What every service asks of a request beside its message: who asks, under which id, and whether they are still there.

import type { HandlerContext } from "@connectrpc/connect";
import type { Audit } from "@holdfast/core";
import { callerOf, requestIdOf, type Caller } from "./caller.ts";

export interface Call {
  readonly caller: Caller;
  readonly requestId: string;
  /** The caller has gone, or the time for its answer is over. */
  readonly signal: AbortSignal;
}

export function callOf(context: HandlerContext): Call {
  return { caller: callerOf(context), requestId: requestIdOf(context), signal: context.signal };
}

/** What an audit row says of this call. */
export function auditOf({ caller, requestId }: Call, action: string, object: string): Audit {
  const actor = caller.name === "" ? caller.kind : `${caller.kind}:${caller.name}`;
  return { actor, action, object, requestId };
}
