// Ctrl-C at `holdfast runner`, as a process: what it finishes, hands back and leaves behind.

import { existsSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
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
    `import { appendFileSync, existsSync } from "node:fs";
     import { setTimeout as delay } from "node:timers/promises";
     import { defineAgent } from "holdfast";
     export const works = defineAgent({ name: "works", run: (ctx) => ctx.run("work", async ({ attempt }) => {
       appendFileSync("begun", attempt + "\\n");
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
  await runner.says("1 running step has 50.0 s to end; once more hands it over at once");
  await runner.says("Taking no more");
}

/** The launcher takes two signals within a moment for one press. */
async function again(runner: HoldfastProcess): Promise<void> {
  await delay(500);
  runner.kill("SIGINT");
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
  "Ctrl-C claims nothing more, keeps the outcome of the step at work, hands back its sessions and deregisters",
  { ...ofCampaign, ...TIMEOUT },
  async () => {
    const { runner, waiting, working } = await busyRunner();
    await stopping(runner);
    const late = await startSession(fleet, { agent: "works" });
    writeFileSync(project.path("go"), "");
    expect(await runner.finished).toMatchObject({ code: 130, signal: null });
    await sessionBecomes(fleet, late, { status: "submitted" });
    for (const sessionId of [waiting, working, late])
      expect(await claimed(sessionId)).toMatchObject({ status: "claimed", losses: 0 });
    expect(runner.stderr).toContain("Runner stopped");
    expect(runner.stderr).not.toContain(`Received run run_${late}`);
    expect(await runners()).toEqual([]);
    if (process.platform === "linux") expect(processesLeft()).toEqual([]);
    expect(readFileSync(project.path("begun"), "utf8")).toBe("1\n");
  },
);

test("a second Ctrl-C hands over at once, and the attempt does not count", TIMEOUT, async () => {
  const { runner, waiting, working } = await busyRunner();
  await stopping(runner);
  await again(runner);
  expect(await runner.finished).toMatchObject({ code: 130, signal: null });
  expect(runner.stderr).toContain("Runner stopped");
  for (const sessionId of [waiting, working])
    expect(await claimed(sessionId)).toMatchObject({ status: "claimed", losses: 0 });
  const journal = await fleet.storage.reader.journal(working, 0, 100);
  expect(JSON.stringify(journal)).toMatch(/"type\W+attempt_failed.*handedOver\W+running/);
  expect(await runners()).toEqual([]);
  if (process.platform === "linux") expect(processesLeft()).toEqual([]);
});
