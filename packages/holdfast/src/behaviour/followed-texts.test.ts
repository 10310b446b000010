// The text of a model is shown while it is written, also by a command that follows a session of another process.

import { afterEach, beforeEach, expect, test } from "vitest";
import { startCoordinator, startRunnerProcess } from "../testing/fleet-processes.ts";
import { Project, type HoldfastProcess } from "../testing/holdfast-process.ts";

const TEXT = "The first half, and the end.";
const AGENT = `
import { existsSync } from "node:fs";
import { defineAgent, defineTask } from "holdfast";
const write = defineTask({ name: "write", run: async (_, task) => {
  task.streamToken("The first half, ");
  while (!existsSync("open")) await new Promise((resolve) => setTimeout(resolve, 20));
  task.streamToken("and the end.");
  return "${TEXT}";
} });
export default defineAgent({ name: "writer", tasks: [write], run: async (ctx) => {
  ctx.appendEntry({ role: "user", content: "Write" });
  const text = await ctx.scheduleTask(write, null);
  ctx.appendEntry({ role: "assistant", content: text });
  return text;
} });
`;

let project: Project;
beforeEach(() => {
  project = new Project();
  project.write("agents.ts", AGENT);
});
afterEach(() => project.dispose());

/** A process shows the beginning of the text before its end is written, and then all of it once. */
async function showsTextOnce(...following: readonly HoldfastProcess[]): Promise<void> {
  for (const each of following) {
    await each.says("The first half, ");
    expect(each.stdout).not.toContain("the end");
  }
  project.write("open", "");
  for (const each of following) {
    const { code, stdout, stderr } = await each.finished;
    expect([code, stdout], stderr).toEqual([0, `${TEXT}\n`]);
    expect(stderr.match(/The first half, |and the end\./g), stderr).toEqual([
      "The first half, ",
      "and the end.",
    ]);
  }
}

test("a run at a coordinator shows what its runner's model is writing", { timeout: 60_000 }, async () => {
  const coordinator = await startCoordinator(project);
  await startRunnerProcess(project, coordinator, "one", ["--agents", "agents.ts"]);
  const env = { HOLDFAST_TOKEN: coordinator.adminToken };
  await showsTextOnce(project.start(["run", "--agent", "writer", "--url", coordinator.url], { env }));
});

test("a command that looks on shows what another process writes over the same database", async () => {
  const run = project.start(["run", "agents.ts", "--session", "s"]);
  await run.says("The first half, ");
  const attached = project.start(["attach", "s"]);
  const program = project.start(["attach", "s", "--json"]);
  await program.says('"type":"token"');
  await showsTextOnce(run, attached);
  const { stdout } = await program.finished;
  const lines = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  const tokens = lines.filter(({ type }) => type === "token").map(({ text }) => text);
  expect(TEXT.startsWith(tokens.join(""))).toBe(true);
});
