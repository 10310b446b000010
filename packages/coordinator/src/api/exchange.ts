// A request and its answer, and the ways we answer that are the same for all protocols.
//
// Those of HTTP/2 come in the clothes of HTTP/1.1, which Node has made for this; here they have its types as well.

import type { IncomingMessage, ServerResponse } from "node:http";
import { codeToHttpStatus, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import type { HoldfastError } from "@holdfast/core";
import { tooLarge } from "./gates.ts";
import { plainMessage } from "./grpc-message.ts";
import { headersOf, Refusal, toConnectError, toProblem } from "../call/refusal.ts";

export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId: string;
  /** Of the request's target. */
  readonly path: string;
  readonly query: string;
}

/** On every answer, whatever it says: nothing is ever a page, and nothing is kept. */
const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Content-Security-Policy": "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Cache-Control": "no-store",
};

export function setCommonHeaders({ response, requestId }: Exchange): void {
  for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value);
  response.setHeader("X-Request-Id", requestId);
}

/** One whole answer. */
export function answer(
  exchange: Exchange,
  status: number,
  type: string,
  content: string | Uint8Array,
  headers: Readonly<Record<string, string>> = {},
): void {
  const { request, response } = exchange;
  const body = typeof content === "string" ? Buffer.from(content) : content;
  // A body that was not read to its end would be taken for the next request.
  const isCutOff = !request.complete && request.httpVersionMajor === 1;
  response.writeHead(status, {
    ...headers,
    "Content-Type": type,
    "Content-Length": String(body.length),
    ...(isCutOff ? { Connection: "close" } : {}),
  });
  response.end(body);
}

/** Whether it was made by a client of gRPC or Connect; by its looks, as it may be refused before it is read. */
function speaksRpc({ method, headers }: IncomingMessage): boolean {
  return method === "POST" && /^application\/(json|proto|connect\+|grpc)/.test(headers["content-type"] ?? "");
}

/** The answer of an error, in the words of the protocol that asked. */
export function refuse(exchange: Exchange, error: HoldfastError): void {
  const { request, response, requestId } = exchange;
  if (response.headersSent) {
    response.destroy();
  } else if (!exchange.path.startsWith("/holdfast.") || !speaksRpc(request)) {
    const problem = toProblem(error, requestId);
    answer(exchange, problem.status, "application/problem+json", JSON.stringify(problem), headersOf(error));
  } else if (request.headers["content-type"]?.startsWith("application/grpc") === true) {
    // A head that is the end as well, or clients look for a status behind it: it must not be written before the end is known.
    response.setHeader("Content-Type", "application/grpc");
    setTrailerStatus(new Headers(), toConnectError(error, requestId)).forEach((value, name) =>
      response.setHeader(name, name === "grpc-message" ? plainMessage(value) : value),
    );
    response.end();
  } else {
    const told = toConnectError(error, requestId);
    const body = errorToJsonBytes(told, undefined);
    answer(exchange, codeToHttpStatus(told.code), "application/json", body, headersOf(error));
  }
}

const EMPTY = new Uint8Array();

/** HTTP/1.1 says so beforehand, and reading nothing costs a stream as much as all else it keeps. */
function hasNoBody({ httpVersionMajor, headers }: IncomingMessage): boolean {
  return (
    httpVersionMajor === 1 &&
    headers["content-length"] === undefined &&
    headers["transfer-encoding"] === undefined
  );
}

/**
 * The body. By events, as an iterator over it costs more than most calls.
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
    // Its errors come with its close; whoever listens no longer must not end the process by them.
    request.on("error", () => {});
    request.on("data", onData).once("end", onEnd).once("close", onCut).once("aborted", onCut);
  });
}
