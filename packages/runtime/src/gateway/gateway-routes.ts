// The routes of a run gateway (`findRoute`): an allow-list, which its caller gives.
//
//   - A request that no route names is refused. There is no route that forwards everything.
//   - `{sessionId}` in a path is the session of the token, and no other. A body that names another session is
//     refused as well.

import { HoldfastError, UsageError } from "@holdfast/core";

/** The session and the run that a gateway serves. All that a request may do follows from them. */
export interface GatewayRun {
  readonly sessionId: string;
  readonly runId: string;
}

/** One request of an executor, checked. Secrets in it are replaced. */
export interface GatewayCall extends GatewayRun {
  /** The parts of the path that the route leaves open, such as `childId`. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  /** The JSON object of the body; empty for a request without a body. */
  readonly body: Readonly<Record<string, unknown>>;
  /** Aborted when the executor closes the connection, and when the gateway closes. */
  readonly signal: AbortSignal;
}

export interface GatewayAnswer {
  /** 200 when absent. */
  readonly status?: number;
  /** A value of JSON; without one the answer has no body. */
  readonly body?: unknown;
}

/** An error of the class `HoldfastError` becomes a problem of RFC 9457; any other becomes an internal one. */
export type GatewayHandler = (call: GatewayCall) => Promise<GatewayAnswer>;

/**
 * Handlers by method and path: `POST /events`, `GET /sessions/{sessionId}/affinity`,
 * `GET /children/{childId}`. Every path begins with a slash, and each part in braces is one segment.
 */
export type GatewayRoutes = Readonly<Record<string, GatewayHandler>>;

export interface FoundRoute {
  readonly handler: GatewayHandler;
  readonly params: Readonly<Record<string, string>>;
}

/** @throws UsageError for a key that is no method and path. */
export function checkRoutes(routes: GatewayRoutes): void {
  const wrong = Object.keys(routes).find((key) => !/^[A-Z]+ \/[\w/{}-]*$/.test(key));
  if (wrong === undefined) return;
  throw new UsageError(`"${wrong}" is no route of a gateway`, {
    expected: 'a method and a path, such as "POST /sessions/{sessionId}/events"',
  });
}

/** @throws HoldfastError `not_found`, `method_not_allowed`, or `forbidden` for another session. */
export function findRoute(
  routes: GatewayRoutes,
  method: string,
  path: string,
  { sessionId }: GatewayRun,
): FoundRoute {
  let hasPath = false;
  for (const [key, handler] of Object.entries(routes)) {
    const [allowed = "", template = ""] = key.split(" ");
    const params = match(template, path);
    if (params === undefined) continue;
    hasPath = true;
    if (allowed !== method) continue;
    if (params["sessionId"] !== undefined && params["sessionId"] !== sessionId) throw otherSession();
    return { handler, params };
  }
  if (hasPath) throw new HoldfastError("method_not_allowed", `the gateway does not allow ${method} here`);
  throw new HoldfastError("not_found", "the gateway has no such route", {
    got: `${method.slice(0, 20)} ${path.slice(0, 100)}`,
  });
}

export function checkBodySession(body: Readonly<Record<string, unknown>>, { sessionId }: GatewayRun): void {
  for (const name of ["session_id", "sessionId"]) {
    if (Object.hasOwn(body, name) && body[name] !== sessionId) throw otherSession();
  }
}

function otherSession(): HoldfastError {
  return new HoldfastError("forbidden", "the token belongs to another session", {
    fix: "name the session of this run, or none",
  });
}

function match(template: string, path: string): Record<string, string> | undefined {
  const [expected, given] = [template.split("/"), path.split("/")];
  if (expected.length !== given.length) return undefined;
  const params: Record<string, string> = {};
  for (const [at, part] of expected.entries()) {
    const name = /^\{(\w+)\}$/.exec(part)?.[1];
    const value = decoded(given[at] ?? "");
    if (value === undefined) return undefined;
    if (name === undefined ? value !== part : value === "") return undefined;
    if (name !== undefined) params[name] = value;
  }
  return params;
}

function decoded(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
