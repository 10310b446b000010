// Orderly stops of commands that run steps, as processes: they drain first, and hand over at the end of the
// grace.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { Project, type HoldfastProcess } from "../testing/holdfast-process.ts";

const PATIENCE = { timeout: 30_000 };
const TIMEOUT = { timeout: 60_000 };

let project: Project;
beforeEach(() => {
  project = new Project({ eachAsProcess: true });
  writeFileSync(
    project.path("agent.ts"),
    `import { appendFileSync, existsSync } from "node:fs";
     import { setTimeout as delay } from "node:timers/promises";
     import { defineAgent } from "holdfast";
     export default defineAgent({ name: "works", run: async (ctx) => {
       const first = await ctx.run("first", async ({ attempt }) => {
         appendFileSync("begun", "first " + attempt + "\\n");
         while (!existsSync("go")) await delay(20);
         return "done";
       }, { retry: { maxAttempts: 1 } });
       await ctx.run("second", ({ attempt }) => appendFileSync("begun", "second " + attempt + "\\n"));
       return first;
     } });`,
  );
});
afterEach(() => project.dispose());

const begun = (): readonly string[] =>
  existsSync(project.path("begun")) ? readFileSync(project.path("begun"), "utf8").trim().split("\n") : [];
const steps = (n: number) => vi.waitFor(() => expect(begun()).toHaveLength(n), PATIENCE);
const finish = (): void => writeFileSync(project.path("go"), "");

async function working(...words: string[]): Promise<HoldfastProcess> {
  const started = project.start(words);
  await steps(1);
  return started;
}

test("the stop says of a step that happens once that its effect is uncertain", TIMEOUT, async () => {
  const agent = readFileSync(project.path("agent.ts"), "utf8");
  writeFileSync(
    project.path("agent.ts"),
    agent.replace("{ retry: { maxAttempts: 1 } }", '{ effect: "once" }'),
  );
  const run = await working("run", "agent.ts", "--session", "s", "--grace", "10ms");
  run.kill("SIGINT");
  const { stderr } = await run.finished;
  expect(stderr).toMatch(
    /✗ first #0 +failed \(not delivered yet\): .*nobody knows whether its effect has happened/,
  );
});

const DRAINS = "stopping: 1 running step has 25.0 s to end; once more hands it over at once";

test(
  "`run` lets its step end after SIGTERM, begins no other, and `resume` does not repeat it",
  TIMEOUT,
  async () => {
    const run = await working("run", "agent.ts", "--session", "s");
    run.kill("SIGTERM");
    await run.says(DRAINS);
    finish();
    const { code, stderr } = await run.finished;
    expect(code, stderr).toBe(143);
    expect(stderr).toContain("continue with: holdfast resume s");
    expect(begun()).toEqual(["first 1"]);
    expect(await project.run("resume", "s")).toMatchObject({ code: 0, stdout: "done\n" });
    expect(begun()).toEqual(["first 1", "second 1"]);
  },
);

test("a second Ctrl-C hands the step over at once, and its attempt does not count", TIMEOUT, async () => {
  const run = await working("run", "agent.ts", "--session", "s");
  run.kill("SIGINT");
  await run.says(DRAINS);
  await delay(500); // Two presses, not one that arrived twice.
  run.kill("SIGINT");
  const { code, stderr } = await run.finished;
  expect(code, stderr).toBe(130);
  expect(stderr).toMatch(/first #0 +handed over: its process was stopped before it ended/);
  expect(stderr).not.toContain("paused the session");
  expect(stderr).toContain("continue with: holdfast resume s");
  finish();
  expect(await project.run("resume", "s")).toMatchObject({ code: 0, stdout: "done\n" });
  expect(begun()).toEqual(["first 1", "first 2", "second 1"]);
  // Each beginning is one attempt, wherever it is shown.
  const { tasks } = await project.json<{ tasks: readonly { attempts: number }[] }>("show", "s", "--json");
  expect(tasks.map(({ attempts }) => attempts)).toEqual([2, 1]);
  const { stdout: log } = await project.run("logs", "s");
  expect(log).toMatch(/first #0 +attempt 2 begins/);
  expect(log).not.toContain("was lost");
  const { stdout: trace } = await project.run("trace", "s", "--json");
  expect([...trace.matchAll(/"attempt":(\d+)/g)].map(([, attempt]) => attempt)).toEqual(["1", "2", "1"]);
  expect(trace).not.toContain('"lost"');
});

test(
  "Ctrl-C has no effect while a step blocks the process; SIGKILL loses only the attempt, which is repeated",
  TIMEOUT,
  async () => {
    const agent = readFileSync(project.path("agent.ts"), "utf8");
    const blocks = `execSync("while [ ! -e go ]; do sleep 0.02; done")`;
    writeFileSync(
      project.path("agent.ts"),
      `import { execSync } from "node:child_process";\n${agent
        .replace('while (!existsSync("go")) await delay(20)', blocks)
        .replace(", { retry: { maxAttempts: 1 } }", "")}`,
    );
    const first = await working("run", "agent.ts", "--session", "s");
    first.kill("SIGINT");
    await delay(500);
    expect(first.stderr).not.toContain("stopping");
    first.kill("SIGKILL");
    expect((await first.finished).signal).toBe("SIGKILL");

    const second = project.start(["resume", "s"]);
    await steps(2);
    finish();
    expect(await second.finished).toMatchObject({ code: 0, stdout: "done\n" });
    expect(begun()).toEqual(["first 1", "first 2", "second 1"]);
  },
);

test(
  "a step is not charged an attempt by nine rollouts within it",
  { ...ofCampaign, timeout: 180_000 },
  async () => {
    for (let rollout = 1; rollout < 10; rollout++) {
      const command = rollout === 1 ? ["run", "agent.ts", "--session", "s"] : ["resume", "s"];
      const started = project.start([...command, "--grace", "10ms"]);
      await steps(rollout);
      started.kill("SIGTERM");
      expect((await started.finished).code).toBe(143);
    }
    finish();
    expect(await project.run("resume", "s")).toMatchObject({ code: 0, stdout: "done\n" });
    expect(begun()).toHaveLength(11);
  },
);

test.each([
  ["schedule run", ["schedule", "run"]],
  ["runner --ipc", ["runner", "--ipc", "--agents", "agent.ts"]],
])("`%s` drains at SIGTERM as well", { ...ofCampaign, ...TIMEOUT }, async (_, words) => {
  const first = await working("run", "agent.ts", "--session", "s", "--grace", "10ms");
  first.kill("SIGTERM");
  await first.finished;
  if (words[0] === "schedule")
    await project.run("schedule", "add", "0 0 1 1 *", "--run", "agent.ts", "--id", "keeps-the-agent");
  const started = project.start(words);
  await steps(2);
  started.kill("SIGTERM");
  await started.says(DRAINS);
  finish();
  expect((await started.finished).code).toBe(143);
  expect(begun()).toEqual(["first 1", "first 2"]);
});
