// gRPC, gRPC-Web and Connect, by connect-node: each method of the contract at `/holdfast.v1.{Service}/{Method}`.
//
// Here a user's JSON is bytes, and in Connect's JSON base64, as protobuf's JSON says. Messages are never compressed, in neither
// direction: something small that inflates to something large is a way to exhaust us.

import type { DescMethod, DescMethodUnary, Message } from "@bufbuild/protobuf";
import {
  createConnectRouter,
  type ConnectRouter,
  type HandlerContext,
  type MethodImpl,
} from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from "@connectrpc/connect-node";
import { toHoldfastError, type HoldfastError } from "@holdfast/core";
import { contextValuesOf, identify, requestIdOf } from "./caller.ts";
import type { Calls } from "./calls.ts";
import { methodOf, METHODS } from "./contract.ts";
import type { Exchange } from "./exchange.ts";
import { checkBody } from "./gates.ts";
import type { ApiLimits } from "./limits.ts";
import { Refusal, toConnectError } from "./refusal.ts";
import { isUnaryInBinary, serveUnary } from "./unary.ts";

export interface RpcOptions {
  readonly calls: Calls;
  readonly limits: ApiLimits;
  /** Aborted when the API closes. */
  readonly closing: AbortSignal;
  /** Told of every error on its way out. */
  readonly onError: (error: HoldfastError, requestId: string) => void;
}

/** @throws HoldfastError, when nothing has been answered yet. */
export type ServeRpc = (exchange: Exchange) => Promise<void>;

export function createRpc(options: RpcOptions): ServeRpc {
  const { limits } = options;
  const router = createConnectRouter({
    acceptCompression: [],
    shutdownSignal: options.closing,
    jsonOptions: { ignoreUnknownFields: false },
  });
  for (const method of METHODS) addMethod(router, method.desc, options);
  const handlers = new Map<string, UniversalHandler>(
    router.handlers.map((handler) => [handler.requestPath, handler]),
  );
  return async (exchange) => {
    const { request, response, requestId } = exchange;
    const handler = handlers.get(exchange.path);
    if (handler === undefined) throw new Refusal("not_found", "there is no such method");
    const { method } = handler;
    const maxBytes = maxBytesOf(method, limits);
    checkBody(request.rawHeaders, maxBytes);
    if (method.methodKind === "unary" && isUnaryInBinary(exchange))
      return serveUnary(exchange, method as DescMethodUnary, maxBytes, options);
    const asked = universalRequestFromNodeRequest(request, response, undefined, contextValuesOf(requestId));
    const given = await handler(asked);
    // What fails from here on is the connection: there is nobody left to be told.
    await universalResponseToNodeResponse(given, response).catch(() => response.destroy());
  };
}

function addMethod(router: ConnectRouter, desc: DescMethod, { calls, limits, onError }: RpcOptions): void {
  /** The error as Connect sends it. */
  const told = (thrown: unknown, context: HandlerContext): Error => {
    const error = toHoldfastError(thrown);
    onError(error, requestIdOf(context));
    return toConnectError(error, requestIdOf(context));
  };
  const unary = async (request: Message, context: HandlerContext): Promise<Message> => {
    try {
      return await calls.unary(desc, request, context);
    } catch (thrown) {
      throw told(thrown, context);
    }
  };
  const stream = async function* (request: Message, context: HandlerContext): AsyncGenerator<Message> {
    try {
      yield* calls.stream(desc, request, context);
    } catch (thrown) {
      throw told(thrown, context);
    }
  };
  const implementation = desc.methodKind === "server_streaming" ? stream : unary;
  router.rpc(desc, implementation as unknown as MethodImpl<DescMethod>, {
    readMaxBytes: maxBytesOf(desc, limits),
    requestGate: async (context) => {
      try {
        const authorization = context.requestHeader.get("authorization") ?? undefined;
        identify(context, await calls.enter(desc, authorization), requestIdOf(context));
      } catch (thrown) {
        throw told(thrown, context);
      }
    },
  });
}

/** An envelope of gRPC has five bytes of its own. */
const ENVELOPE_BYTES = 5;

function maxBytesOf(desc: DescMethod, limits: ApiLimits): number {
  return (methodOf(desc).isBatch ? limits.batchBytes : limits.bodyBytes) + ENVELOPE_BYTES;
}
