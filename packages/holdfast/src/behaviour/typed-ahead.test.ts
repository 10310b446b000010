// Lines that a person types on a terminal before there is something to answer.

import { afterEach, beforeEach, expect, test } from "vitest";
import { ExternalProject } from "../testing/external-project.ts";

const ASKS = `import { defineAgent } from "holdfast";
export default defineAgent({ name: "asks", run: async (ctx) => ({ answer: await ctx.requestInput({ prompt: "Delete it?" }) }) });
`;

let project: ExternalProject;
beforeEach(() => void (project = new ExternalProject()));
afterEach(() => project.dispose());

test("a line that was typed before the question stood there does not answer it, and one after it does", async () => {
  project.write("asks.ts", ASKS);
  expect((await project.run("run", "asks.ts", "--session", "one", "--park")).code).toBe(0);
  const resumed = project.startOnTerminal(["resume", "one"]);
  resumed.child.stdin.write("y\ny\n");
  await resumed.says(/typed before the question stood there[^]*typed before the question stood there/);
  expect((await project.json<{ status: string }>("show", "one")).status).toBe("input_required");
  // A busy machine may still be reading, and says so again.
  const again = setInterval(() => resumed.child.stdin.write("n\n"), 1_000);
  await resumed.says(/"approved": false/).finally(() => clearInterval(again));
  const { code, stdout } = await resumed.finished;
  expect(code, stdout).toBe(0);
});

test("a line for a coding agent that asks nothing is not stored, and the note says how to send a message", async () => {
  const { PATH } = project.environment();
  const running = project.shellOnTerminal(
    `PATH='${PATH}'; holdfast run claude-code "gate:1 ask:a.txt" --session s; echo code $?`,
    project.environment(),
  );
  await running.says("gate:1 ask:a.txt");
  await expect
    .poll(() => project.run("show", "s").then(({ stdout }) => stdout), { timeout: 20_000 })
    .toContain("working");
  running.child.stdin.write("y\n");
  await running.says("holdfast message s TEXT");
  project.write("open-1", "");
  await running.says("type y or n (a reason may follow)");
  running.child.stdin.write("n\n");
  await running.says("code 0");
  expect((await project.run("logs", "s", "--json")).stdout).not.toContain('"name":"input"');
  expect(project.answers().join()).toContain('"behavior":"deny"');
});
