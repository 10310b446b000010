// Real kills of real processes: a runner in the middle of its work, the coordinator under everybody's.

import { writeFileSync } from "node:fs";
import { afterAll, describe, expect, test, vi } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { defined, type JournalRecord } from "@holdfast/core";
import { openRemoteStorage } from "@holdfast/storage/remote";
import { startSession } from "../testing/coordinator-client.ts";
import {
  readLedger,
  startCoordinator,
  startRunnerProcess,
  type CoordinatorProcess,
} from "../testing/fleet-processes.ts";
import { Project } from "../testing/holdfast-process.ts";

/** Writes a line for each attempt of each step, and takes its time in the middle one until a file is there. */
const AGENT = `
import { appendFileSync, existsSync } from "node:fs";
import { defineAgent } from "holdfast";
export default defineAgent({ name: "steps", run: async (ctx, input) => {
  const did = [];
  for (const step of ["one", "two", "three"])
    did.push(await ctx.run(step, async (task) => {
      appendFileSync("ledger", \`\${process.pid} \${task.sessionId} \${step}\\n\`);
      while (step === "two" && !existsSync("go")) await new Promise((resolve) => setTimeout(resolve, 20));
      return step;
    }));
  return did;
} });
`;
/** The shortest useful lease, so that a lost runner is detected while a test waits. */
const SHORT_LEASE_MS = 6_000;
const PATIENCE = { timeout: 60_000, interval: 50 };

const projects: Project[] = [];
afterAll(() => Promise.all(projects.map((project) => project.dispose())));

/** Each test has one of its own: they wait for leases, and do so together. */
function openProject(): Project {
  const project = new Project({ eachAsProcess: true });
  projects.push(project);
  writeFileSync(project.path("agents.ts"), AGENT);
  return project;
}

describe.concurrent("KILL", () => {
  test(
    "sessions of a killed runner continue elsewhere, and no committed task runs again",
    { ...ofCampaign, timeout: 120_000 },
    async () => {
      const project = openProject();
      const coordinator = await startCoordinator(project, { leaseMs: SHORT_LEASE_MS });
      const runners = {
        first: await startRunnerProcess(project, coordinator, "first", ["--agents", "agents.ts"]),
      };
      const ids = await Promise.all([1, 2, 3].map(() => start(coordinator)));
      await vi.waitFor(
        () => expect(readLedger(project).filter(({ step }) => step === "two")).toHaveLength(3),
        PATIENCE,
      );
      const second = await startRunnerProcess(project, coordinator, "second", ["--agents", "agents.ts"]);
      runners.first.kill("SIGKILL");
      await runners.first.finished;
      writeFileSync(project.path("go"), "");
      for (const sessionId of ids) {
        const { status, journal } = await end(coordinator, sessionId);
        expect(status).toBe("completed");
        // Each outcome once; what was under way when its process died is the only thing that was begun twice.
        expect(journal.filter(({ type }) => type === "task_completed")).toHaveLength(3);
        const steps = readLedger(project).filter((line) => line.sessionId === sessionId);
        expect(steps.map(({ step }) => step)).toEqual(["one", "two", "two", "three"]);
        expect(steps[1]!.pid).toBe(String(runners.first.child.pid));
        expect(steps[3]!.pid).not.toBe(steps[0]!.pid);
      }
      second.kill("SIGINT");
      expect(await second.finished).toMatchObject({ code: 130, signal: null });
    },
  );

  test(
    "running sessions continue under the next coordinator, and nothing is done again",
    { ...ofCampaign, timeout: 120_000 },
    async () => {
      const project = openProject();
      const coordinator = await startCoordinator(project);
      const runner = await startRunnerProcess(project, coordinator, "first", ["--agents", "agents.ts", "-v"]);
      const ids = await Promise.all([1, 2].map(() => start(coordinator)));
      await vi.waitFor(
        () => expect(readLedger(project).filter(({ step }) => step === "two")).toHaveLength(2),
        PATIENCE,
      );
      coordinator.process.kill("SIGKILL");
      await coordinator.process.finished;
      await runner.says("trying again");
      writeFileSync(project.path("go"), "");
      const again = await startCoordinator(project, { port: Number(new URL(coordinator.url).port) });
      for (const sessionId of ids) {
        expect(await end(again, sessionId)).toMatchObject({ status: "completed" });
        const steps = readLedger(project).filter((line) => line.sessionId === sessionId);
        expect(steps.map(({ step }) => step)).toEqual(["one", "two", "three"]);
      }
      await runner.says("is back");
      const late = await start(again);
      expect(await end(again, late)).toMatchObject({ status: "completed" });
    },
  );

  test(
    "a third runner does the task of a runner that is killed in it",
    { ...ofCampaign, timeout: 120_000 },
    async () => {
      const project = openProject();
      writeFileSync(
        project.path("asks.ts"),
        `import { defineAgent } from "holdfast";
       export default defineAgent({ name: "asks", run: async (ctx) => ctx.scheduleTask("work", 1) });`,
      );
      writeFileSync(
        project.path("tasks.ts"),
        `import { appendFileSync, existsSync } from "node:fs";
       import { defineTask } from "holdfast";
       export const work = defineTask({ name: "work", run: async (input, task) => {
         appendFileSync("ledger", \`\${process.pid} \${task.sessionId} work\\n\`);
         while (!existsSync("go")) await new Promise((resolve) => setTimeout(resolve, 20));
         return input + 1;
       } });`,
      );
      const coordinator = await startCoordinator(project, { leaseMs: SHORT_LEASE_MS });
      await startRunnerProcess(project, coordinator, "asks", ["--agents", "asks.ts"]);
      const first = await startRunnerProcess(project, coordinator, "does", ["--tasks", "tasks.ts"]);
      const sessionId = await startSession(coordinator, { agent: "asks" });
      await vi.waitFor(() => expect(readLedger(project)).toHaveLength(1), PATIENCE);
      first.kill("SIGKILL");
      await first.finished;
      writeFileSync(project.path("go"), "");
      await startRunnerProcess(project, coordinator, "third", ["--tasks", "tasks.ts"]);
      const { status, output } = await end(coordinator, sessionId);
      expect({ status, output }).toEqual({ status: "completed", output: "2" });
      expect(readLedger(project).map(({ sessionId: of, step }) => [of, step])).toEqual([
        [sessionId, "work"],
        [sessionId, "work"],
      ]);
    },
  );

  test(
    "a session that kills one runner after the other is the only poison, and the others complete",
    { ...ofCampaign, timeout: 240_000 },
    async () => {
      const project = openProject();
      // All begin their work in a runner before the guilty one ends it, twice; from then on nobody waits for
      // anybody.
      writeFileSync(
        project.path("agents.ts"),
        `import { appendFileSync, existsSync, readFileSync } from "node:fs";
         import { defineAgent } from "holdfast";
         const here = () => readFileSync("ledger", "utf8").split("\\n").filter((line) => line.startsWith(process.pid + " "));
         export default defineAgent({ name: "steps", run: async (ctx, isGuilty) => ctx.run("work", async (task) => {
           appendFileSync("ledger", \`\${process.pid} \${task.sessionId} work\\n\`);
           while (!existsSync("go") && !(isGuilty && here().length === 8)) await new Promise((resolve) => setTimeout(resolve, 20));
           if (isGuilty) process.kill(process.pid, "SIGKILL");
           return "done";
         }) });`,
      );
      const coordinator = await startCoordinator(project, { leaseMs: SHORT_LEASE_MS, poisonLosses: 1 });
      const ids = await Promise.all(Array.from({ length: 8 }, (_, i) => start(coordinator, i === 3)));
      const [guilty, innocent] = [ids[3]!, ids.filter((_, i) => i !== 3)];
      for (let died = 0; died < 2; died++) {
        const options = ["--agents", "agents.ts", "--max-runs", "8"];
        const runner = await startRunnerProcess(project, coordinator, `runner-${died}`, options);
        expect((await runner.finished).signal).toBe("SIGKILL");
      }
      writeFileSync(project.path("go"), "");
      const last = ["--agents", "agents.ts", "--max-runs", "8"];
      const { child } = await startRunnerProcess(project, coordinator, "last", last);
      for (const sessionId of innocent)
        expect(await end(coordinator, sessionId)).toMatchObject({ status: "completed", output: '"done"' });
      await vi.waitFor(async () => {
        const { stdout } = await project.start(["show", guilty, "--url", coordinator.url, "--json"], {
          env: { HOLDFAST_TOKEN: coordinator.adminToken },
          stdin: "",
        }).finished;
        expect(JSON.parse(stdout)).toMatchObject({ status: "paused", pauseReason: "poison" });
      }, PATIENCE);
      expect(child.exitCode).toBeNull(); // The guilty one ended a process of its own.
    },
  );

  // Nobody tells the runner anything: only its own clock says that its lease can pass on.
  test(
    "commands of a runner without its coordinator end before they are started again",
    { ...ofCampaign, timeout: 120_000 },
    async () => {
      const project = openProject();
      writeFileSync(
        project.path("agents.ts"),
        `import { spawn } from "node:child_process";
         import { appendFileSync, existsSync } from "node:fs";
         import { defineAgent } from "holdfast";
         export default defineAgent({ name: "steps", run: async (ctx) => ctx.run("shell", async (task) => {
           if (existsSync("go")) return "done";
           const child = spawn("sleep", ["1000"], { signal: task.signal });
           child.on("error", () => {});
           appendFileSync("ledger", \`\${child.pid} \${task.sessionId} shell\\n\`);
           await new Promise((resolve) => child.on("close", resolve));
           throw new Error("it was ended");
         }) });`,
      );
      const coordinator = await startCoordinator(project, { leaseMs: SHORT_LEASE_MS });
      const runner = await startRunnerProcess(project, coordinator, "first", ["--agents", "agents.ts"]);
      const sessionId = await start(coordinator);
      await vi.waitFor(() => expect(readLedger(project)).toHaveLength(1), PATIENCE);
      const pid = Number(readLedger(project)[0]!.pid);
      expect(isAlive(pid)).toBe(true);
      coordinator.process.kill("SIGSTOP");
      await vi.waitFor(() => expect(isAlive(pid)).toBe(false), PATIENCE);
      await runner.says("its lease could not be renewed in time");
      expect(runner.child.exitCode).toBeNull();
      writeFileSync(project.path("go"), "");
      coordinator.process.kill("SIGCONT");
      expect(await end(coordinator, sessionId)).toMatchObject({ status: "completed", output: '"done"' });
    },
  );
});

function start(coordinator: CoordinatorProcess, input?: unknown): Promise<string> {
  return startSession(coordinator, { agent: "steps", ...defined({ input }) });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function end(
  { url, adminToken }: CoordinatorProcess,
  sessionId: string,
): Promise<{ status: string; output: string | undefined; journal: readonly JournalRecord[] }> {
  const storage = openRemoteStorage({ url, token: adminToken });
  try {
    return await vi.waitFor(async () => {
      const session = await storage.reader.session(sessionId);
      expect(session?.endedAt, `${sessionId} is ${session?.status}`).toBeDefined();
      const journal = await storage.reader.journal(sessionId, 0, 1_000);
      return { status: session!.status, output: session!.output, journal };
    }, PATIENCE);
  } finally {
    await storage.close();
  }
}
