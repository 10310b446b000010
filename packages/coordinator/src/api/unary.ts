// `serveUnary` answers Connect's unary calls like connect-node, in a third of the time for binary ones, which
// our own processes send. It makes no streams and copies no headers or signals. Other requests go to
// connect-node (rpc.ts).
//
//   unary-1. Every error is answered in Connect's form, with our details.
//   unary-2. A call ends when its caller goes, when its time is over, or when the API closes. Its signal is
//       aborted then.
//   - An unreadable value is reported by its place and not quoted, because it may be a secret in the wrong
//     field.

import { clearTimeout, setTimeout } from "node:timers";
import {
  fromBinary,
  fromJsonString,
  toBinary,
  toJsonString,
  type DescMessage,
  type DescMethodUnary,
  type Message,
} from "@bufbuild/protobuf";
import { isFieldError } from "@bufbuild/protobuf/reflect";
import { createContextValues, type HandlerContext } from "@connectrpc/connect";
import { defined, toHoldfastError, type HoldfastError } from "@holdfast/core";
import { identify } from "../call/caller.ts";
import type { Calls } from "./calls.ts";
import { answer, readAll, refuse, type Exchange } from "./exchange.ts";
import { isJsonType } from "./request-guards.ts";
import { parseBody } from "./json-read.ts";
import { Refusal } from "../call/refusal.ts";

/** The form of messages in a body. */
interface Codec {
  readonly type: string;
  readonly read: (desc: DescMessage, bytes: Uint8Array) => Message;
  readonly write: (desc: DescMessage, message: Message) => string | Uint8Array;
}

export const BINARY: Codec = {
  type: "application/proto",
  read(desc, bytes) {
    try {
      return fromBinary(desc, bytes);
    } catch (cause) {
      throw new Refusal("bad_request", `the body is no ${desc.typeName} in protobuf's binary format`, {
        expected: `${desc.typeName}, as the contract defines it`,
        fix: "use the same version on both sides",
        cause,
      });
    }
  },
  write: toBinary,
};

const JSON_CODEC: Codec = {
  type: "application/json",
  read(desc, bytes) {
    const { text } = parseBody(bytes, new TextDecoder("utf-8", { fatal: true }));
    try {
      return fromJsonString(desc, text);
    } catch (cause) {
      throw unreadable(desc, cause as Error);
    }
  },
  write: (desc, message) => toJsonString(desc, message),
};

/** Names of keys are shown, because they are no secrets. */
function unreadable({ typeName }: DescMessage, { message, cause }: Error): Refusal {
  const field = isFieldError(cause) ? cause.field().name : undefined;
  const key = field ?? /(?:key|object key) "([^"]{1,200})"/.exec(message)?.[1];
  return new Refusal("bad_request", `the body is no ${typeName} in protobuf's JSON format`, {
    ...defined({ at: key }),
    expected: `${typeName}, as the contract defines it, each field once; bytes are base64`,
    fix: key === undefined ? "send an object with its fields" : `correct "${key}", or leave it out`,
  });
}
/** Connect's own limit of a timeout: ten digits. */
const TIMEOUT = /^\d{1,10}$/;
/** The longest time-out of Node, which treats longer ones as none. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

export interface UnaryOptions {
  readonly calls: Calls;
  readonly closing: AbortSignal;
  readonly onError: (error: HoldfastError, requestId: string) => void;
}

/** Made once: a new reason for each call costs more than the rest of the signal. */
export const OVER = new Refusal("unavailable", "the call is over");

/** The codec of a Connect unary call; `undefined` for other requests. */
export function codecOf({ request }: Exchange): Codec | undefined {
  const type = request.headers["content-type"] ?? "";
  if (request.method !== "POST") return undefined;
  if (type === BINARY.type) return BINARY;
  return isJsonType(type) ? JSON_CODEC : undefined;
}

/** Answers every request, also with an error. */
export async function serveUnary(
  exchange: Exchange,
  desc: DescMethodUnary,
  codec: Codec,
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
    const given = await answerOf(
      {
        desc,
        codec,
        authorization: request.headers.authorization,
        requestId,
        control: call,
        body: () => readAll(exchange, maxBytes),
      },
      calls,
    );
    answer(exchange, 200, codec.type, given);
  } catch (thrown) {
    const error = toHoldfastError(thrown);
    onError(error, requestId);
    refuse(exchange, error);
  } finally {
    cancel();
    closing.removeEventListener("abort", onClose);
    response.off("close", onClose);
  }
}

export interface UnaryCall {
  readonly desc: DescMethodUnary;
  readonly codec: Codec;
  readonly authorization: string | undefined;
  readonly requestId: string;
  /** Its signal is made when a service looks at it. */
  readonly control: AbortController;
  /** Called once the caller may make the call. */
  readonly body: () => Uint8Array | Promise<Uint8Array>;
}

/** The part of a context that services use. */
class UnaryContext implements Pick<HandlerContext, "values" | "signal"> {
  readonly values = createContextValues();
  readonly #control: AbortController;

  constructor(control: AbortController) {
    this.#control = control;
  }

  get signal(): AbortSignal {
    return this.#control.signal;
  }
}

/** The body of the answer. @throws HoldfastError for every mistake of the caller. */
export async function answerOf(
  { desc, codec, authorization, requestId, control, body }: UnaryCall,
  calls: Calls,
): Promise<string | Uint8Array> {
  const caller = await calls.enter(desc, authorization);
  const message = codec.read(desc.input, await body());
  const context = new UnaryContext(control) as unknown as HandlerContext;
  identify(context, caller, requestId);
  return codec.write(desc.output, await calls.unary(desc, message, context));
}

/** unary-2. */
function abortAfter(timeoutHeader: string | string[] | undefined, call: AbortController): () => void {
  if (timeoutHeader === undefined) return () => {};
  if (typeof timeoutHeader !== "string" || !TIMEOUT.test(timeoutHeader))
    throw new Refusal("bad_request", "the header Connect-Timeout-Ms is not a number of milliseconds", {
      expected: "at most ten digits",
    });
  const timer = setTimeout(() => call.abort(OVER), Math.min(Number(timeoutHeader), LONGEST_TIMER_MS));
  return () => clearTimeout(timer);
}
