// watchdog-7: a step blocks the event loop of a runner for longer than a lease, as `execSync` does. Real
// processes.

import { writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { startSession } from "../testing/coordinator-client.ts";
import { readLedger, startCoordinator, startRunnerProcess } from "../testing/fleet-processes.ts";
import { Project } from "../testing/holdfast-process.ts";

/** Long enough for a busy machine: the thread has 19 s for its first renewal. */
const LEASE_MS = 30_000;
const PATIENCE = { timeout: 120_000, interval: 50 };
const AGENTS = `
import { execSync } from "node:child_process";
import { appendFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { defineAgent } from "holdfast";

const note = (ctx, step) => appendFileSync("ledger", process.pid + " " + ctx.sessionId + " " + step + "\\n");
export const build = defineAgent({ name: "build", run: async (ctx, { seconds, waits, timeoutMs }) => {
  await ctx.run("build", async () => {
    note(ctx, "build");
    if (waits) await delay(300);
    execSync("sleep " + seconds);
  }, { timeoutMs });
  return process.pid;
} });
export const payer = defineAgent({ name: "payer", run: async (ctx) => {
  await ctx.run("pay", async () => {
    note(ctx, "pay");
    await delay(1_000);
  }, { effect: "once" });
  return process.pid;
} });
`;

let project: Project;
beforeEach(() => {
  project = new Project({ eachAsProcess: true });
  writeFileSync(project.path("agents.ts"), AGENTS);
});
afterEach(() => project.dispose());

async function openRunner() {
  const coordinator = await startCoordinator(project, { leaseMs: LEASE_MS });
  const runner = await startRunnerProcess(project, coordinator, "first", ["--agents", "agents.ts"]);
  const ask = async (path: string) => {
    const headers = { authorization: `Bearer ${coordinator.adminToken}` };
    return (await fetch(`${coordinator.url}${path}`, { headers })).json();
  };
  const end = (sessionId: string) =>
    vi.waitFor(async () => {
      const session = (await ask(`/v1/sessions/${sessionId}`)) as { status: string; output?: unknown };
      expect(["completed", "failed", "paused"]).toContain(session.status);
      return session;
    }, PATIENCE);
  const start = (agent: string, input: object = {}) => startSession(coordinator, { agent, input });
  return { coordinator, runner, ask, end, start };
}

test(
  "a step that blocks a runner for longer than its lease completes at its first attempt, and its neighbours pay once",
  { ...ofCampaign, timeout: 300_000 },
  async () => {
    const { runner, ask, end, start } = await openRunner();
    const payers = await Promise.all([start("payer"), start("payer")]);
    await vi.waitFor(() => expect(readLedger(project)).toHaveLength(2), PATIENCE);
    const build = await start("build", { seconds: 45 });
    await vi.waitFor(async () => {
      const { runs = [] } = (await ask("/v1/runs")) as { runs?: { sessionId: string; blocked?: string }[] };
      expect(runner.stderr).not.toContain("error[");
      const why = `step "build" of session ${build} blocks the event loop of its runner`;
      expect(runs.map(({ sessionId, blocked }) => [sessionId, blocked])).toContainEqual([payers[0], why]);
    }, PATIENCE);
    const completed = { status: "completed", output: runner.child.pid };
    for (const sessionId of [build, ...payers]) expect(await end(sessionId)).toMatchObject(completed);
    const did = readLedger(project).map(({ sessionId, step }) => `${step} ${sessionId}`);
    expect(did.toSorted()).toEqual([`build ${build}`, ...payers.map((id) => `pay ${id}`)].toSorted());
    expect(runner.child.exitCode).toBeNull();
  },
);

test(
  "a step that blocks beyond its time-out ends its process, and the error names session and task",
  { ...ofCampaign, timeout: 300_000 },
  async () => {
    const { runner, start } = await openRunner();
    const build = await start("build", { seconds: 1_000, waits: true, timeoutMs: 5_000 });
    const { signal, stderr } = await runner.finished;
    expect(signal).toBe("SIGKILL");
    expect(stderr).toContain(`step "build" of session ${build} kept the process busy for more than 5000 ms`);
  },
);
