// A local stack whose runner ends again and again: the supervisor gives up, and says why.

import { rmSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { Project } from "../testing/holdfast-process.ts";
import { LocalStack } from "../testing/local-stack.ts";

let project: Project;
let stack: LocalStack;
beforeEach(() => {
  project = new Project({ eachAsProcess: true });
  stack = new LocalStack(project);
});
afterEach(() => stack.dispose());

// While the file `ends` is there, the agents end the process that loads them.
const ENDING = `
import { existsSync } from "node:fs";
import { defineAgent } from "holdfast";
if (existsSync("ends")) process.exit(1);
export const greet = defineAgent({ name: "greet", run: async (ctx, name) => "hello " + name });
`;

// The pauses of twelve restarts take more than a minute, so only a campaign runs it.
test(
  "a runner that ends twelve times in a row is given up, the status says why, and a later start continues the sessions",
  { ...ofCampaign, timeout: 300_000 },
  async () => {
    writeFileSync(project.path("agents.ts"), ENDING);
    expect(await stack.start()).toMatchObject({ code: 0 });
    const started = await project.run("run", "--agent", "greet", "--input", '"Ada"', "--session", "before");
    expect(started).toMatchObject({ code: 0, stdout: "hello Ada\n" });
    writeFileSync(project.path("ends"), "");
    await stack.kill("runner");
    const { failure } = await stack.until("failed", ({ status }) => status === "failed", 240_000);
    expect(failure).toContain("the runner was restarted too often: exit code 1");

    const status = await project.run("local", "status");
    expect(status).toMatchObject({ code: 1 });
    expect(status.stdout).toMatch(/failure +the runner was restarted too often: exit code 1/);
    expect(stack.processes()).toEqual([]);
    const log = (await project.run("local", "logs", "-n", "1000")).stdout;
    expect(log.match(/the runner has ended/g)).toHaveLength(12);
    expect(log).toContain("something called process.exit(1)");

    // While the cause is there, a start says so at once.
    expect(await stack.start()).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("the runner ended before it was ready"),
    });
    rmSync(project.path("ends"));
    expect(await stack.start()).toMatchObject({ code: 0 });
    expect(await project.run("result", "before")).toMatchObject({ code: 0, stdout: "hello Ada\n" });
    const after = await project.run("run", "--agent", "greet", "--input", '"Bob"');
    expect(after).toMatchObject({ code: 0, stdout: "hello Bob\n" });
  },
);
