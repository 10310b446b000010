// `Exchange` is a request and its answer, with what every protocol needs: headers, reading a body, answering,
// and refusing in its own form.
//
// Exchanges of HTTP/2 use Node's compatibility API, and have the types of HTTP/1.1 here.

import type { IncomingMessage, ServerResponse } from "node:http";
import { codeToHttpStatus, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import type { HoldfastError } from "@holdfast/core";
import { DEPLOYMENT_HEADER } from "@holdfast/proto";
import { tooLarge } from "./request-guards.ts";
import { plainMessage } from "./grpc-message.ts";
import { headersOf, Refusal, toConnectError, toProblem } from "../call/refusal.ts";

export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId: string;
  /** The path of the request's target. */
  readonly path: string;
  readonly query: string;
}

/** Headers of every answer: no answer is a page, and none may be cached. */
const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Content-Security-Policy": "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Cache-Control": "no-store",
};

export function setCommonHeaders({ response, requestId }: Exchange, deployment: string | undefined): void {
  for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value);
  response.setHeader("X-Request-Id", requestId);
  if (deployment !== undefined) response.setHeader(DEPLOYMENT_HEADER, deployment);
}

/** Sends a whole answer. */
export function answer(
  exchange: Exchange,
  status: number,
  type: string,
  content: string | Uint8Array,
  headers: Readonly<Record<string, string>> = {},
): void {
  const { request, response } = exchange;
  const body = typeof content === "string" ? Buffer.from(content) : content;
  // The rest of an unread body would be taken for the next request.
  const isCutOff = !request.complete && request.httpVersionMajor === 1;
  response.writeHead(status, {
    ...headers,
    "Content-Type": type,
    "Content-Length": String(body.length),
    ...(isCutOff ? { Connection: "close" } : {}),
  });
  response.end(body);
}

/**
 * Whether a client of gRPC or Connect sent the request. Only its headers say so, because it may be refused
 * before it is read.
 */
function speaksRpc({ method, headers }: IncomingMessage): boolean {
  return method === "POST" && /^application\/(json|proto|connect\+|grpc)/.test(headers["content-type"] ?? "");
}

/** Answers with an error, in the form of the caller's protocol. */
export function refuse(exchange: Exchange, error: HoldfastError): void {
  const { request, response, requestId } = exchange;
  if (response.headersSent) {
    response.destroy();
  } else if (!exchange.path.startsWith("/holdfast.") || !speaksRpc(request)) {
    const problem = toProblem(error, requestId);
    answer(exchange, problem.status, "application/problem+json", JSON.stringify(problem), headersOf(error));
  } else if (request.headers["content-type"]?.startsWith("application/grpc") === true) {
    // A gRPC error without messages puts its status into the head. The head must therefore not be written
    // before the status is known.
    response.setHeader("Content-Type", "application/grpc");
    setTrailerStatus(new Headers(), toConnectError(error, requestId)).forEach((value, name) =>
      response.setHeader(name, name === "grpc-message" ? plainMessage(value) : value),
    );
    response.end();
  } else {
    const sent = toConnectError(error, requestId);
    const body = errorToJsonBytes(sent, undefined);
    answer(exchange, codeToHttpStatus(sent.code), "application/json", body, headersOf(error));
  }
}

const EMPTY = new Uint8Array();

/**
 * HTTP/1.1 announces a body in its headers. Reading an empty one would cost a stream as much memory as all
 * else it keeps.
 */
function hasNoBody({ httpVersionMajor, headers }: IncomingMessage): boolean {
  return (
    httpVersionMajor === 1 &&
    headers["content-length"] === undefined &&
    headers["transfer-encoding"] === undefined
  );
}

/**
 * Reads the body. It uses events, because an iterator over the body costs more than most calls.
 *
 * @throws Refusal `too_large` or `request_timeout`.
 */
export async function readAll({ request }: Exchange, maxBytes: number): Promise<Uint8Array> {
  if (hasNoBody(request)) return EMPTY;
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const onData = (chunk: Buffer): void => {
      bytes += chunk.length;
      if (bytes <= maxBytes) chunks.push(chunk);
      else end(() => reject(tooLarge(bytes, maxBytes)));
    };
    const onEnd = (): void => end(() => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)));
    const onCut = (): void =>
      end(() => reject(new Refusal("request_timeout", "the request did not arrive whole")));
    const end = (settle: () => void): void => {
      request.off("data", onData).off("end", onEnd).off("close", onCut).off("aborted", onCut);
      settle();
    };
    // The request's errors come with its close. Without a listener, they would end the process.
    request.on("error", () => {});
    request.on("data", onData).once("end", onEnd).once("close", onCut).once("aborted", onCut);
  });
}
