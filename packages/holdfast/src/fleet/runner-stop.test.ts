// Ctrl-C at `holdfast runner`, as a process: what it finishes, hands back and leaves behind.

import { existsSync, readdirSync, readlinkSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { startSession } from "../testing/coordinator-client.ts";
import { openFleet, type Fleet } from "../testing/fleet.ts";
import { PATIENCE, sessionBecomes } from "../testing/fleet-sessions.ts";
import { Project, type HoldfastProcess } from "../testing/holdfast-process.ts";

const TIMEOUT = { timeout: 60_000 };

let project: Project;
let fleet: Fleet;
beforeEach(async () => {
  project = new Project({ eachAsProcess: true });
  fleet = await openFleet();
  writeFileSync(
    project.path("agents.ts"),
    `import { existsSync, writeFileSync } from "node:fs";
     import { setTimeout as delay } from "node:timers/promises";
     import { defineAgent } from "holdfast";
     export const works = defineAgent({ name: "works", run: (ctx) => ctx.run("work", async () => {
       writeFileSync("begun", "");
       while (!existsSync("go")) await delay(20);
       return "done";
     }) });
     export const waits = defineAgent({ name: "waits", run: (ctx) => ctx.waitForSignal("go") });`,
  );
});
afterEach(async () => {
  await project.dispose();
  await fleet.close();
});

/** A runner that holds a session that waits, and one at work. */
async function busyRunner() {
  const args = ["runner", "-c", fleet.url, "--agents", "agents.ts", "--grace", "50s"];
  const env = { HOLDFAST_TOKEN: await fleet.token("registration", "r") };
  const runner = project.start(args, { env, stdin: "" });
  await runner.says("Runner started");
  const waiting = await startSession(fleet, { agent: "waits" });
  await sessionBecomes(fleet, waiting, { status: "waiting" });
  const working = await startSession(fleet, { agent: "works" });
  await vi.waitFor(() => expect(existsSync(project.path("begun"))).toBe(true), PATIENCE);
  return { runner, waiting, working };
}

async function stopping(runner: HoldfastProcess): Promise<void> {
  runner.kill("SIGINT");
  await runner.says("once more stops at once");
  await runner.says("Taking no more");
}

async function runners(): Promise<readonly object[]> {
  const headers = { authorization: `Bearer ${fleet.adminToken}` };
  const answer = await fetch(`${fleet.url}/v1/runners`, { headers });
  return ((await answer.json()) as { runners: object[] }).runners;
}

/** Processes that work in the project's folder. */
function processesLeft(): readonly string[] {
  return readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readlinkSync(`/proc/${pid}/cwd`) === project.folder;
    } catch {
      return false; // It has ended, or is another user's.
    }
  });
}

const claimed = (sessionId: string) =>
  fleet.storage.claim({ sessionId, owner: "test", now: Date.now(), leaseMs: 1_000 });

test(
  "Ctrl-C claims nothing more, finishes the task at work, hands back the rest and deregisters",
  { ...ofCampaign, ...TIMEOUT },
  async () => {
    const { runner, waiting, working } = await busyRunner();
    await stopping(runner);
    const late = await startSession(fleet, { agent: "works" });
    writeFileSync(project.path("go"), "");
    expect(await runner.finished).toMatchObject({ code: 130, signal: null });
    await sessionBecomes(fleet, working, { status: "completed", output: '"done"' });
    await sessionBecomes(fleet, late, { status: "submitted" });
    for (const sessionId of [waiting, late])
      expect(await claimed(sessionId)).toMatchObject({ status: "claimed", losses: 0 });
    expect(runner.stderr).toContain("Runner stopped");
    expect(runner.stderr).not.toContain(`Received run run_${late}`);
    expect(await runners()).toEqual([]);
    if (process.platform === "linux") expect(processesLeft()).toEqual([]);
  },
);

test("a second Ctrl-C ends the runner at once; what it held resumes by its lease", TIMEOUT, async () => {
  const { runner, working } = await busyRunner();
  await stopping(runner);
  // The launcher takes two signals within a moment for one press.
  const again = setInterval(() => runner.kill("SIGINT"), 500);
  expect(await runner.finished).toMatchObject({ code: 130, signal: null });
  clearInterval(again);
  expect(runner.stderr).not.toContain("Runner stopped");
  expect(await claimed(working)).toMatchObject({ status: "busy" });
  expect(await runners()).toHaveLength(1);
  if (process.platform === "linux") expect(processesLeft()).toEqual([]);
});
