// `callerTransport`: clients of the contract within the coordinator's process, for the bearer of one token.
//
// Role, rate and constraints are checked as for a request over the wire, so an endpoint that uses it grants
// no right.

import { defined } from "@holdfast/core";
import { create, type DescMethod } from "@bufbuild/protobuf";
import { createHandlerContext, type HandlerContext, type Transport } from "@connectrpc/connect";

import type { Calls } from "../api/calls.ts";
import { methodOf } from "../api/contract.ts";
import { identify, type Caller } from "../call/caller.ts";

export interface CallerTransportOptions {
  readonly calls: Calls;
  readonly caller: Caller;
  readonly authorization: string | undefined;
  readonly requestId: string;
}

/** Its calls reject with HoldfastErrors. */
export function callerTransport({
  calls,
  caller,
  authorization,
  requestId,
}: CallerTransportOptions): Transport {
  const enter = (desc: DescMethod, requestSignal: AbortSignal | undefined): HandlerContext => {
    calls.admit(methodOf(desc), caller);
    const context = createHandlerContext({
      service: desc.parent,
      method: desc,
      protocolName: "endpoint",
      requestMethod: "POST",
      url: "",
      requestHeader: authorization === undefined ? [] : [["authorization", authorization]],
      ...defined({ requestSignal }),
    });
    identify(context, caller, requestId);
    return context;
  };
  return {
    async unary(method, signal, _timeoutMs, _header, input) {
      const message = await calls.unary(method, create(method.input, input), enter(method, signal));
      return { stream: false, service: method.parent, method, ...HEADERS, message: message as never };
    },
    async stream(method, signal, _timeoutMs, _header, input) {
      const request = await firstOf(input);
      const answers = calls.stream(method, create(method.input, request), enter(method, signal));
      return { stream: true, service: method.parent, method, ...HEADERS, message: answers as never };
    },
  };
}

const HEADERS = { header: new Headers(), trailer: new Headers() };

async function firstOf<T>(items: AsyncIterable<T>): Promise<T> {
  for await (const item of items) return item;
  throw new Error("a call has no request");
}
