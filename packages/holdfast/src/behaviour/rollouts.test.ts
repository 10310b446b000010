// Rollouts: a process is stopped in order at a random moment and started again at once, 200 times by default.
// No step is done twice, and no attempt is counted as lost.
//
// They take minutes, so only the campaign `rollouts` makes them. `orderly-stop.test.ts` and
// `runner-stop.test.ts` have one of each kind.

import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { startSession } from "../testing/coordinator-client.ts";
import { readLedger, startCoordinator, startRunnerProcess } from "../testing/fleet-processes.ts";
import { Project, type HoldfastProcess } from "../testing/holdfast-process.ts";

const ROLLOUTS = Number(process.env["HOLDFAST_ROLLOUTS"] ?? 200);
const SESSIONS = ["a", "b", "c", "d", "e", "f"];
/** The end of a rollout: within a start, within the first steps, or later. */
const WITHIN_MS = 1_000;
const PATIENCE = { timeout: 300_000, interval: 100 };
const TIMEOUT = { timeout: 30_000 + ROLLOUTS * 15_000 };

/** Each step may begin once: a counted attempt would fail its session, and another one stands in the ledger. */
const AGENTS = `import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { defineAgent } from "holdfast";
const EFFECTS = ["once", "keyed", "repeatable", "read"];
export const works = defineAgent({ name: "works", run: async (ctx) => {
  for (let n = 0; ; n++) {
    const isOver = await ctx.run("step", async (task) => {
      appendFileSync("ledger", process.pid + " " + ctx.sessionId + " " + n + "\\n");
      await delay(20 + 60 * (n % 4));
      return existsSync("over");
    }, { effect: EFFECTS[n % 4], retry: { maxAttempts: 1 } });
    if (isOver) return n + 1;
    if (n % 50 === 49) await ctx.sleep(1);
  }
} });
`;
const PROGRAM = `import { createRuntime, openSqliteStorage } from "holdfast";
import { works } from "./agents.ts";
const storage = await openSqliteStorage({ path: "program.db" });
const runtime = createRuntime({ storage, agents: [works] });
process.once("SIGTERM", async () => {
  await runtime.close({ graceMs: 10_000 });
  await storage.close();
  process.exit(0);
});
console.log("started");
const ended = await Promise.all(${JSON.stringify(SESSIONS)}.map(async (sessionId) => {
  const session = await runtime.start(works, undefined, { sessionId });
  return session.settled();
}));
if (ended.every(({ status }) => status === "released")) await new Promise(() => {}); // It is being stopped.
console.log("ended " + JSON.stringify(ended));
await runtime.close();
await storage.close();
`;

let project: Project;
beforeEach(() => {
  project = new Project({ eachAsProcess: true });
  writeFileSync(project.path("agents.ts"), AGENTS);
  writeFileSync(project.path("program.ts"), PROGRAM);
  mkdirSync(project.path("node_modules"));
  symlinkSync(fileURLToPath(new URL("../../", import.meta.url)), project.path("node_modules/holdfast"));
});
afterEach(() => project.dispose());

async function stop(process: HoldfastProcess, expected: number): Promise<void> {
  process.kill("SIGTERM");
  const { code, signal, stderr } = await process.finished;
  expect({ code, signal }, stderr).toEqual({ code: expected, signal: null });
}

/** Every step of every session, in order and once. */
function expectEachOnce(lengths: ReadonlyMap<string, number>): void {
  for (const [session, length] of lengths) {
    const steps = readLedger(project).filter(({ sessionId }) => sessionId === session);
    expect(steps.map(({ step }) => Number(step))).toEqual(Array.from({ length }, (_, n) => n));
  }
}

test(`${ROLLOUTS} rollouts of a program repeat no step`, { ...ofCampaign, ...TIMEOUT }, async () => {
  const start = async () => {
    const program = project.startNode(project.path("program.ts"));
    await program.says("started");
    return program;
  };
  for (let rollout = 0; rollout < ROLLOUTS; rollout++) {
    const program = await start();
    await delay(Math.random() * WITHIN_MS);
    await stop(program, 0);
  }
  writeFileSync(project.path("over"), "");
  const { code, stdout, stderr } = await (await start()).finished;
  expect(code, stderr).toBe(0);
  const ends = JSON.parse(/ended (.*)/.exec(stdout)![1]!) as { status: string; output: number }[];
  expect(ends.map(({ status }) => status)).toEqual(SESSIONS.map(() => "completed"));
  expectEachOnce(new Map(SESSIONS.map((session, i) => [session, ends[i]!.output])));
});

test(`${ROLLOUTS} rollouts within a fleet repeat no step`, { ...ofCampaign, ...TIMEOUT }, async () => {
  let coordinator = await startCoordinator(project);
  const port = Number(new URL(coordinator.url).port);
  const startRunner = (name: string) =>
    startRunnerProcess(project, coordinator, name, ["--agents", "agents.ts", "--grace", "10s"]);
  const names = ["first", "second"] as const;
  const runners = new Map(
    await Promise.all(names.map(async (name) => [name, await startRunner(name)] as const)),
  );
  const sessions = await Promise.all(SESSIONS.map(() => startSession(coordinator, { agent: "works" })));
  for (let rollout = 0; rollout < ROLLOUTS; rollout++) {
    await delay(Math.random() * WITHIN_MS);
    const name = names[rollout % 3 === 0 ? 0 : 1];
    if (rollout % 3 === 2) {
      await stop(coordinator.process, 143);
      coordinator = await startCoordinator(project, { port });
    } else {
      await stop(runners.get(name)!, 143);
      runners.set(name, await startRunner(name));
    }
  }
  writeFileSync(project.path("over"), "");
  const ends = new Map<string, number>();
  for (const session of sessions) {
    const end = await vi.waitFor(async () => {
      const headers = { authorization: `Bearer ${coordinator.adminToken}` };
      const answer = await fetch(`${coordinator.url}/v1/sessions/${session}`, { headers });
      const row = (await answer.json()) as { status: string; output?: unknown };
      expect(["completed", "failed", "paused"]).toContain(row.status);
      return row;
    }, PATIENCE);
    expect(end, JSON.stringify(end)).toMatchObject({ status: "completed" });
    ends.set(session, end.output as number);
  }
  expectEachOnce(ends);
  for (const runner of runners.values()) await stop(runner, 143);
});
