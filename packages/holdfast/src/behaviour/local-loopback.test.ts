// LS1: the local stack from its start to its stop on a machine without a network. A key is asked for on a
// terminal, an agent starts a child that uses it, and the child's end reaches the agent.

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { stripVTControlCharacters } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";
import { CanaryScan } from "@holdfast/testkit";
import { Project } from "../testing/holdfast-process.ts";
import { LocalStack } from "../testing/local-stack.ts";

let project: Project;
let stack: LocalStack;
beforeEach(() => {
  project = new Project({ eachAsProcess: true });
  stack = new LocalStack(project);
});
afterEach(() => stack.dispose());

const AGENTS = `
import { createHash } from "node:crypto";
import { defineAgent, defineTask } from "holdfast";
const sign = defineTask({ name: "sign", secrets: ["API_KEY"], run: (text, task) => {
  const key = task.secret("API_KEY");
  return { text, leaked: key, sha256: createHash("sha256").update(key).digest("hex") };
} });
export const child = defineAgent({ name: "child", secrets: ["API_KEY"], tasks: [sign], run: (ctx, text) => ctx.scheduleTask(sign, text) });
export const parent = defineAgent({ name: "parent", agents: [child], run: async (ctx, text) =>
  ({ fromChild: await ctx.waitForChild(ctx.spawnAgent(child, text)) }) });
`;

const LINES = `
ip -o link | wc -l
script -qefc "holdfast up --agents agents.ts --port 0" /dev/null
echo "started"
exec < /dev/null
holdfast run --agent parent --input '"work"'
holdfast local status
holdfast local stop
`;

test("LS1: start, key, agent, child, callback and stop need no network but the loopback", async (t) => {
  const isPossible = process.getuid?.() === 0 && spawnSync("unshare", ["-n", "ip", "link"]).status === 0;
  if (!isPossible) t.skip("only root may make a network namespace");
  writeFileSync(project.path("agents.ts"), AGENTS);
  const scan = new CanaryScan();
  const user = project.startOnLoopback(LINES);
  await user.says("Enter API_KEY: ");
  user.child.stdin.write(`${scan.secret}\r`);
  const { code, stdout, stderr } = await user.finished;
  expect({ code, stderr }).toMatchObject({ code: 0 });
  expect(stdout).toMatch(/^1\n/); // The loopback alone.
  const sha256 = createHash("sha256").update(scan.secret).digest("hex");
  const output = { fromChild: { text: "work", leaked: "[secret]", sha256 } };
  expect(stripVTControlCharacters(stdout).replaceAll("\r", "")).toContain(
    JSON.stringify(output, undefined, 2),
  );
  expect(stdout).toMatch(/runner +ready/);
  expect(stack.processes()).toEqual([]);
  scan.search("the terminal", stdout + stderr);
  scan.searchFolder(project.folder);
  expect(scan.found).toEqual([]);
});
