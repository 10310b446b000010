// Connect's unary calls in binary, which our own processes make of each other: the same answers as connect-node's, for a third of the
// time. It makes no streams, no copies of headers and no signal of a signal; what is anything else goes to connect-node (rpc.ts).
//
//   B1. Whatever is thrown is told as Connect's errors are, with the details of ours.
//   B2. A call ends when its caller goes, when its time is up, or when the API closes: then its signal is aborted.

import { fromBinary, toBinary, type DescMethodUnary, type Message } from "@bufbuild/protobuf";
import { createContextValues, type HandlerContext } from "@connectrpc/connect";
import { codeToHttpStatus, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { toHoldfastError, type HoldfastError } from "@holdfast/core";
import { identify } from "./caller.ts";
import type { Calls } from "./calls.ts";
import { answer, readAll, type Exchange } from "./exchange.ts";
import { headersOf, Refusal, toConnectError } from "./refusal.ts";

const BINARY = "application/proto";
/** Connect's own limit of what can be said: ten digits. */
const TIMEOUT = /^\d{1,10}$/;
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export interface UnaryOptions {
  readonly calls: Calls;
  readonly closing: AbortSignal;
  readonly onError: (error: HoldfastError, requestId: string) => void;
}

/** Made once: a reason of their own costs more than the rest of the signal. */
const OVER = new Refusal("unavailable", "the call is over");

export function isUnaryInBinary({ request }: Exchange): boolean {
  return request.method === "POST" && request.headers["content-type"] === BINARY;
}

/** Answers whatever becomes of it. */
export async function serveUnary(
  exchange: Exchange,
  desc: DescMethodUnary,
  maxBytes: number,
  { calls, closing, onError }: UnaryOptions,
): Promise<void> {
  const { request, response, requestId } = exchange;
  const call = new AbortController();
  const onClose = (): void => call.abort(OVER);
  closing.addEventListener("abort", onClose);
  response.once("close", onClose);
  let cancel = (): void => {};
  try {
    cancel = abortAfter(request.headers["connect-timeout-ms"], call);
    const caller = await calls.enter(desc, request.headers.authorization);
    const message = readMessage(desc, await readAll(exchange, maxBytes));
    const context = { values: createContextValues(), signal: call.signal } as HandlerContext;
    identify(context, caller, requestId);
    answer(exchange, 200, BINARY, toBinary(desc.output, await calls.unary(desc, message, context)));
  } catch (thrown) {
    const error = toHoldfastError(thrown);
    onError(error, requestId);
    const told = toConnectError(error, requestId);
    const body = errorToJsonBytes(told, undefined);
    answer(exchange, codeToHttpStatus(told.code), "application/json", body, headersOf(error));
  } finally {
    cancel();
    closing.removeEventListener("abort", onClose);
    response.off("close", onClose);
  }
}

function readMessage({ input }: DescMethodUnary, bytes: Uint8Array): Message {
  try {
    return fromBinary(input, bytes);
  } catch (cause) {
    throw new Refusal("bad_request", `the body is no ${input.typeName} in protobuf's binary`, { cause });
  }
}

/** B2. */
function abortAfter(told: string | string[] | undefined, call: AbortController): () => void {
  if (told === undefined) return () => {};
  if (typeof told !== "string" || !TIMEOUT.test(told))
    throw new Refusal("bad_request", "the header Connect-Timeout-Ms is no number of milliseconds");
  const timer = setTimeout(() => call.abort(OVER), Math.min(Number(told), LONGEST_TIMER_MS));
  return () => clearTimeout(timer);
}
