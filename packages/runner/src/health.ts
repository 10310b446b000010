// `serveHealth` answers supervisors over HTTP, on a port of this machine: is this runner alive, and does it
// reach its coordinator?
//
// An HTTP answer proves that the process still works, which a file cannot; supervisors and containers also
// ask by HTTP. The port has no token, so the answer contains nothing else. The port is closed unless an
// option opens it.

import { cannotListen } from "@holdfast/core";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const HOST = "127.0.0.1";

/** The state of a runner. */
export interface Health {
  /** `away`: the coordinator cannot be reached. */
  readonly status: "ok" | "away" | "draining" | "stopped";
  readonly runnerId: string;
  /** The number of sessions held now, and the most there can be. */
  readonly held: number;
  readonly maxRuns: number;
}

export interface HealthServer {
  readonly port: number;
  close(): Promise<void>;
}

/** @param port 0 for any free port. @throws HoldfastError `cannot_listen`. */
export async function serveHealth(port: number, health: () => Health): Promise<HealthServer> {
  const server = createServer((request, response) => {
    const { url = "" } = request;
    const isAsked = request.method === "GET" && ["/healthz", "/health", "/livez"].includes(url);
    if (!isAsked) return void response.writeHead(404).end();
    const report = health();
    // A restart would not bring the coordinator back, so a runner without one is alive.
    const isUseful = report.status === "ok" || report.status === "draining";
    const status = isUseful || url === "/livez" ? 200 : 503;
    response.writeHead(status, { "content-type": "application/json" }).end(`${JSON.stringify(report)}\n`);
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
