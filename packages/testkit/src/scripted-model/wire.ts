// `Wire` is the interface between the server and a wire format, with the checked reading of request bodies
// that all wires share.

import type { Conversation } from "./conversation.ts";
import type { Answer } from "./script.ts";

/** One vendor's format. Pure: bodies in, bodies out. */
export interface Wire {
  /** The path of a POST, for example `/v1/messages`. */
  readonly path: string;
  /** For a format whose paths name the model: the fields that such a path stands for, `undefined` for another path. */
  readonly readPath?: (pathname: string) => JsonObject | undefined;
  /** The API key of a request, or undefined when there is none. */
  readKey(headers: RequestHeaders): string | undefined;
  /** @throws RequestRefused for what the real server refuses. */
  readRequest(body: JsonObject, headers: RequestHeaders): ModelRequest;
  /** The answer as one JSON body. */
  encodeWhole(request: ModelRequest, answer: Answer): JsonObject;
  /** The answer as server-sent events, each a whole one with its blank line. */
  encodeStream(request: ModelRequest, answer: Answer): readonly string[];
  encodeError(refusal: Refusal): JsonObject;
  /** An error after the stream has begun, as one server-sent event. */
  encodeStreamError(refusal: Refusal): string;
  /** The body of `GET /v1/models`. */
  encodeModels(models: readonly string[]): JsonObject;
}

export interface ModelRequest {
  readonly conversation: Conversation;
  readonly isStreaming: boolean;
  /** Most output tokens the caller wants. */
  readonly tokensMax: number | undefined;
  /** Whether the stream ends with token counts (OpenAI's chat only; the others always send them). */
  readonly wantsStreamUsage: boolean;
}

/** A request as the server received it, keys included. */
export interface RecordedRequest {
  readonly method: string;
  /** With the query, if there was one. */
  readonly path: string;
  readonly headers: RequestHeaders;
  /** Parsed JSON, or the text when it is not JSON. Undefined without a body or with a body over the limit. */
  readonly body: unknown;
  /** Undefined when this is no request for a reply, or a malformed one. */
  readonly conversation: Conversation | undefined;
}

/** Why a request is not answered, in no vendor's format. */
export interface Refusal {
  readonly status: number;
  readonly message: string;
  /** OpenAI's `param` and `code`; Anthropic has neither. */
  readonly param?: string;
  readonly code?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Never leaves the server: it becomes an error body in the wire's format. */
export class RequestRefused extends Error {
  override name = "RequestRefused";
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(refusal.message);
    this.refusal = refusal;
  }
}

export type JsonObject = Readonly<Record<string, unknown>>;
/** The headers of a request, by their names. */
export type RequestHeaders = Readonly<Record<string, string>>;

/** A fixed moment for every `created` field (script-1). Not 0, which some clients take for "missing". */
export const CREATED_AT_SECONDS = 1_767_225_600;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function refuse(message: string, more: Omit<Partial<Refusal>, "message"> = {}): never {
  throw new RequestRefused({ status: 400, message, ...more });
}

export function requireObject(value: unknown, where: string): JsonObject {
  return isObject(value) ? value : refuse(`${where}: expected an object`, { param: where });
}

export function requireString(value: unknown, where: string): string {
  return typeof value === "string" ? value : refuse(`${where}: expected a string`, { param: where });
}

export function requireList(value: unknown, where: string): readonly unknown[] {
  return Array.isArray(value) ? value : refuse(`${where}: expected a list`, { param: where });
}

/** `undefined` when absent. Both vendors treat `null` as absent. */
export function readTokensMax(value: unknown, where: string): number | undefined {
  if (value === undefined || value === null) return undefined;
  const isCount = typeof value === "number" && Number.isInteger(value) && value > 0;
  return isCount ? value : refuse(`${where}: expected an integer greater than 0`, { param: where });
}

export function readFlag(value: unknown, where: string): boolean {
  if (value === undefined || value === null) return false;
  return typeof value === "boolean" ? value : refuse(`${where}: expected a boolean`, { param: where });
}

/** The arguments of a tool call that a client sends back as text. */
export function parseArguments(text: string, where: string): JsonObject {
  try {
    return requireObject(JSON.parse(text), where);
  } catch {
    return refuse(`${where}: expected the JSON text of an object`, { param: where });
  }
}

export function readBearer(headers: RequestHeaders): string | undefined {
  return /^Bearer (.+)$/i.exec(headers["authorization"] ?? "")?.[1];
}
