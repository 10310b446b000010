// `createMcpEndpoint`: the orchestrator's tools at `/mcp` of a coordinator, over MCP's streamable HTTP.
//
//   - A request needs a token of an admin or a user, and its tools have the rights of that token.
//   - Each request gets a server of its own. All share one memory of starts (`OrchestratorMemory`), so that a
//     client that asks again for a lost answer gets the session of its first request.

import { createClient } from "@connectrpc/connect";
import { defined, MIB, toHoldfastError } from "@holdfast/core";
import { RunnerService, SessionService } from "@holdfast/proto";
import type { McpHttpHandler } from "@modelcontextprotocol/server";

import type { Endpoint } from "../api/api.ts";
import type { Calls } from "../api/calls.ts";
import { readAll, type Exchange } from "../api/exchange.ts";
import { checkBody } from "../api/request-guards.ts";
import { Refusal } from "../call/refusal.ts";
import { tokenFor } from "../call/token-advice.ts";
import { callerTransport } from "../endpoint/caller-transport.ts";
import {
  OrchestratorMemory,
  stateKeyOf,
  type Orchestrator,
  type OrchestratorSettings,
} from "./orchestrator.ts";
import { demandsIn, parentIn, tagsIn } from "./request-context.ts";

const PATH = "/mcp";
/** Above the largest input of a tool. */
const BODY_BYTES = MIB;
const CALLERS: ReadonlySet<"admin" | "user"> = new Set(["admin", "user"]);

export function createMcpEndpoint(settings: OrchestratorSettings): Endpoint {
  const memory = new OrchestratorMemory();
  let handler: Promise<McpHttpHandler> | undefined;
  return {
    serves: (path) => path === PATH,
    async serve(exchange, calls) {
      const orchestrator = await orchestratorFor(exchange, calls, { settings, memory });
      checkBody(exchange.request.rawHeaders, BODY_BYTES);
      const body = await readAll(exchange, BODY_BYTES);
      // The SDK takes some time to load, and most coordinators never need it.
      handler ??= loadHandler();
      const { fetch } = await handler;
      const authInfo = { token: "", clientId: orchestrator.caller, scopes: [], extra: { orchestrator } };
      await send(exchange, await fetch(webRequest(exchange, body), { authInfo }));
    },
  };
}

async function loadHandler(): Promise<McpHttpHandler> {
  const [{ createMcpHandler }, { orchestratorServer }] = await Promise.all([
    import("@modelcontextprotocol/server"),
    import("./orchestrator-tools.ts"),
  ]);
  return createMcpHandler(
    ({ authInfo }) => orchestratorServer(authInfo?.extra?.["orchestrator"] as Orchestrator),
    { maxRequestBodySize: BODY_BYTES },
  );
}

/** @throws Refusal */
async function orchestratorFor(
  { request, requestId }: Exchange,
  calls: Calls,
  common: Pick<Orchestrator, "settings" | "memory">,
): Promise<Orchestrator> {
  const { authorization } = request.headers;
  const caller = await calls.authenticate(authorization);
  if (caller.kind !== "admin" && caller.kind !== "user")
    throw new Refusal(
      "insufficient_scope",
      `a token of kind "${caller.kind}" may not use the orchestrator's tools`,
      tokenFor(CALLERS),
    );
  const transport = callerTransport({ calls, caller, authorization, requestId });
  const parentSessionId = parentIn(request.headers);
  return {
    ...common,
    sessions: createClient(SessionService, transport),
    runners: createClient(RunnerService, transport),
    explained: (thrown) => Promise.resolve(toHoldfastError(thrown)),
    caller: caller.tokenId,
    stateKey: stateKeyOf(authorization ?? ""),
    demands: demandsIn(request.headers),
    tags: tagsIn(request.headers),
    ...defined({ parentSessionId }),
  };
}

function webRequest({ request, response }: Exchange, body: Uint8Array): Request {
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    if (value === undefined || name.startsWith(":") || HIDDEN.has(name)) continue;
    headers.set(name, Array.isArray(value) ? value.join(", ") : value);
  }
  const { method = "GET" } = request;
  const hasBody = method !== "GET" && method !== "HEAD" && body.length > 0;
  return new Request(`http://localhost${PATH}`, {
    method,
    headers,
    signal: gone.signal,
    ...(hasBody ? { body: Uint8Array.from(body) } : {}),
  });
}

/** The token stays out of what the SDK sees. */
const HIDDEN: ReadonlySet<string> = new Set([
  "authorization",
  "cookie",
  "host",
  "connection",
  "content-length",
]);

async function send({ response }: Exchange, answer: Response): Promise<void> {
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  if (answer.body === null) return void response.end();
  const reader = answer.body.getReader();
  response.once("close", () => void reader.cancel().catch(() => {}));
  for (;;) {
    const { done, value } = await reader.read();
    if (done || response.destroyed) break;
    if (!response.write(value)) await drained(response);
  }
  response.end();
}

/** Resolves when the reader takes more, or has gone. */
function drained(response: Exchange["response"]): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      response.off("drain", end).off("close", end);
      resolve();
    };
    response.on("drain", end).on("close", end);
  });
}
