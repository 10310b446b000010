// `holdfast coordinator` as a process, and a runner by hand, so that a test decides what it does.

import { readFileSync } from "node:fs";
import { BEHAVIOUR_FLAGS } from "@holdfast/core";
import type { HoldfastProcess, Project } from "./holdfast-process.ts";

export interface Coordinator {
  readonly process: HoldfastProcess;
  readonly url: string;
  readonly adminTokenFile: string;
}

/** Over a SQLite file of the project, and on a port that is free, where `args` say nothing else. */
export async function startCoordinator(project: Project, ...args: string[]): Promise<Coordinator> {
  const storage = args.includes("--storage") ? [] : ["--storage", `sqlite:${project.path("fleet.db")}`];
  const process = project.start([
    "coordinator",
    "--json",
    ...storage,
    ...(args.includes("--port") ? [] : ["--port", "0"]),
    ...args,
  ]);
  await process.says('"type":"listening"');
  const { url, adminTokenFile } = JSON.parse(process.stdout.split("\n")[0]!) as Coordinator;
  return { process, url, adminTokenFile };
}

export function tokenIn({ adminTokenFile }: Coordinator): string {
  return readFileSync(adminTokenFile, "utf8").trim();
}

// oxlint-disable-next-line typescript/no-explicit-any -- what a test says of it is its type.
export async function call(url: string, token: string, path: string, body?: unknown): Promise<any> {
  const response = await fetch(`${url}/v1/${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return response.json();
}

export async function registerRunner(coordinator: Coordinator): Promise<{ runnerId: string; token: string }> {
  const { secret } = await call(coordinator.url, tokenIn(coordinator), "tokens", {
    kind: "registration",
    name: "box",
  });
  const agents = [{ name: "greeter" }];
  const hello = {
    protocol: 1,
    name: "box-1",
    hostname: "box",
    behaviourFlags: BEHAVIOUR_FLAGS,
    agents,
    maxRuns: 5,
  };
  return call(coordinator.url, secret, "runners/register", hello);
}

/** The one batch of a session that ends at once. */
export const completing = (sessionId: string, token: number | string, output: unknown) => ({
  changes: [
    {
      type: "commit_batch",
      sessionId,
      token: Number(token),
      firstSeq: 0,
      records: [],
      entries: [],
      consumed: [],
      session: { status: "completed", waits: [], output: JSON.stringify(output) },
    },
  ],
});
