// `serveApi` serves every service of the contract on one port, as gRPC, gRPC-Web, Connect, REST and
// server-sent events.
//
// The API knows the contract, but not what a service does. A request passes the request guards, is matched to
// its protocol and becomes a call. This file alone turns errors into answers of that protocol.

import type { IncomingHttpHeaders } from "node:http";
import { performance } from "node:perf_hooks";
import { toHoldfastError, type HoldfastError } from "@holdfast/core";
import { HealthService } from "@holdfast/proto";
import type { Authenticate, Caller } from "../call/caller.ts";
import type { Methods } from "../call/methods.ts";
import { Calls } from "./calls.ts";
import { answer, refuse, setCommonHeaders, type Exchange } from "./exchange.ts";
import { checkHead, type GuardPolicy } from "./request-guards.ts";
import { API_LIMITS, type ApiLimits } from "./limits.ts";
import { listen, type Listener, type ListenOptions } from "./listener.ts";
import { openApi } from "./openapi.ts";
import { isOurFault, newRequestId, Refusal } from "../call/refusal.ts";
import { tokenFor } from "../call/token-advice.ts";
import { serveRest } from "./rest.ts";
import { createRpc } from "./rpc.ts";

/** A page for people, which is served beside the contract and calls the API. */
export interface Page {
  serves(path: string): boolean;
  /** @throws HoldfastError when nothing has been answered yet. */
  serve(exchange: Exchange, call: PageCall): Promise<void>;
  /** The header Authorization that a request has, or that its cookie stands for. */
  authorizationOf(headers: IncomingHttpHeaders): string | undefined;
}

/** A protocol beside the contract, which calls the contract's methods. */
export interface Endpoint {
  serves(path: string): boolean;
  /**
   * @param failed called with errors that are answered in the form of the protocol.
   * @throws HoldfastError when nothing has been answered yet.
   */
  serve(exchange: Exchange, calls: Calls, failed: (error: HoldfastError) => void): Promise<void>;
}

export interface PageCall {
  /** @throws Refusal `unauthenticated` or `token_revoked`. */
  authenticate(authorization: string | undefined): Promise<Caller>;
}

export interface ApiOptions {
  /**
   * The methods of each service that is offered. Another method is answered with `not_implemented`, and
   * health by default with `ok`.
   */
  readonly services: readonly Methods[];
  readonly authenticate: Authenticate;
  readonly limits?: Partial<ApiLimits>;
  /**
   * Host names of the API besides its own address, with their ports where those are not the scheme's default.
   */
  readonly hosts?: readonly string[];
  /** Origins whose pages may call the API, besides its own. */
  readonly origins?: readonly string[];
  /** The text of `/metrics`, for admins and for tokens that may read nothing else. */
  readonly metrics?: () => string | Promise<string>;
  readonly page?: Page;
  /** Protocols beside the contract; the first that serves a path gets its requests. */
  readonly endpoints?: readonly Endpoint[];
  /** Called with every internal error. Must not throw. */
  readonly onError?: (error: HoldfastError, requestId: string) => void;
  /** Milliseconds that only grow. */
  readonly monotonic?: () => number;
}

export interface Api {
  /**
   * @param deployment the id that every answer has; none for a server that is no coordinator.
   * @throws HoldfastError `config_invalid` when the address cannot be used.
   */
  listen(options: ListenOptions, deployment?: string): Promise<Listener>;
}

const METRICS_READERS: ReadonlySet<string> = new Set(["metrics", "admin"]);
/** Any process that answers is alive, also while its storage is away: a restart would not bring that back. */
const ALIVE = `${JSON.stringify({ status: "ok" })}\n`;

const HEALTHY: readonly Methods[] = [new Map([[HealthService.method.get, () => ({ status: "ok" })]])];

export function serveApi(options: ApiOptions): Api {
  const limits: ApiLimits = { ...API_LIMITS, ...options.limits };
  const calls = new Calls({
    methods: new Map([...HEALTHY, ...options.services].flatMap((methods) => [...methods])),
    authenticate: options.authenticate,
    limits,
    monotonic: options.monotonic ?? (() => performance.now()),
  });
  const onError = (error: HoldfastError, requestId: string): void => {
    if (isOurFault(error)) options.onError?.(error, requestId);
  };
  return {
    async listen(where, deployment) {
      const closing = new AbortController();
      const hosts = new Set((options.hosts ?? []).map((host) => host.toLowerCase()));
      const origins = new Set((options.origins ?? []).map((origin) => origin.toLowerCase()));
      const policy: GuardPolicy = { hosts, origins, headerBytes: limits.headerBytes };
      const common = { calls, limits, closing: closing.signal };
      const serveRpc = createRpc({ ...common, onError });
      const serve = async (exchange: Exchange): Promise<void> => {
        setCommonHeaders(exchange, deployment);
        checkHead(headOf(exchange), policy);
        signInPage(exchange, options.page);
        const endpoint = options.endpoints?.find(({ serves }) => serves(exchange.path));
        const failed = (error: HoldfastError): void => onError(error, exchange.requestId);
        if (options.page?.serves(exchange.path) === true) await options.page.serve(exchange, calls);
        else if (endpoint !== undefined) await endpoint.serve(exchange, calls, failed);
        else if (exchange.path.startsWith("/holdfast.")) await serveRpc(exchange);
        else if (exchange.path === "/openapi.json") servePlain(exchange, "application/json", openApi());
        else if (exchange.path === "/livez") servePlain(exchange, "application/json", ALIVE);
        else if (exchange.path === "/metrics") await serveMetrics(exchange, calls, options.metrics);
        else await serveRest(exchange, common);
      };
      const listener = await listen(where, limits, (request, response) => {
        const exchange = exchangeOf(request, response);
        serve(exchange).catch((thrown: unknown) => {
          const error = toHoldfastError(thrown);
          onError(error, exchange.requestId);
          refuse(exchange, error);
        });
      });
      for (const host of ownHosts(where, listener)) hosts.add(host);
      const close = (): Promise<void> => {
        closing.abort(new Refusal("unavailable", "the coordinator is closing"));
        return listener.close();
      };
      return { ...listener, close };
    },
  };
}

function exchangeOf(request: Exchange["request"], response: Exchange["response"]): Exchange {
  const target = request.url ?? "";
  const question = target.indexOf("?");
  const path = question < 0 ? target : target.slice(0, question);
  const query = question < 0 ? "" : target.slice(question + 1);
  return { request, response, requestId: newRequestId(), path, query };
}

/** A request of the page carries its token in a cookie. Only REST takes it. */
function signInPage({ request, path }: Exchange, page: Page | undefined): void {
  if (page === undefined || path.startsWith("/holdfast.")) return;
  const authorization = page.authorizationOf(request.headers);
  if (authorization !== undefined) request.headers.authorization = authorization;
}

function headOf({ request }: Exchange) {
  const isHttp2 = request.httpVersionMajor === 2;
  return { target: request.url ?? "", rawHeaders: request.rawHeaders, isHttp2 };
}

/** The names by which callers on this machine, or on its network, reach the API. */
function ownHosts({ host, tls }: ListenOptions, { port }: Listener): string[] {
  const names = [host.includes(":") ? `[${host}]` : host.toLowerCase(), "localhost", "127.0.0.1", "[::1]"];
  const isSchemesOwn = port === (tls === undefined ? 80 : 443);
  return names.flatMap((name) => [`${name}:${port}`, ...(isSchemesOwn ? [name] : [])]);
}

function servePlain(exchange: Exchange, type: string, text: string): void {
  const { method } = exchange.request;
  if (method !== "GET" && method !== "HEAD") {
    throw new Refusal("method_not_allowed", "this path is read-only", {
      expected: "GET",
      headers: { Allow: "GET" },
    });
  }
  answer(exchange, 200, type, text);
}

async function serveMetrics(exchange: Exchange, calls: Calls, metrics: ApiOptions["metrics"]): Promise<void> {
  const caller = await calls.authenticate(exchange.request.headers.authorization);
  if (!METRICS_READERS.has(caller.kind))
    throw new Refusal(
      "insufficient_scope",
      `a token of kind "${caller.kind}" may not read metrics`,
      tokenFor(METRICS_READERS),
    );
  if (metrics === undefined) throw new Refusal("not_found", "the path does not exist");
  servePlain(exchange, "text/plain; version=0.0.4", await metrics());
}
