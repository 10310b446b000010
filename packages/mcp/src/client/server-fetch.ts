// `serverFetch`: the HTTP requests to one MCP server, over the network module of Node.
//
// The `fetch` of Node is not used: it has time-outs of its own, follows redirects, and cannot check the
// address that it dials.
//
//   - Only an address that the rules allow is dialled, whatever its name resolves to.
//   server-fetch-2. No redirect is followed here. The SDK follows one within the origin alone, so no other
//       origin gets a header of ours.
//   - A message and a response have limits of size. A larger one is cut off, and `refused` says why.
//   - Each request has a connection of its own. A kept connection may be closed by the server at the same
//     moment, and nobody would know whether the call has begun.

import { lookup as resolveName } from "node:dns";
import { request as plainRequest, type IncomingMessage } from "node:http";
import { request as tlsRequest } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { Readable, Transform } from "node:stream";
import { clearTimeout, setTimeout } from "node:timers";
import { addressKind } from "@holdfast/system/address-kind";
import type { FetchLike } from "@modelcontextprotocol/client";

import { NotConnectedError } from "../protocol/call-errors.ts";
import { MCP_LIMITS } from "../protocol/limits.ts";

export interface FetchRules {
  /** The user's own settings name the server: its address may be a private one. */
  readonly allowsPrivate: boolean;
  /** A limit was exceeded. Must not throw. */
  readonly refused: (offence: string) => void;
}

export function serverFetch(rules: FetchRules): FetchLike {
  return async (given, init = {}) => {
    const url = new URL(given);
    const { signal } = init;
    signal?.throwIfAborted();
    const body = await bytesOf(init.body);
    const headers = new Headers(init.headers);
    headers.set("content-length", String(body.length));
    headers.set("accept-encoding", "identity");
    const isTls = url.protocol === "https:";
    if (!isTls && url.protocol !== "http:")
      throw new NotConnectedError(`${url.protocol} is no address of HTTP`);
    const host = url.hostname.replace(/^\[|\]$/g, "");
    if (isIP(host) !== 0) check(host, host, isTls, rules);
    const { promise, resolve, reject } = Promise.withResolvers<Response>();
    let isConnected = false;
    const sent = (isTls ? tlsRequest : plainRequest)(url, {
      method: init.method ?? "GET",
      headers: Object.fromEntries(headers),
      agent: false, // A kept connection may be closed at the same moment, and the call would be lost or not.
      lookup: checkedLookup(isTls, rules),
      maxHeaderSize: MCP_LIMITS.headerBytes,
    });
    const onAbort = (): void => void sent.destroy(signal?.reason as Error);
    signal?.addEventListener("abort", onAbort, { once: true });
    const connecting = setTimeout(
      () => sent.destroy(new Error(`no connection within ${MCP_LIMITS.connectMs / 1_000} s`)),
      MCP_LIMITS.connectMs,
    );
    sent.once("socket", (socket) =>
      socket.once(isTls ? "secureConnect" : "connect", () => {
        isConnected = true;
        clearTimeout(connecting);
      }),
    );
    sent.once("response", (incoming) => resolve(responseOf(incoming, rules)));
    sent.on("error", (error) => {
      clearTimeout(connecting);
      const isUnsent = !isConnected && signal?.aborted !== true;
      reject(isUnsent ? new NotConnectedError(reasonOf(error), { cause: error }) : error);
    });
    sent.once("close", () => signal?.removeEventListener("abort", onAbort));
    sent.end(body);
    return promise;
  };
}

async function bytesOf(body: RequestInit["body"]): Promise<Buffer> {
  if (body === undefined || body === null) return Buffer.alloc(0);
  return Buffer.from(await new Response(body).arrayBuffer());
}

/** Happy eyeballs of Node put several errors into one, which has no message. */
function reasonOf(error: Error): string {
  const first = error instanceof AggregateError ? (error.errors[0] as Error) : error;
  return first.message;
}

function checkedLookup(isTls: boolean, rules: FetchRules): LookupFunction {
  return (host, options, done) => {
    resolveName(host, { ...options, all: true }, (error, found) => {
      if (error !== null) return done(error, [], 0);
      try {
        for (const { address } of found) check(address, host, isTls, rules);
      } catch (refusal) {
        return done(refusal as Error, [], 0);
      }
      const [first] = found;
      if (options.all === true) return done(null, found);
      return done(null, first?.address ?? "", first?.family ?? 0);
    });
  };
}

/** @throws NotConnectedError */
function check(address: string, host: string, isTls: boolean, { allowsPrivate }: FetchRules): void {
  const kind = addressKind(address);
  const refuse = (why: string): NotConnectedError =>
    new NotConnectedError(`${host} has the address ${address}, ${why}`);
  if (kind === undefined || kind === "metadata") throw refuse("which no server of MCP may have");
  if (kind === "public") {
    if (isTls) return;
    throw new NotConnectedError(`${host} is reached over the network without TLS; use https`);
  }
  const isNamed = kind === "loopback" && (isIP(host) !== 0 || host === "localhost");
  if (!allowsPrivate && !isNamed)
    throw refuse(
      "which is private: name the server in your own settings (`holdfast mcp add NAME --url URL --user`)",
    );
}

function responseOf(incoming: IncomingMessage, { refused }: FetchRules): Response {
  const { statusCode = 500, statusMessage = "", headers } = incoming;
  const isEmpty = [101, 204, 205, 304].includes(statusCode);
  if (isEmpty) incoming.resume();
  const limited = isEmpty ? null : incoming.pipe(limitedBody(incoming, refused));
  incoming.once("close", () => {
    if (!incoming.complete) limited?.destroy(new Error("the server cut the response off"));
  });
  incoming.once("error", (error) => limited?.destroy(error));
  const pairs = Object.entries(headers).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value ?? ""]).map((one): [string, string] => [name, one]),
  );
  return new Response(limited === null ? null : (Readable.toWeb(limited) as ReadableStream<Uint8Array>), {
    status: statusCode,
    statusText: statusMessage,
    headers: pairs,
  });
}

/** Events end with an empty line; JSON has one message. */
function limitedBody(incoming: IncomingMessage, refused: (offence: string) => void): Transform {
  const isEvents = /^text\/event-stream\b/i.test(incoming.headers["content-type"] ?? "");
  let total = 0;
  let message = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      total += chunk.length;
      const end = isEvents ? Math.max(chunk.lastIndexOf("\n\n"), chunk.lastIndexOf("\n\r\n")) : -1;
      message = end < 0 ? message + chunk.length : chunk.length - end;
      const offence =
        message > MCP_LIMITS.messageChars
          ? `it sent a message of more than ${MCP_LIMITS.messageChars} bytes`
          : total > MCP_LIMITS.burstChars
            ? `it sent more than ${MCP_LIMITS.burstChars} bytes in one response`
            : undefined;
      if (offence === undefined) return done(null, chunk);
      refused(offence);
      incoming.destroy();
      return done(new Error(offence));
    },
  });
}
