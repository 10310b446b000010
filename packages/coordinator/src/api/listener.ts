// `listen` opens the one port of the API.
//
// The first three bytes of a connection name its protocol: only HTTP/2 begins with `PRI`. Under TLS, the
// protocol is negotiated before (ALPN). Both protocols use the same handler.
//
//   - A connection that is too slow to make a request is closed, in every state.
//   - Bytes that are no HTTP are answered once, and the connection is closed. No bytes of a connection end
//     the process.
//   listener-3. When a caller's process ends, its system closes the connection, which ends all of its
//       requests.
//   listener-4. When the listener closes, requests under way are answered, and each such answer ends its
//       connection. A proxy that keeps connections then asks another coordinator, and not the closing one
//       repeatedly.

import {
  createServer as createHttp,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import {
  createServer as createHttp2,
  type Http2Server,
  type Http2Session,
  type ServerHttp2Stream,
} from "node:http2";
import { createServer as createHttps } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { clearTimeout, setTimeout } from "node:timers";
import type { TLSSocket } from "node:tls";
import { LINE_PATH } from "@holdfast/proto";
import { cannotListen } from "@holdfast/core";
import type { ApiLimits } from "./limits.ts";
import { newRequestId, Refusal, toProblem } from "../call/refusal.ts";

export interface ListenOptions {
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  readonly tls?: { readonly key: string; readonly cert: string };
}

export interface Listener {
  readonly host: string;
  readonly port: number;
  /**
   * Stops accepting connections and ends open ones: idle ones at once, others after their answer or
   * `closeMs`.
   */
  close(): Promise<void>;
}

type Serve = (request: IncomingMessage, response: ServerResponse) => void;

/** @throws HoldfastError when the address cannot be used. */
export async function listen(
  { host, port, tls }: ListenOptions,
  limits: ApiLimits,
  serve: Serve,
): Promise<Listener> {
  const server = new PortServer(tls, limits, serve);
  const address = await server.begin(host, port);
  return { host: address.address, port: address.port, close: () => server.close() };
}

/** The servers of HTTP/1.1 and of HTTP/2 behind one port. */
class PortServer {
  readonly #limits: ApiLimits;
  readonly #serve: Serve;
  readonly #underWay = new UnderWay();
  readonly #sessions = new Set<Http2Session>();
  readonly #sockets = new Set<Socket>();
  readonly #http1: Server;
  readonly #http2: Http2Server;

  constructor(tls: ListenOptions["tls"], limits: ApiLimits, serve: Serve) {
    this.#limits = limits;
    this.#serve = serve;
    this.#http1 = this.#createHttp1(tls);
    this.#http2 = this.#createHttp2();
    this.#divide(tls === undefined ? "connection" : "secureConnection");
  }

  /** @throws HoldfastError when the address cannot be used. */
  async begin(host: string, port: number): Promise<AddressInfo> {
    await new Promise<void>((resolve, reject) => {
      this.#http1.once("error", (error) =>
        reject(cannotListen("the coordinator", { host, port, option: "--port" }, error)),
      );
      this.#http1.listen({ host, port }, resolve);
    });
    return this.#http1.address() as AddressInfo;
  }

  async close(): Promise<void> {
    this.#underWay.areLast();
    const closed = new Promise<void>((resolve) => this.#http1.close(() => resolve()));
    this.#http1.closeIdleConnections();
    for (const session of this.#sessions) session.close();
    const timer = setTimeout(() => {
      for (const session of this.#sessions) session.destroy();
      for (const socket of this.#sockets) socket.destroy(); // The servers do not know silent connections.
    }, this.#limits.closeMs);
    await closed;
    clearTimeout(timer);
  }

  #createHttp1(tls: ListenOptions["tls"]): Server {
    const { headerBytes, headerMs, requestMs, connections } = this.#limits;
    const options = {
      maxHeaderSize: headerBytes,
      // The head is a part of its request. Node does not start if the head may take longer.
      headersTimeout: Math.min(headerMs, requestMs),
      requestTimeout: requestMs,
      requireHostHeader: false, // The request guard checks it and explains the refusal (request-guards-1).
      connectionsCheckingInterval: Math.min(1000, headerMs),
    };
    const secure = {
      minVersion: "TLSv1.2",
      ALPNProtocols: ["h2", "http/1.1"],
      handshakeTimeout: headerMs, // A connection that is too slow to make a request is closed.
    } as const;
    const serve: Serve = (request, response) => {
      this.#underWay.add(response);
      this.#serve(request, response);
    };
    const http1 =
      tls === undefined ? createHttp(options, serve) : createHttps({ ...options, ...tls, ...secure }, serve);
    http1.maxConnections = connections;
    http1.on("clientError", refuseBroken);
    // Node would close these without an answer.
    http1.on("connect", (_request, socket) => refuseTunnel(socket as Socket, headerMs));
    http1.on("checkExpectation", serve);
    return http1;
  }

  #createHttp2(): Http2Server {
    const { http2Streams, http2IdleMs, headerBytes, requestMs } = this.#limits;
    const options = {
      settings: { maxConcurrentStreams: http2Streams, maxHeaderListSize: headerBytes },
      // In megabytes. Unread answers that an attacker causes are limited. A runner must still be heard while
      // it is sent a large session: above this limit, Node refuses its requests.
      maxSessionMemory: 100,
    };
    const http2 = createHttp2(options, (request, response) => {
      if (request.url !== LINE_PATH) {
        const timer = setTimeout(() => request.stream.close(), requestMs);
        request.once("end", () => clearTimeout(timer)).once("close", () => clearTimeout(timer));
      } // A line is an endless request with its own clock (line.ts).
      this.#serve(request as unknown as IncomingMessage, response as unknown as ServerResponse);
    });
    http2.on("sessionError", () => {});
    http2.on("session", (session) => {
      this.#sessions.add(session.once("close", () => this.#sessions.delete(session)));
      closeWhenIdle(session, http2IdleMs);
    });
    return http2;
  }

  /**
   * Gives each connection to the server of its protocol. Only connections that speak HTTP/1.1 reach its own
   * listener: the server limits their times to make a request.
   */
  #divide(event: "connection" | "secureConnection"): void {
    const http1 = this.#http1;
    const [takeHttp1] = http1.listeners(event) as ((socket: Socket) => void)[];
    http1.removeAllListeners(event);
    const hand = (socket: Socket, isHttp2: boolean): void => {
      if (isHttp2) {
        // mutant: half-open-connection
        socket.allowHalfOpen = false; // listener-3. As in a server of HTTP/2 alone.
        this.#http2.emit("connection", socket);
      } else takeHttp1?.call(http1, socket);
    };
    http1.on("connection", (socket) =>
      this.#sockets.add(socket.once("close", () => this.#sockets.delete(socket))),
    );
    http1.on(event, (socket: Socket | TLSSocket) => {
      socket.on("error", () => socket.destroy()); // No bytes of a connection may end the process.
      if ("alpnProtocol" in socket) hand(socket, socket.alpnProtocol === "h2");
      else peek(socket, this.#limits.headerMs, (isHttp2) => hand(socket, isHttp2));
    });
  }
}

/** The HTTP/1.1 answers that are under way (listener-4). HTTP/2 announces that it takes no more requests. */
class UnderWay {
  readonly #answers = new Set<ServerResponse>();
  #isClosing = false;

  add(answer: ServerResponse): void {
    if (this.#isClosing) answer.shouldKeepAlive = false;
    this.#answers.add(answer);
    answer.once("close", () => this.#answers.delete(answer));
  }

  areLast(): void {
    this.#isClosing = true;
    for (const answer of this.#answers) answer.shouldKeepAlive = false;
  }
}

/** A connection with an open request is not idle, even if it is silent. */
function closeWhenIdle(session: Http2Session, idleMs: number): void {
  let open = 0;
  session.on("stream", (stream: ServerHttp2Stream) => {
    open++;
    stream.once("close", () => open--);
  });
  session.setTimeout(idleMs, () => {
    if (open === 0) session.close();
  });
}

const PREFACE = "PRI";

/**
 * Looks at the first bytes and puts them back. Fewer than three bytes that could begin `PRI` are waited for.
 */
function peek(socket: Socket, timeoutMs: number, found: (isHttp2: boolean) => void): void {
  // A connection that is too slow to make a request is closed.
  const timer = setTimeout(() => socket.destroy(), timeoutMs);
  let seen = Buffer.alloc(0);
  const onReadable = (): void => {
    const chunk = socket.read() as Buffer | null;
    if (chunk === null) return;
    seen = Buffer.concat([seen, chunk]);
    const start = seen.toString("latin1", 0, PREFACE.length);
    if (start.length < PREFACE.length && PREFACE.startsWith(start)) return;
    stop();
    socket.unshift(seen);
    found(start === PREFACE);
  };
  // The server lets the other side end first, for answers under way; here there are none.
  const onEnd = (): void => void socket.destroy();
  const stop = (): void => {
    clearTimeout(timer);
    socket.off("readable", onReadable).off("end", onEnd).off("close", stop);
  };
  socket.on("readable", onReadable).once("end", onEnd).once("close", stop);
}

/** Answers bytes that never became a request. */
function refuseBroken(error: NodeJS.ErrnoException, socket: Socket): void {
  // Nothing can be written before TLS is agreed upon.
  if (!socket.writable || error.code === "ECONNRESET" || error.code === "ERR_TLS_HANDSHAKE_TIMEOUT") {
    socket.destroy();
    return;
  }
  const requestId = newRequestId();
  const problem = toProblem(brokenAs(error.code), requestId);
  const body = JSON.stringify(problem);
  socket.end(
    `HTTP/1.1 ${problem.status} ${problem.title}\r\nConnection: close\r\nContent-Type: application/problem+json\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nX-Content-Type-Options: nosniff\r\nX-Request-Id: ${requestId}\r\n\r\n${body}`,
  );
}

/**
 * The server no longer watches such a socket: no clock runs for it, its end is not read, and it keeps the
 * server from closing.
 */
function refuseTunnel(socket: Socket, timeoutMs: number): void {
  socket.once("finish", () => socket.destroy()).setTimeout(timeoutMs, () => socket.destroy());
  refuseBroken(new Error("CONNECT"), socket);
}

function brokenAs(code: string | undefined): Refusal {
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return new Refusal("headers_too_large", "the headers are too large", {
        expected: "fewer or shorter headers, or a shorter path",
      });
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return new Refusal("request_timeout", "the request did not arrive in time", {
        fix: "send the whole request at once, with the right Content-Length",
      });
    default:
      return new Refusal("bad_request", "the request is neither HTTP/1.1 nor HTTP/2", {
        expected: "an HTTP/1.1 or HTTP/2 request, over TLS exactly where the coordinator uses TLS",
      });
  }
}
