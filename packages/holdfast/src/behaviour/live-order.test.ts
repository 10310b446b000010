// The order in which `run` shows an agent at work: its text after its work, and its answer once.

import { afterEach, beforeEach, expect, test } from "vitest";
import { Project } from "../testing/holdfast-process.ts";

/** Its task says something after it has reported what it did, and the session records the report later. */
const TALKS = `import { defineAgent, defineTask } from "holdfast";
import { setTimeout as delay } from "node:timers/promises";
const work = defineTask({ name: "work", run: async (_input, task) => {
  await task.signalSession("external_agent.report", 1);
  task.streamToken("The text ");
  task.streamToken("is whole.");
  await delay(600);
  return "The text is whole.";
} });
export default defineAgent({ name: "talks", tasks: [work], run: async (ctx) => {
  const working = ctx.scheduleTask(work, null);
  await ctx.sleep(300);
  await ctx.waitForSignal("external_agent.report");
  ctx.appendEntry({ role: "tool", content: "the result" });
  const said = await working;
  ctx.appendEntry({ role: "assistant", content: said });
  return said;
} });
`;

let project: Project;
beforeEach(() => {
  project = new Project();
  project.write("talks.ts", TALKS);
});
afterEach(() => project.dispose());

test("a text is shown after the reports that came before it, and in one piece", async () => {
  const { code, stdout, stderr } = await project.run("run", "talks.ts");
  expect([code, stdout], stderr).toEqual([0, "The text is whole.\n"]);
  expect(stderr).toMatch(/tool: the result\n {2}work:\nThe text is whole\.\n/);
});

test("on a terminal the answer is shown once, and a command that reads it gets it all the same", async () => {
  const { code, stdout } = await project.startOnTerminal(["run", "talks.ts"]).finished;
  expect(code).toBe(0);
  expect(stdout.match(/The text is whole\./g)).toHaveLength(1);
  const piped = await project.shellOnTerminal("holdfast run talks.ts | tr a-z A-Z").finished;
  expect(piped.stdout).toContain("THE TEXT IS WHOLE.");
});
