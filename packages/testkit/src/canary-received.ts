// `watchReceived`: lets every armed `CanaryScan` search the bytes that this process receives.
//
//   canary-received-1. Bytes that a socket or a pipe receives are searched, also across their borders. They
//       are the answers and event streams of HTTP/1.1, and the outputs of child processes.
//   canary-received-2. A request that an HTTP/1.1 server receives is searched: its address, its headers and
//       its body. Node gives the bytes of such a socket to its parser, so no stream has them.
//   canary-received-3. On a stream of HTTP/2, in either direction, the headers, the bytes and the trailers
//       are searched.
//
// Leaky: a message between processes of Node (`process.send`), and the trailers of a request of HTTP/1.1, are
// not seen.

import { subscribe } from "node:diagnostics_channel";
import { IncomingMessage } from "node:http";
import { Server, Socket } from "node:net";
import type { Readable } from "node:stream";
import type { CanaryScan } from "./canary-scan.ts";

/** More than an encoded secret has. */
const BORDER_BYTES = 512;
/** The border of two chunks of an HTTP/1.1 answer, as it is on the socket. */
const CHUNK_BORDER = /\r\n[\da-f]{1,8}\r\n/gi;
const RECEIVED = "what a socket or a pipe received";
const REQUEST = "a request that an HTTP server received";
const HTTP2 = "what a stream of HTTP/2 received";
/** Events of a stream of HTTP/2 that bring headers. The headers of a request are given with its stream. */
const HTTP2_HEADERS: ReadonlySet<unknown> = new Set(["response", "headers", "trailers"]);

type Armed = ReadonlySet<CanaryScan>;
type Push = Readable["push"];
type Emit = Readable["emit"];

/** Changes functions of Node: once per process. */
export function watchReceived(armed: Armed): void {
  const bytes = new BytesSearch(armed);
  watchPush(Socket.prototype, (socket, chunk) => bytes.search(RECEIVED, socket, chunk, CHUNK_BORDER));
  // The message of a client has no address. Its bytes were seen on their socket.
  watchPush(IncomingMessage.prototype, (message, chunk) => {
    if (message.url !== "") bytes.search(REQUEST, message, chunk);
  });
  watchEmit(Server.prototype, (_event, [message]) => {
    if (message instanceof IncomingMessage) searchTexts(armed, REQUEST, [message.url, message.rawHeaders]);
  });
  watchHttp2(armed, bytes);
}

/** The class of these streams is not exported, so the first stream shows it. */
function watchHttp2(armed: Armed, bytes: BytesSearch): void {
  let isWatched = false;
  const watch = (stream: Readable): void => {
    if (isWatched) return;
    isWatched = true;
    // The streams of clients and of servers have two classes, with one above them.
    const above = Object.getPrototypeOf(Object.getPrototypeOf(stream)) as Readable;
    watchPush(above, (from, chunk) => bytes.search(HTTP2, from, chunk));
    watchEmit(above, (event, [headers]) => {
      if (HTTP2_HEADERS.has(event)) searchTexts(armed, HTTP2, headers);
    });
  };
  subscribe("http2.client.stream.created", (message) => watch((message as { stream: Readable }).stream));
  subscribe("http2.server.stream.created", (message) => {
    const { stream, headers } = message as { stream: Readable; headers: unknown };
    watch(stream);
    searchTexts(armed, HTTP2, headers);
  });
}

function watchPush<From extends Readable>(of: From, see: (from: From, chunk: Uint8Array) => void): void {
  const push: Push = of.push;
  of.push = function (this: From, chunk: unknown, encoding) {
    if (chunk instanceof Uint8Array) see(this, chunk);
    return push.call(this, chunk, encoding);
  };
}

function watchEmit(of: { emit: Emit }, see: (event: unknown, args: readonly unknown[]) => void): void {
  const { emit } = of;
  of.emit = function (this: unknown, event, ...args: unknown[]) {
    see(event, args);
    return emit.call(this as Readable, event, ...args);
  };
}

/** A secret in JSON is one of the forms that a scan searches for. */
function searchTexts(armed: Armed, where: string, texts: unknown): void {
  if (armed.size === 0) return;
  const text = JSON.stringify(texts);
  for (const scan of armed) scan.search(where, text);
}

/** Searches the chunks of streams, each with the end of what came before it. */
class BytesSearch {
  readonly #armed: Armed;
  readonly #ends = new WeakMap<Readable, Buffer>();

  constructor(armed: Armed) {
    this.#armed = armed;
  }

  /** @param borders is what a protocol puts between the bytes of a text. */
  search(where: string, from: Readable, chunk: Uint8Array, borders?: RegExp): void {
    if (this.#armed.size === 0) return;
    const bytes = Buffer.concat([this.#ends.get(from) ?? Buffer.alloc(0), chunk]);
    const unframed = borders === undefined ? undefined : bytes.toString("latin1").replaceAll(borders, "");
    for (const scan of this.#armed) {
      scan.search(where, bytes);
      if (unframed !== undefined && unframed.length < bytes.length) scan.search(where, unframed);
    }
    this.#ends.set(from, Buffer.from(bytes.subarray(-BORDER_BYTES)));
  }
}
