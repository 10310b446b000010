// Faults a scripted model server can be told to have, and what each does to a delivery.
//
// A chunk is one server-sent event of a stream, or one half of an unstreamed body.

import { refuse, RequestRefused, type RecordedRequest, type Refusal, type Wire } from "./wire.ts";

/**
 * The fault of one request. The request is recorded in any case.
 *
 *   unauthorized   401, as for a wrong key.
 *   rate_limited   429 with `retry-after`, which defaults to 1 second and may be 0.
 *   server_error   500, or another status from 500 up: 529 is Anthropic's "overloaded".
 *   slow           The right answer, its first byte late.
 *   hang           Silence: from the start, or after some chunks, until the client or `close()` ends it.
 *   cut            The socket is destroyed: before any byte, or after some chunks.
 *   garbage        200 with a page of HTML, as a proxy in between would send.
 *   malformed      After some chunks one whose JSON breaks off in its middle. The rest follows.
 *   stream_error   After some chunks the server reports an error in the stream and ends it. Unstreamed it
 *                  is a `server_error`.
 *
 * `afterChunks` defaults to 0, except that `malformed` and `stream_error` default to 1.
 */
export type ModelFault =
  | { readonly type: "unauthorized" }
  | { readonly type: "rate_limited"; readonly retryAfterSeconds?: number }
  | { readonly type: "server_error"; readonly status?: number }
  | { readonly type: "slow"; readonly delayMs: number }
  | { readonly type: "hang"; readonly afterChunks?: number }
  | { readonly type: "cut"; readonly afterChunks?: number }
  | { readonly type: "garbage" }
  | { readonly type: "malformed"; readonly afterChunks?: number }
  | { readonly type: "stream_error"; readonly afterChunks?: number; readonly status?: number };

/**
 * Which requests go wrong: by number, or by looking at them.
 *
 * Numbers count from 1, over all requests since the plan was set. The function is called once for each
 * request, in the order of arrival; what it throws is the request's error (400).
 */
export type ModelFaultPlan =
  | Readonly<Record<number, ModelFault>>
  | ((request: RecordedRequest, number: number) => ModelFault | undefined);

/** The bytes for the socket, and the place where they stop early. */
export interface Delivery {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly chunks: readonly string[];
  readonly delayMs: number;
  /** After this many chunks the answer ends wrongly. With 0 not even the head is sent. */
  readonly breaksAt?: { readonly chunk: number; readonly by: "cut" | "hang" };
}

export function pickFault(
  plan: ModelFaultPlan,
  request: RecordedRequest,
  number: number,
): ModelFault | undefined {
  return typeof plan === "function" ? plan(request, number) : plan[number];
}

/** The faults that hit before the request is even looked at. */
export function refuseByFault(fault: ModelFault | undefined): void {
  switch (fault?.type) {
    case "unauthorized":
      return refuse("invalid x-api-key or authorization header", { status: 401 });
    case "rate_limited":
      return refuse("This request would exceed the rate limit.", {
        status: 429,
        headers: { "retry-after": String(fault.retryAfterSeconds ?? 1) },
      });
    case "server_error":
      throw new RequestRefused(serverErrorOf(fault.status));
    case undefined:
    case "slow":
    case "hang":
    case "cut":
    case "garbage":
    case "malformed":
    case "stream_error":
      return;
  }
}

/** A right answer, spoiled. */
export function spoilDelivery(delivery: Delivery, fault: ModelFault | undefined, wire: Wire): Delivery {
  const isStream = delivery.headers["content-type"]?.startsWith("text/event-stream") === true;
  // Before the last chunk at the latest, so that the fault always happens, however short the reply is.
  const clamp = (afterChunks: number) => Math.min(afterChunks, delivery.chunks.length - 1);
  switch (fault?.type) {
    case "slow":
      return { ...delivery, delayMs: fault.delayMs };
    case "hang":
    case "cut":
      return { ...delivery, breaksAt: { chunk: clamp(fault.afterChunks ?? 0), by: fault.type } };
    case "garbage":
      return { ...delivery, chunks: ["<html><body><h1>It works!</h1></body></html>\n"] };
    case "malformed": {
      const at = clamp(fault.afterChunks ?? 1);
      return {
        ...delivery,
        chunks: delivery.chunks.with(at, spoilChunk(delivery.chunks[at] ?? "", isStream)),
      };
    }
    case "stream_error": {
      const error = serverErrorOf(fault.status);
      if (!isStream) throw new RequestRefused(error);
      const kept = delivery.chunks.slice(0, clamp(fault.afterChunks ?? 1));
      return { ...delivery, chunks: [...kept, wire.encodeStreamError(error)] };
    }
    case undefined:
    case "unauthorized":
    case "rate_limited":
    case "server_error":
      return delivery;
  }
}

/** Cut the JSON in its middle and keep the frame around it. */
function spoilChunk(chunk: string, isStream: boolean): string {
  const start = Math.max(chunk.indexOf("{"), 0);
  const half = chunk.slice(0, start + Math.ceil((chunk.trimEnd().length - start) / 2));
  return isStream ? `${half}\n\n` : half;
}

function serverErrorOf(status = 500): Refusal {
  return { status, message: status === 529 ? "Overloaded" : "Internal server error" };
}
