// One request in, one delivery out: routing, keys, validation, the script, faults. Sockets and time are the
// server's.
//
// Order: record → faults that refuse → size → path and method → key → JSON → the wire's rules → model →
// script → faults that spoil. A refused request therefore does not hang or break in addition.

import { toError } from "@holdfast/core";
import { anthropicWire } from "./anthropic-wire.ts";
import { refuseByFault, spoilDelivery, type Delivery, type ModelFault } from "./faults.ts";
import { googleWire } from "./google-wire.ts";
import { openaiChatWire } from "./openai-chat-wire.ts";
import { openaiResponsesWire } from "./openai-responses-wire.ts";
import { answerConversation, cutText, type Answer, type ModelScript } from "./script.ts";
import {
  isObject,
  refuse,
  RequestRefused,
  type JsonObject,
  type ModelRequest,
  type RecordedRequest,
  type Refusal,
  type RequestHeaders,
  type Wire,
} from "./wire.ts";

export interface RawRequest {
  readonly method: string;
  /** With the query, if there was one. */
  readonly path: string;
  readonly headers: RequestHeaders;
  /** Undefined when the body was over the limit. */
  readonly bodyText: string | undefined;
}

export interface ExchangeRules {
  readonly script: ModelScript;
  readonly apiKeys: readonly string[] | undefined;
  readonly models: readonly string[] | undefined;
  /** Records the request and tells what is to go wrong with it. Called once for each request; may throw. */
  takeFault(request: RecordedRequest): ModelFault | undefined;
}

const WIRES: readonly Wire[] = [anthropicWire, openaiChatWire, openaiResponsesWire, googleWire];
const MODELS_PATH = "/v1/models";

export function answerRequest(raw: RawRequest, rules: ExchangeRules): Delivery {
  const pathname = raw.path.split("?")[0] ?? "";
  const wire = WIRES.find((candidate) => serves(candidate, pathname)) ?? guessWire(raw.headers);
  const body = parseBody(raw.bodyText);
  const reading = attempt(() => readModelRequest(raw, pathname, wire, body));
  const conversation = reading.status === "done" ? reading.value?.conversation : undefined;
  const { method, path, headers } = raw;

  const answering = attempt(() => {
    const fault = explainFailure("fault plan", () =>
      rules.takeFault({ method, path, headers, body, conversation }),
    );
    refuseByFault(fault);
    if (raw.bodyText === undefined) refuse("Request exceeds the maximum size", { status: 413 });
    checkKey(raw.headers, rules.apiKeys, wire);
    if (reading.status === "refused") throw new RequestRefused(reading.refusal);
    return spoilDelivery(respond(wire, reading.value, rules), fault, wire);
  });
  return answering.status === "done" ? answering.value : deliverRefusal(wire, answering.refusal);
}

function serves({ path, readPath }: Wire, pathname: string): boolean {
  return readPath === undefined ? path === pathname : readPath(pathname) !== undefined;
}

/** Errors have to be in the format of the client that made the mistake, also where the path does not tell. */
function guessWire(headers: RequestHeaders): Wire {
  if (headers["x-goog-api-key"] !== undefined) return googleWire;
  const isAnthropic = headers["anthropic-version"] !== undefined || headers["x-api-key"] !== undefined;
  return isAnthropic ? anthropicWire : openaiChatWire;
}

function parseBody(text: string | undefined): unknown {
  if (text === undefined || text === "") return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** `undefined` stands for the list of models. */
function readModelRequest(
  raw: RawRequest,
  pathname: string,
  wire: Wire,
  body: unknown,
): ModelRequest | undefined {
  const method = pathname === MODELS_PATH ? "GET" : "POST";
  const isKnown = pathname === MODELS_PATH || serves(wire, pathname);
  if (!isKnown) refuse(`Invalid URL (${raw.method} ${pathname})`, { status: 404 });
  if (raw.method !== method) refuse(`Not allowed to ${raw.method} on ${pathname}`, { status: 405 });
  if (pathname === MODELS_PATH) return undefined;
  if (!isObject(body)) return refuse("The request body is not a JSON object");
  return wire.readRequest({ ...body, ...wire.readPath?.(pathname) }, raw.headers);
}

function checkKey(headers: RequestHeaders, apiKeys: readonly string[] | undefined, wire: Wire): void {
  if (apiKeys === undefined) return;
  const key = wire.readKey(headers);
  if (key === undefined) refuse("No API key was provided", { status: 401 });
  if (!apiKeys.includes(key)) refuse("Incorrect API key provided", { status: 401 });
}

function respond(wire: Wire, request: ModelRequest | undefined, rules: ExchangeRules): Delivery {
  if (request === undefined) return deliverJson(200, wire.encodeModels(rules.models ?? ["scripted-model"]));

  const { model } = request.conversation;
  if (rules.models !== undefined && !rules.models.includes(model)) {
    refuse(`The model '${model}' does not exist`, { status: 404, param: "model", code: "model_not_found" });
  }
  const answer: Answer = explainFailure("script", () =>
    answerConversation(rules.script, request.conversation, request.tokensMax),
  );
  if (!request.isStreaming) return deliverJson(200, wire.encodeWhole(request, answer));
  return {
    status: 200,
    headers: { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" },
    chunks: wire.encodeStream(request, answer),
    delayMs: 0,
  };
}

/**
 * A mistake in the test's own code is refused with 400 and its message. Clients report a 400 at once, but
 * would retry after a 500 and keep the author waiting.
 */
function explainFailure<T>(what: string, run: () => T): T {
  try {
    return run();
  } catch (error) {
    return refuse(`The ${what} failed: ${toError(error).message}`);
  }
}

function deliverRefusal(wire: Wire, refusal: Refusal): Delivery {
  const delivery = deliverJson(refusal.status, wire.encodeError(refusal));
  return { ...delivery, headers: { ...delivery.headers, ...refusal.headers } };
}

function deliverJson(status: number, body: JsonObject): Delivery {
  const text = JSON.stringify(body);
  const half = cutText(text, Math.ceil(text.length / 2));
  const headers = { "content-type": "application/json" };
  return { status, headers, chunks: [half, text.slice(half.length)], delayMs: 0 };
}

type Attempt<T> =
  | { readonly status: "done"; readonly value: T }
  | { readonly status: "refused"; readonly refusal: Refusal };

function attempt<T>(run: () => T): Attempt<T> {
  try {
    return { status: "done", value: run() };
  } catch (error) {
    if (error instanceof RequestRefused) return { status: "refused", refusal: error.refusal };
    throw error;
  }
}
