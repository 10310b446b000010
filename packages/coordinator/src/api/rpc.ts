// `createRpc` serves gRPC, gRPC-Web and Connect with connect-node: each method of the contract at
// `/holdfast.v1.{Service}/{Method}`.
//
// A user's JSON is bytes here, and base64 in Connect's JSON, as in protobuf's JSON. Messages are never
// compressed in either direction: a small message that inflates to a large one could exhaust memory.

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
import { LINE_PATH } from "@holdfast/proto";
import { contextValuesOf, identify, requestIdOf } from "../call/caller.ts";
import type { Calls } from "./calls.ts";
import { methodOf, METHODS } from "./contract.ts";
import type { Exchange } from "./exchange.ts";
import { checkBody } from "./request-guards.ts";
import { createLines } from "./line.ts";
import { encodeTrailers } from "./grpc-message.ts";
import type { ApiLimits } from "./limits.ts";
import { Refusal, toConnectError } from "../call/refusal.ts";
import { codecOf, LONGEST_TIMER_MS, serveUnary } from "./unary.ts";

export interface RpcOptions {
  readonly calls: Calls;
  readonly limits: ApiLimits;
  /** Aborted when the API closes. */
  readonly closing: AbortSignal;
  /** Called with every error before it is sent. */
  readonly onError: (error: HoldfastError, requestId: string) => void;
}

/** @throws HoldfastError when nothing has been answered yet. */
export type ServeRpc = (exchange: Exchange) => Promise<void>;

export function createRpc(options: RpcOptions): ServeRpc {
  const { limits } = options;
  const router = createConnectRouter({
    acceptCompression: [],
    maxTimeoutMs: LONGEST_TIMER_MS,
    shutdownSignal: options.closing,
    jsonOptions: { ignoreUnknownFields: false },
  });
  for (const method of METHODS) addMethod(router, method.desc, options);
  const handlers = new Map<string, UniversalHandler>(
    router.handlers.map((handler) => [handler.requestPath, handler]),
  );
  const serveLine = createLines(options, (desc) => maxBytesOf(desc, limits));
  return async (exchange) => {
    const { request, response, requestId } = exchange;
    if (exchange.path === LINE_PATH) return serveLine(exchange);
    const handler = handlers.get(exchange.path);
    if (handler === undefined)
      throw new Refusal("not_implemented", "the method does not exist", {
        expected: "/holdfast.v1.SERVICE/METHOD, a method of the contract",
      });
    const { method } = handler;
    const maxBytes = maxBytesOf(method, limits);
    checkBody(request.rawHeaders, maxBytes);
    const codec = method.methodKind === "unary" ? codecOf(exchange) : undefined;
    if (codec !== undefined) return serveUnary(exchange, method as DescMethodUnary, codec, maxBytes, options);
    refuseUnspoken(handler, request);
    encodeTrailers(response);
    const asked = universalRequestFromNodeRequest(request, response, undefined, contextValuesOf(requestId));
    const given = await handler(asked);
    // Later failures are failures of the connection: no caller is left to answer.
    await universalResponseToNodeResponse(given, response).catch(() => response.destroy());
  };
}

/** Refuses requests that connect-node would answer without a message. */
function refuseUnspoken(handler: UniversalHandler, { method = "", headers }: Exchange["request"]): void {
  const type = headers["content-type"] ?? "none";
  if (!handler.allowedMethods.includes(method)) {
    const allowed = handler.allowedMethods.join(", ");
    throw new Refusal("method_not_allowed", `methods are not called by ${method}`, {
      expected: allowed,
      headers: { Allow: allowed },
    });
  }
  if (handler.supportedContentType(type)) return;
  throw new Refusal("unsupported_media_type", "the coordinator does not speak this protocol", {
    got: `Content-Type: ${type.slice(0, 60)}`,
    expected:
      handler.method.methodKind === "unary"
        ? "application/json, application/proto, or one of gRPC or gRPC-Web"
        : "application/connect+json, application/connect+proto, or one of gRPC or gRPC-Web",
  });
}

function addMethod(router: ConnectRouter, desc: DescMethod, { calls, limits, onError }: RpcOptions): void {
  /** The error in Connect's form. */
  const asConnectError = (thrown: unknown, context: HandlerContext): Error => {
    const error = toHoldfastError(thrown);
    onError(error, requestIdOf(context));
    return toConnectError(error, requestIdOf(context));
  };
  const unary = async (request: Message, context: HandlerContext): Promise<Message> => {
    try {
      return await calls.unary(desc, request, context);
    } catch (thrown) {
      throw asConnectError(thrown, context);
    }
  };
  const stream = async function* (request: Message, context: HandlerContext): AsyncGenerator<Message> {
    try {
      yield* calls.stream(desc, request, context);
    } catch (thrown) {
      throw asConnectError(thrown, context);
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
        throw asConnectError(thrown, context);
      }
    },
  });
}

/** The size of gRPC's envelope. */
const ENVELOPE_BYTES = 5;

function maxBytesOf(desc: DescMethod, limits: ApiLimits): number {
  return (methodOf(desc).isBatch ? limits.batchBytes : limits.bodyBytes) + ENVELOPE_BYTES;
}
