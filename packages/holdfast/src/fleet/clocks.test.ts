// Real processes whose wall clocks are set while they work, and one that is stopped and goes on.

import { readFileSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { openRemoteStorage } from "@holdfast/storage/remote";
import { startSession } from "../testing/coordinator-client.ts";
import {
  settableClock,
  startCoordinator,
  startRunnerProcess,
  readLedger,
  type CoordinatorProcess,
} from "../testing/fleet-processes.ts";
import { Project } from "../testing/holdfast-process.ts";

const HOUR_MS = 60 * 60_000;
const SHORT_LEASE_MS = 6_000;
const SLEEP_MS = 400;
const PATIENCE = { timeout: 60_000, interval: 50 };

/** `sleeps` again and again, and says when, half-way once the clock is set; `holds` until a file is there. */
const AGENTS = `
import { appendFileSync, existsSync } from "node:fs";
import { defineAgent } from "holdfast";
const note = (task, step) => appendFileSync("ledger", \`\${process.pid} \${task.sessionId} \${step}\\n\`);
const until = async (file) => { while (!existsSync(file)) await new Promise((resolve) => setTimeout(resolve, 20)); };
export const sleeps = defineAgent({ name: "sleeps", run: async (ctx, input) => {
  const slept = [];
  for (let i = 0; i < 6; i++) {
    const from = ctx.now();
    await ctx.sleep(${SLEEP_MS});
    slept.push([from, ctx.now()]);
    await ctx.run("step", async (task) => { note(task, i); if (i === 2) await until("set"); });
    // A runner hears what time it is with its next renewal at the latest.
    if (input === "until set" && i === 4) while (ctx.now() - slept[0][0] < ${HOUR_MS / 2}) await ctx.sleep(100);
  }
  return slept;
} });
export const holds = defineAgent({ name: "holds", run: async (ctx) => {
  appendFileSync("called", \`\${process.pid}\\n\`);
  await ctx.run("hold", async (task) => { note(task, "hold"); await until("go"); });
} });
export const lapses = defineAgent({ name: "lapses", run: async (ctx) => {
  await Promise.all(["one", "two"].map((step) => ctx.run(step, async (task) => {
    note(task, step + "-begun");
    await until("go");
    if (!task.signal.aborted) note(task, step + "-effect");
  })));
} });
`;

let project: Project;
beforeEach(() => {
  project = new Project({ eachAsProcess: true });
  writeFileSync(project.path("agents.ts"), AGENTS);
});
afterEach(() => project.dispose());

test(
  "D3, S3: clocks an hour off, and set by an hour: no timer is early, no lease is lost, nothing runs twice",
  { ...ofCampaign, timeout: 120_000 },
  async () => {
    const clocks = {
      coordinator: settableClock(project, "coordinator"),
      fast: settableClock(project, "fast"),
      slow: settableClock(project, "slow"),
    };
    clocks.fast.set(HOUR_MS);
    clocks.slow.set(-HOUR_MS);
    const coordinator = await startCoordinator(project, {
      leaseMs: SHORT_LEASE_MS,
      clock: clocks.coordinator,
    });
    const agents = ["--agents", "agents.ts"];
    await startRunnerProcess(project, coordinator, "fast", agents, clocks.fast);
    await startRunnerProcess(project, coordinator, "slow", agents, clocks.slow);
    const sleeping = await Promise.all(
      [1, 2, 3, 4].map(() => startSession(coordinator, { agent: "sleeps", input: "until set" })),
    );
    const held = await Promise.all([1, 2].map(() => startSession(coordinator, { agent: "holds" })));

    await steps(sleeping.length + held.length);
    const before = await timeOf(coordinator);
    clocks.coordinator.set(HOUR_MS);
    await vi.waitFor(
      async () => expect(await timeOf(coordinator)).toBeGreaterThan(before + HOUR_MS / 2),
      PATIENCE,
    );
    writeFileSync(project.path("set"), "");
    await steps(4 * sleeping.length + held.length);
    clocks.coordinator.set(-HOUR_MS);
    clocks.fast.set(-HOUR_MS);
    clocks.slow.set(HOUR_MS);
    const ends = await Promise.all(sleeping.map((sessionId) => end(coordinator, sessionId)));
    writeFileSync(project.path("go"), "");
    for (const sessionId of held) expect((await end(coordinator, sessionId)).status).toBe("completed");

    for (const { status, output, createdAt } of ends) {
      expect(status).toBe("completed");
      const slept = JSON.parse(output!) as readonly (readonly [number, number])[];
      for (const [from, to] of slept) expect(to - from).toBeGreaterThanOrEqual(SLEEP_MS);
      // By the coordinator's time, whatever the runner's clock says.
      expect(Math.abs(slept[0]![0] - createdAt)).toBeLessThan(HOUR_MS / 2);
      // The hour that the coordinator's clock was set forward by has passed, and none of it comes again.
      const [first, last] = [slept[0]![0], slept.at(-1)![1]];
      expect(last - first).toBeGreaterThanOrEqual(HOUR_MS);
      expect(slept.flat()).toEqual(slept.flat().toSorted((a, b) => a - b));
    }
    const once = sleeping.flatMap((id) => [0, 1, 2, 3, 4, 5].map((i) => `${id} ${i}`));
    once.push(...held.map((id) => `${id} hold`));
    expect(
      readLedger(project)
        .map(({ sessionId, step }) => `${sessionId} ${step}`)
        .sort(),
    ).toEqual(once.sort());
  },
);

// Its poll is answered while it stands still, and the answer is the first thing it sees when it goes on.
test(
  "O1, given-claims-1: a runner that was stopped begins nothing under a claim that passed on",
  { ...ofCampaign, timeout: 120_000 },
  async () => {
    const coordinator = await startCoordinator(project, { leaseMs: SHORT_LEASE_MS });
    const agents = ["--agents", "agents.ts", "-v"];
    writeFileSync(project.path("set"), "");
    const startedAt = performance.now();
    const stopped = await startRunnerProcess(project, coordinator, "stopped", [
      ...agents,
      "--label",
      "at=here",
    ]);
    const registeredWithinMs = performance.now() - startedAt;
    await vi.waitFor(async () => expect(await pollsWaiting(coordinator)).toBe(1), PATIENCE);
    stopped.kill("SIGSTOP");
    const sessionId = await startSession(coordinator, { agent: "holds" });
    await startRunnerProcess(project, coordinator, "other", agents);
    await steps(1);
    // The runner's estimate of the coordinator's time may lag by the duration of its registration.
    await new Promise((resolve) => setTimeout(resolve, registeredWithinMs));
    stopped.kill("SIGCONT");
    const later = await startSession(coordinator, { agent: "sleeps", demands: { at: "here" } });
    expect((await end(coordinator, later)).status).toBe("completed");
    writeFileSync(project.path("go"), "");
    expect((await end(coordinator, sessionId)).status).toBe("completed");
    expect(readLedger(project).filter((line) => line.sessionId === sessionId)).toHaveLength(1);
    const called = readFileSync(project.path("called"), "utf8").trimEnd().split("\n");
    expect(called).not.toContain(String(stopped.child.pid));
  },
);

// The timers of its tasks are due before the timer of its lease is, so they come first when it continues.
test(
  "O10: a runner that was stopped past its lease has no effect for a session that another runner took over",
  { ...ofCampaign, timeout: 120_000 },
  async () => {
    const coordinator = await startCoordinator(project, { leaseMs: SHORT_LEASE_MS });
    const agents = ["--agents", "agents.ts", "-v"];
    writeFileSync(project.path("set"), "");
    const stopped = await startRunnerProcess(project, coordinator, "stopped", [
      ...agents,
      "--label",
      "at=here",
    ]);
    const sessionId = await startSession(coordinator, { agent: "lapses" });
    await steps(2);
    stopped.kill("SIGSTOP");
    await startRunnerProcess(project, coordinator, "other", agents);
    await steps(4);
    writeFileSync(project.path("go"), "");
    expect((await end(coordinator, sessionId)).status).toBe("completed");
    stopped.kill("SIGCONT");
    const later = await startSession(coordinator, { agent: "sleeps", demands: { at: "here" } });
    expect((await end(coordinator, later)).status).toBe("completed");
    const ledger = readLedger(project);
    const ofStopped = ledger.filter(({ pid }) => pid === String(stopped.child.pid));
    const bySession = (lines: typeof ledger) =>
      lines.filter((line) => line.sessionId === sessionId).map(({ step }) => step);
    expect(bySession(ofStopped)).toEqual(["one-begun", "two-begun"]);
    expect(bySession(ledger).filter((step) => step.endsWith("-effect"))).toEqual([
      "one-effect",
      "two-effect",
    ]);
  },
);

async function pollsWaiting({ url, adminToken }: CoordinatorProcess): Promise<number> {
  const headers = { authorization: `Bearer ${adminToken}` };
  const text = await (await fetch(`${url}/metrics`, { headers })).text();
  return Number(/^holdfast_polls_waiting (\d+)/m.exec(text)?.[1]);
}

async function steps(count: number): Promise<void> {
  await vi.waitFor(() => expect(readLedger(project).length).toBeGreaterThanOrEqual(count), PATIENCE);
}

/** As it wrote it down. */
async function timeOf({ url, adminToken }: CoordinatorProcess): Promise<number> {
  const storage = openRemoteStorage({ url, token: adminToken });
  try {
    return (await storage.reader.document("coordinator", "time"))!.updatedAt;
  } finally {
    await storage.close();
  }
}

async function end(
  { url, adminToken }: CoordinatorProcess,
  sessionId: string,
): Promise<{ status: string; output: string | undefined; createdAt: number }> {
  const storage = openRemoteStorage({ url, token: adminToken });
  try {
    return await vi.waitFor(async () => {
      const session = await storage.reader.session(sessionId);
      expect(session?.endedAt, `${sessionId} is ${session?.status}`).toBeDefined();
      return { status: session!.status, output: session!.output, createdAt: session!.createdAt };
    }, PATIENCE);
  } finally {
    await storage.close();
  }
}
