// `startRunGateway` serves the executor of one run over HTTP. An executor and its tools talk to nothing else
// of ours: they hold no token of a coordinator, and no key of a provider.
//
//   - Only a holder of the run's token is served. Session and run follow from the token.
//   - The gateway listens on loopback, or on a Unix socket of mode 0600.
//   - Only the routes of its caller exist (`gateway-routes.ts`), and with them the model providers
//     (`provider-proxy.ts`) and the tunnels (`connect-proxy.ts`) that its caller allows.
//   - Secrets are replaced in everything that passes, in both directions.
//   - A head, a body and a connection have limits in bytes, time and number.
//   - After `close` the token is good for nothing: no connection is left, and no port listens.
//
// The gateway knows no coordinator and no executor. Its caller gives the handlers.

import { defined, ERROR_TABLE, HoldfastError, MIB, toHoldfastError } from "@holdfast/core";
import type { Environment, Redactor } from "@holdfast/system";
import { chmodSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { ConnectProxy, type Resolve } from "./connect-proxy.ts";
import { checkHead, credentialsOf, JOB_PATH } from "./gateway-guards.ts";
import {
  checkBodySession,
  checkRoutes,
  findRoute,
  type GatewayCall,
  type GatewayRoutes,
  type GatewayRun,
} from "./gateway-routes.ts";
import { JobToken } from "./job-token.ts";
import { checkNetworkPolicy, type NetworkPolicy } from "./network-policy.ts";
import { ProviderProxy, type Provider } from "./provider-proxy.ts";

const LIMITS = { bodyBytes: MIB, headMs: 10_000, requestMs: 30_000, connections: 64 } as const;
const HOST = "127.0.0.1";

export interface RunGatewayOptions {
  readonly run: GatewayRun;
  readonly routes: GatewayRoutes;
  /** The secrets of this runner. The gateway adds its own token. */
  readonly redactor: Redactor;
  /** Model providers that the executor may call. The gateway adds their keys. */
  readonly providers?: readonly Provider[];
  /** Rejects with a HoldfastError for a call of a model that may not be made. Without it each is sent. */
  readonly admit?: () => Promise<void>;
  /** An environment whose variables of proxies count for requests to providers. Without it they go directly. */
  readonly proxies?: Environment;
  /** Other hosts that the executor may connect to, through the gateway as its proxy. */
  readonly network?: NetworkPolicy;
  /** How the names of hosts are resolved, for tests. */
  readonly resolve?: Resolve;
  /** Listen on a new Unix socket at this path, in a folder of this user, and not on loopback. */
  readonly socketPath?: string;
}

export interface RunGateway {
  /**
   * The base URL for executors that send no token: it has the run's token in its path. Over a Unix socket its
   * host is `localhost`.
   */
  readonly url: string;
  /** The base URL for callers that send `Authorization: Bearer` and the token. */
  readonly origin: string;
  readonly token: string;
  readonly socketPath: string | undefined;
  /**
   * Variables for the executor: the base URLs of providers with the run's token as their key, and the proxy.
   * There are none over a Unix socket, because clients of providers and proxies need a port.
   */
  readonly env: Readonly<Record<string, string>>;
  /** Ends all connections. A second call has no further effect. */
  close(): Promise<void>;
}

/** @throws HoldfastError `cannot_listen`, or UsageError for a wrong route. */
export async function startRunGateway(options: RunGatewayOptions): Promise<RunGateway> {
  const { routes, redactor, socketPath, network } = options;
  checkRoutes(routes);
  if (network !== undefined) checkNetworkPolicy(network);
  const providers = new ProviderProxy(options.providers ?? [], redactor, options);
  const tunnels = new ConnectProxy(network ?? { allow: [] }, options.resolve);
  const token = new JobToken();
  redactor.add(token.text);
  const hosts = new Set(["localhost"]);
  const closing = new AbortController();
  const server = createServer(
    { headersTimeout: LIMITS.headMs, requestTimeout: LIMITS.requestMs, connectionsCheckingInterval: 1_000 },
    (request, response) => {
      const exchange = { ...options, providers, token, hosts, closing: closing.signal, request, response };
      void serve(exchange).catch((error: unknown) => refuse(exchange, error));
    },
  );
  server.maxConnections = LIMITS.connections;
  server.on("connect", (request, client, head: Buffer) => {
    client.on("error", () => {}); // The caller has gone.
    void connectTo({ token, tunnels }, request, client, head).catch((error: unknown) =>
      client.end(refusedTunnel(redactor, error)),
    );
  });
  await listen(server, socketPath);
  const { port } = (socketPath === undefined ? server.address() : { port: 0 }) as AddressInfo;
  if (socketPath === undefined) for (const host of [HOST, "localhost"]) hosts.add(`${host}:${port}`);
  const origin = socketPath === undefined ? `http://${HOST}:${port}` : "http://localhost";
  let closed: Promise<void> | undefined;
  return {
    url: `${origin}${JOB_PATH}${token.text}`,
    origin,
    token: token.text,
    socketPath,
    env:
      socketPath === undefined
        ? { ...providers.environment(origin, token.text), ...proxyEnvironment(port, token.text, network) }
        : {},
    close: () => {
      tunnels.close();
      providers.close();
      return (closed ??= close(server, closing, socketPath));
    },
  };
}

async function listen(server: Server, socketPath: string | undefined): Promise<void> {
  // The socket must never be open to others, not even for the moment until `chmod`.
  const umask = socketPath === undefined ? undefined : process.umask(0o177);
  try {
    await new Promise<void>((resolve, reject) => {
      server.once("error", (cause) => reject(cannotListen(socketPath, cause)));
      if (socketPath === undefined) server.listen(0, HOST, resolve);
      else server.listen(socketPath, resolve);
      if (umask !== undefined) process.umask(umask); // Node binds a socket within `listen`.
    });
  } finally {
    if (umask !== undefined) process.umask(umask);
  }
  if (socketPath !== undefined) chmodSync(socketPath, 0o600);
}

function cannotListen(socketPath: string | undefined, cause: Error): HoldfastError {
  return new HoldfastError("cannot_listen", `the gateway of a run cannot listen: ${cause.message}`, {
    at: socketPath ?? HOST,
    fix:
      socketPath === undefined
        ? "free a port of this machine"
        : "choose a folder of this user whose path has fewer than 80 characters, and in it a path that is free",
    cause,
  });
}

async function close(
  server: Server,
  closing: AbortController,
  socketPath: string | undefined,
): Promise<void> {
  closing.abort();
  await new Promise<void>((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
  if (socketPath !== undefined) rmSync(socketPath, { force: true });
}

interface Exchange extends Omit<RunGatewayOptions, "providers"> {
  readonly providers: ProviderProxy;
  readonly token: JobToken;
  readonly hosts: ReadonlySet<string>;
  readonly closing: AbortSignal;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

async function serve(exchange: Exchange): Promise<void> {
  const { request, hosts, token, run, routes, redactor } = exchange;
  checkHead(request, hosts);
  const target = new URL(request.url ?? "", "http://localhost");
  const credentials = credentialsOf(target.pathname, request.headers);
  // mutant: gateway-token-ignored
  if (!token.is(credentials.token)) throw noToken();
  if (exchange.providers.has(credentials.path))
    return exchange.providers.forward(credentials.path, target.search, request, exchange.response);
  const { handler, params } = findRoute(routes, request.method ?? "", credentials.path, run);
  const body = await readBody(request);
  checkBodySession(body, run);
  const gone = new AbortController();
  exchange.response.once("close", () => gone.abort());
  const safe = redactor.value({ params, query: Object.fromEntries(target.searchParams), body });
  const { status = 200, body: answer } = await handler({
    ...run,
    ...(safe as Pick<GatewayCall, "params" | "query" | "body">),
    signal: AbortSignal.any([gone.signal, exchange.closing]),
  });
  send(exchange, status, "application/json", answer);
}

/** @throws HoldfastError */
async function connectTo(
  { token, tunnels }: { readonly token: JobToken; readonly tunnels: ConnectProxy },
  request: IncomingMessage,
  client: Duplex,
  head: Buffer,
): Promise<void> {
  // mutant: tunnel-token-ignored
  if (!token.is(credentialsOf("/", request.headers).token)) throw noToken();
  await tunnels.tunnel(request, client, head);
}

/** A proxy for HTTPS, which clients ask for tunnels. They find a host of this machine without it. */
function proxyEnvironment(
  port: number,
  token: string,
  network: NetworkPolicy | undefined,
): Record<string, string> {
  if (network === undefined || network.allow.length === 0) return {};
  const proxy = `http://run:${token}@${HOST}:${port}`;
  const none = `${HOST},localhost,::1`;
  return { HTTPS_PROXY: proxy, https_proxy: proxy, NO_PROXY: none, no_proxy: none };
}

function noToken(): HoldfastError {
  return new HoldfastError("unauthenticated", "the request has no valid token of this run", {
    expected: "the token that the executor was given, in `Authorization: Bearer`",
  });
}

/** The JSON object of the body; an empty one without a body. */
async function readBody(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    const part = chunk as Buffer; // No encoding is set.
    bytes += part.length;
    if (bytes > LIMITS.bodyBytes)
      throw new HoldfastError("too_large", `the body has more than ${LIMITS.bodyBytes} bytes`, {
        expected: `at most ${LIMITS.bodyBytes} bytes`,
        fix: "keep large content in a file and send its path",
      });
    chunks.push(part);
  }
  if (bytes === 0) return {};
  const type = request.headers["content-type"] ?? "none";
  if (!/^application\/json\s*(;|$)/i.test(type))
    throw new HoldfastError("unsupported_media_type", "the body must be JSON", {
      got: `Content-Type: ${type.slice(0, 60)}`,
      expected: "Content-Type: application/json",
    });
  return objectOf(Buffer.concat(chunks));
}

function objectOf(bytes: Buffer): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw new HoldfastError("malformed_json", "the body is not JSON in UTF-8");
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw new HoldfastError("validation", "the body is not a JSON object", { expected: "{ … }" });
}

function refuse(exchange: Exchange, thrown: unknown): void {
  const { request, response } = exchange;
  if (response.destroyed) return;
  if (response.headersSent) return void response.destroy();
  const problem = problemOf(thrown);
  if (!request.complete) response.setHeader("connection", "close"); // The rest of the body is not read.
  if (problem.status === 401) response.setHeader("www-authenticate", "Bearer");
  send(exchange, problem.status, PROBLEM, problem);
}

/** The answer to a CONNECT request, for which Node has no response. */
function refusedTunnel(redactor: Redactor, thrown: unknown): string {
  const problem = problemOf(thrown);
  const text = JSON.stringify(redactor.value(problem));
  const head = [
    `HTTP/1.1 ${problem.status} ${problem.title}`,
    `content-type: ${PROBLEM}`,
    "connection: close",
  ];
  return `${[...head, `content-length: ${Buffer.byteLength(text)}`].join("\r\n")}\r\n\r\n${text}`;
}

const PROBLEM = "application/problem+json";

/** RFC 9457. */
function problemOf(thrown: unknown) {
  const error = toHoldfastError(thrown);
  const { code, got, expected, fix } = error;
  const { http: status } = ERROR_TABLE[code];
  return {
    type: `urn:holdfast:error:${code.replaceAll("_", "-")}`,
    title: code.replaceAll("_", " "),
    status,
    // The text of an error that nobody foresaw may quote anything.
    detail: status >= 500 && !HoldfastError.is(thrown) ? "the gateway failed" : error.message,
    code,
    ...defined({ got, expected, fix }),
  };
}

function send(
  { response, redactor }: Pick<Exchange, "response" | "redactor">,
  status: number,
  type: string,
  body: unknown,
): void {
  if (body === undefined) return void response.writeHead(status === 200 ? 204 : status).end();
  const text = JSON.stringify(redactor.value(body));
  response.writeHead(status, { "content-type": type, "cache-control": "no-store" }).end(text);
}
