// `startMcpHttpServer`: a small MCP server at an address for tests, written after the protocol and without an
// SDK. It speaks 2026-07-28 or 2025-11-25, and its tools misbehave by their names.

import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setImmediate } from "node:timers";
import { MIB } from "@holdfast/core";

export interface McpMessage {
  readonly id?: number;
  readonly method: string;
  readonly params: {
    readonly name?: string;
    readonly arguments?: Readonly<Record<string, unknown>>;
    readonly inputResponses?: Readonly<Record<string, unknown>>;
    readonly requestState?: string;
    readonly taskId?: string;
    readonly _meta?: Readonly<Record<string, unknown>>;
  };
}

export interface McpHttpServer {
  readonly url: string;
  /** "METHOD" or "tools/call NAME" of each message, in order. */
  readonly log: readonly string[];
  readonly headers: readonly IncomingHttpHeaders[];
  close(): Promise<void>;
}

export interface McpHttpOptions {
  readonly version?: "2026-07-28" | "2025-11-25";
  /** Refuses every request whose Authorization header is another one. */
  readonly authorization?: string | (() => string);
  /** The issuer that a refusal names. */
  readonly issuer?: string;
  /** Takes every request away from the server. */
  readonly intercept?: (response: ServerResponse, url: string) => boolean;
  /** Answers a request about a task, such as "tasks/get", in the place of the server. */
  readonly task?: (message: McpMessage) => object | undefined;
  /** Answers a call in the place of the server. */
  readonly call?: (message: McpMessage) => object | undefined;
}

const NAMES: readonly (readonly [name: string, annotations: object])[] = [
  ["greet", { readOnlyHint: true }],
  ["count", {}],
  ["cut", {}],
  ["cut_reading", { readOnlyHint: true }],
  ["silent", {}],
  ["flood", {}],
  ["page", {}],
  ["unauthorized", {}],
  ["expired", {}],
  ["stream", {}],
  ["busy", {}],
  ["gateway", {}],
  ["ask", {}],
];

export async function startMcpHttpServer(options: McpHttpOptions = {}): Promise<McpHttpServer> {
  const { version = "2026-07-28", authorization, issuer, intercept, call, task } = options;
  const log: string[] = [];
  const headers: IncomingHttpHeaders[] = [];
  let busy = 0;
  const server = createServer((request, response) => {
    headers.push(request.headers);
    if (intercept?.(response, request.url ?? "") === true) return;
    if (request.url?.startsWith("/.well-known/oauth-protected-resource") === true) {
      const found =
        issuer === undefined ? {} : { resource: `${origin()}/mcp`, authorization_servers: [issuer] };
      response.writeHead(issuer === undefined ? 404 : 200, { "content-type": "application/json" });
      return void response.end(JSON.stringify(found));
    }
    const expected = typeof authorization === "function" ? authorization() : authorization;
    if (expected !== undefined && request.headers.authorization !== expected)
      return void response.writeHead(401, { "www-authenticate": "Bearer" }).end();
    if (request.method !== "POST") return void response.writeHead(405).end();
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      const message = JSON.parse(body) as McpMessage;
      const { id, method, params } = message;
      log.push(method === "tools/call" ? `${method} ${params.name}` : method);
      const json = (answer: object): void => {
        response.writeHead(200, { "content-type": "application/json" });
        response.end(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
      };
      const result = (fields: object): void => json({ result: { resultType: "complete", ...fields } });
      const text = (said: string, isError = false): void =>
        result({ content: [{ type: "text", text: said }], isError });
      if (id === undefined) return void response.writeHead(202).end();
      if (method === "server/discover" && version === "2026-07-28")
        return result({
          supportedVersions: [version],
          capabilities: { tools: {} },
          serverInfo: { name: "test", version: "1" },
          instructions: "Greet first.",
          ttlMs: 0,
          cacheScope: "private",
        });
      if (method === "initialize" && version === "2025-11-25")
        return result({
          protocolVersion: version,
          capabilities: { tools: {} },
          serverInfo: { name: "test", version: "1" },
        });
      if (method === "tools/list")
        return result({
          tools: NAMES.map(([name, annotations]) => ({ name, annotations, inputSchema: { type: "object" } })),
          ttlMs: 0,
          cacheScope: "private",
        });
      const ofTask = method.startsWith("tasks/") ? task?.(message) : undefined;
      if (ofTask !== undefined) return json(ofTask);
      if (method !== "tools/call") return json({ error: { code: -32_601, message: "no such method" } });
      const own = call?.(message);
      if (own !== undefined) return json(own);
      switch (params.name) {
        case "greet":
          return text(`Hello, ${request.headers.authorization ?? "stranger"}.`);
        case "cut":
        case "cut_reading":
          response.writeHead(200, { "content-type": "text/event-stream" });
          response.write(": working\n\n");
          return void setImmediate(() => response.destroy());
        case "silent":
          return;
        case "flood":
          response.writeHead(200, { "content-type": "application/json" });
          return flood(response);
        case "page":
          return void response.writeHead(200, { "content-type": "text/html" }).end("<h1>Welcome</h1>");
        case "unauthorized":
          return text("401 Unauthorized: the token has expired", true);
        case "expired":
          return json({ error: { code: -32_000, message: "Unauthorized" } });
        case "stream":
          response.writeHead(200, { "content-type": "text/event-stream" });
          return void response.end(
            `data: ${JSON.stringify({ jsonrpc: "2.0", id, result: { resultType: "complete", content: [] } })}\n\n`,
          );
        case "busy":
          if (busy++ === 0) return void response.writeHead(503).end("later");
          return text("done");
        case "gateway":
          return void response.writeHead(502).end("bad gateway");
        default:
          return text("counted");
      }
    });
  });
  const origin = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `${origin()}/mcp`,
    log,
    headers,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Writes until the client has enough. */
function flood(response: ServerResponse): void {
  const chunk = "x".repeat(MIB);
  let count = 0;
  const more = (): void => {
    while (count++ < 100) if (!response.write(chunk)) return void response.once("drain", more);
    response.end();
  };
  more();
}
