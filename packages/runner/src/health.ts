// Whether this runner lives and reaches its coordinator, for whoever supervises it: HTTP on a port of this machine.
//
// A port rather than a file: supervisors and containers ask by HTTP, and an answer proves that the process still does something,
// which a file cannot. It tells no more than that, as it has no token; and it is off unless it is asked for.

import { cannotListen } from "@holdfast/core/internal";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const HOST = "127.0.0.1";

export interface Health {
  /** `away`: the coordinator cannot be reached. */
  readonly status: "ok" | "away" | "draining" | "stopped";
  readonly runnerId: string;
  /** Sessions held now, and how many there can be. */
  readonly held: number;
  readonly maxRuns: number;
}

export interface HealthServer {
  readonly port: number;
  close(): Promise<void>;
}

/** @param port 0 for any that is free. @throws HoldfastError `cannot_listen`. */
export async function serveHealth(port: number, health: () => Health): Promise<HealthServer> {
  const server = createServer((request, response) => {
    const isAsked = request.method === "GET" && (request.url === "/healthz" || request.url === "/health");
    if (!isAsked) return void response.writeHead(404).end();
    const told = health();
    const status = told.status === "ok" || told.status === "draining" ? 200 : 503;
    response.writeHead(status, { "content-type": "application/json" }).end(`${JSON.stringify(told)}\n`);
  });
  server.unref();
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) =>
      reject(cannotListen("the runner's health", { host: HOST, port, option: "--health-port" }, error)),
    );
    server.listen(port, HOST, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
