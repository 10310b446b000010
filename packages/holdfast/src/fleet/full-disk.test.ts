// A coordinator whose disk is full (D1): a clear answer, reads go on, and so does everything else once there
// is room, without a restart. On a real disk of a few megabytes, which only root may mount.

import { defined } from "@holdfast/core";
import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { afterEach, beforeEach, expect, test, type TestContext } from "vitest";
import { startSession } from "../testing/coordinator-client.ts";
import { startCoordinator, type CoordinatorProcess } from "../testing/fleet-processes.ts";
import { Project } from "../testing/holdfast-process.ts";

const LARGE = "x".repeat(60_000);

let project: Project;
beforeEach(() => {
  project = new Project({ eachAsProcess: true });
});
afterEach(async () => {
  spawnSync("umount", ["-l", project.path("disk")]);
  await project.dispose();
});

test("D1: on a full disk writes are refused by name, reads succeed, and the coordinator recovers", async (t) => {
  const disk = mountDisk(t, project.path("disk"));
  const coordinator = await startCoordinator(project, { folder: "disk" });
  const begun: string[] = [];
  const refused = await untilRefused(async (n) => {
    const answer = await start(coordinator, n);
    if (answer.status === 201) begun.push((answer.body as { readonly sessionId: string }).sessionId);
    return answer;
  });
  expect(refused).toMatchObject({ status: 503, body: { code: "storage_full", status: 503 } });
  expect(refused.text).not.toMatch(/\bat .+:\d+:\d+|sqlite|\/disk\//i);
  expect(begun.length).toBeGreaterThan(5);
  for (const sessionId of begun) {
    const { status, body } = await ask(coordinator, "GET", `/v1/sessions/${sessionId}`);
    expect({ status, body }).toMatchObject({ status: 200, body: { sessionId, status: "submitted" } });
  }
  const listed = await ask(coordinator, "GET", "/v1/sessions?limit=1000");
  expect((listed.body as { readonly sessions: readonly unknown[] }).sessions).toHaveLength(begun.length);

  disk.grow();
  const late = await startSession(coordinator, { agent: "steps", input: LARGE });
  expect((await ask(coordinator, "GET", `/v1/sessions/${late}`)).status).toBe(200);
  // The refused request had left nothing: its key starts a session now.
  expect((await start(coordinator, begun.length)).status).toBe(201);
  expect(coordinator.process.child.exitCode).toBeNull();
});

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly body: unknown;
}

function start(coordinator: CoordinatorProcess, n: number): Promise<Answer> {
  return ask(coordinator, "POST", "/v1/sessions", { agent: "steps", input: LARGE }, `key-${n}`);
}

async function ask(
  { url, adminToken }: CoordinatorProcess,
  method: string,
  path: string,
  body?: unknown,
  key?: string,
): Promise<Answer> {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${adminToken}`,
      "content-type": "application/json",
      ...defined({ "idempotency-key": key }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, text, body: JSON.parse(text) as unknown };
}

async function untilRefused(begin: (n: number) => Promise<Answer>): Promise<Answer> {
  for (let n = 0; n < 1_000; n++) {
    const answer = await begin(n);
    if (answer.status !== 201) return answer;
  }
  throw new Error("the disk is never full");
}

function mountDisk(t: TestContext, folder: string): { grow(): void } {
  const mount = (...args: string[]): boolean =>
    spawnSync("mount", ["-t", "tmpfs", "-o", ...args, "tmpfs", folder]).status === 0;
  mkdirSync(folder);
  if (!mount("size=3m")) t.skip("only root may mount a disk of its own");
  return { grow: () => expect(mount("remount,size=24m")).toBe(true) };
}
