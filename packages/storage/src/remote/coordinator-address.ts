// `openAddress`: the HTTP connection of a process to one address of a coordinator. It puts the token on every
// call. Nothing is sent before the first one.

import type { HoldfastError } from "@holdfast/core";
import { DEPLOYMENT_HEADER } from "@holdfast/proto";
import { ConnectError, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { SeenDeployment, type DeploymentOfAll } from "./seen-deployment.ts";
import { unaryTransport } from "./unary-transport.ts";

/**
 * The data that is under way on a connection at most, in megabytes. Above that Node breaks off any next
 * answer, also a refusal of too large a request. The limit must hold the largest requests that are made at
 * the same time.
 */
const MEMORY_MB = 1_000;
/** A connection that is cut without a word is noticed after the two of them. */
const PING_MS = 10_000;
const PING_TIMEOUT_MS = 5_000;

export interface CoordinatorAddress {
  /** Without a slash at its end. */
  readonly url: string;
  /** Something answered there in our protocol. */
  speaks: boolean;
  /** Its last answer was that of no coordinator, or of one that refuses this connection. */
  problem: HoldfastError | undefined;
  readonly transport: Transport;
  close(): void;
}

export interface AddressOptions {
  readonly httpVersion: "1.1" | "2";
  readonly timeoutMs: number;
  readonly authorization: () => string;
  /** The deployment behind all addresses of the connection. */
  readonly seen: DeploymentOfAll;
}

export function openAddress(
  { href, pathname, protocol }: URL,
  { httpVersion, timeoutMs, authorization, seen }: AddressOptions,
): CoordinatorAddress {
  const url = href.replace(/\/+$/, "");
  const deployment = new SeenDeployment(url, seen);
  const authorize: Interceptor = (next) => async (request) => {
    request.header.set("authorization", authorization());
    const idIn = (headers: Headers): string | undefined => headers.get(DEPLOYMENT_HEADER) ?? undefined;
    const response = await next(request).catch((thrown: unknown) => {
      deployment.check(idIn(ConnectError.from(thrown).metadata), false);
      throw thrown;
    });
    deployment.check(idIn(response.header), true);
    return response;
  };
  const common = {
    baseUrl: url,
    interceptors: [authorize],
    defaultTimeoutMs: timeoutMs,
    acceptCompression: [],
  };
  const fresh = { speaks: false, problem: undefined };
  if (httpVersion === "1.1") {
    const agent = new (protocol === "https:" ? HttpsAgent : HttpAgent)({ keepAlive: true });
    const transport = createConnectTransport({ ...common, httpVersion, nodeOptions: { agent } });
    return { ...fresh, url, transport, close: () => agent.destroy() };
  }
  const pings = { pingIntervalMs: PING_MS, pingTimeoutMs: PING_TIMEOUT_MS };
  const sessions = new Http2SessionManager(url, pings, { maxSessionMemory: MEMORY_MB });
  withErrorListener(sessions);
  const transport = unaryTransport({
    sessions,
    basePath: pathname.replace(/\/+$/, ""),
    timeoutMs,
    authorization,
    deployment,
    others: createConnectTransport({ ...common, httpVersion, sessionManager: sessions }),
  });
  return { ...fresh, url, transport, close: () => sessions.abort() };
}

/**
 * When a connection went silent, Node reports its error a second time. The session manager has stopped to
 * listen by then, and an error without a listener ends the process.
 */
function withErrorListener(sessions: Http2SessionManager): void {
  const guarded = new WeakSet<object>();
  const request = sessions.request.bind(sessions);
  sessions.request = async (...asked) => {
    const stream = await request(...asked);
    const { session } = stream;
    if (session !== undefined && !guarded.has(session)) guarded.add(session.on("error", () => {}));
    return stream;
  };
}
