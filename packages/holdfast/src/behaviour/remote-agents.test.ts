// Remote agents (A2A) and agents behind a tool of an MCP server as durable sessions, by the real command.

import { chmodSync, writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { startA2aServer, type A2aServer } from "@holdfast/testkit";
import { ExternalProject } from "../testing/external-project.ts";

const TOKEN = "canary-a2a-token";
let project: ExternalProject;
let remote: A2aServer;
beforeEach(async () => {
  project = new ExternalProject();
  remote = await startA2aServer(TOKEN);
  writeFileSync(
    project.path("remote.ts"),
    `import { a2aAgent, externalAgent } from "@holdfast/programs";
const remote = a2aAgent({ name: "remote", url: "${remote.url}", token: "${TOKEN}", pollMs: 50 });
export default externalAgent(remote, { folder: process.cwd(), permissionModes: ["default"] });
`,
  );
});
afterEach(async () => {
  await project.dispose();
  await remote.close();
});

const run = (...args: string[]) => project.startHere(args).finished;
const inboxSays = async (text: string): Promise<void> => {
  while (!(await run("inbox")).stdout.includes(text)) await delay(50);
};

test(
  "a remote task goes on over kill -9, and its result is taken without a second message",
  ofCampaign,
  async () => {
    const first = project.startHere(["run", "remote.ts", "hang", "--session", "s"]);
    await first.says("SendMessage");
    while (remote.messages.length === 0) await delay(20);
    await first.says("▸"); // The id of the task is stored with the next report.
    await delay(500);
    first.kill("SIGKILL");
    await first.finished;
    remote.complete("It is done.");
    const { code, stdout, stderr } = await run("resume", "s");
    expect(code, stderr).toBe(0);
    expect(stdout).toBe("It is done.\n");
    expect(remote.messages).toEqual(["hang"]);
    expect(JSON.stringify(await project.shown("s"))).not.toContain(TOKEN);
  },
);

test(
  "O15: a remote task is not touched when another process ends that owned the database",
  ofCampaign,
  async () => {
    writeFileSync(
      project.path("wait.ts"),
      `import { defineAgent } from "holdfast";
export default defineAgent({ name: "wait", run: (ctx) => ctx.waitForSignal("go") });
`,
    );
    const owner = project.startHere(["run", "wait.ts", "--session", "first"]);
    await owner.says("waits for signal");
    const second = project.startHere(["run", "remote.ts", "hang", "--session", "s"]);
    while (remote.states().length === 0) await delay(20);
    owner.kill("SIGKILL");
    await owner.finished;
    expect((await run("signal", "first", "go")).code).toBe(0); // Through the next owner.
    remote.complete("It is done.");
    expect(await second.finished).toMatchObject({ code: 0, stdout: "It is done.\n" });
    expect(remote.messages).toEqual(["hang"]);
    expect(remote.states()).toEqual(["TASK_STATE_COMPLETED"]);
  },
);

test("equal texts in one conversation are each a message", ofCampaign, async () => {
  const input = JSON.stringify({ text: "again", conversation: true });
  const first = await run("run", "remote.ts", "--input", input, "--park", "--session", "s");
  expect(first.code, first.stderr).toBe(0);
  for (const count of [2, 3]) {
    expect((await run("signal", "s", "next_input", '"again"')).code).toBe(0);
    expect((await run("resume", "s", "--park")).code).toBe(0);
    expect(remote.messages).toEqual(Array.from({ length: count }, () => "again"));
  }
});

test(
  "a result that is too long is cut with a note, and an id that is too long is refused",
  ofCampaign,
  async () => {
    const long = await run("run", "remote.ts", "long-text", "--session", "t");
    expect(long.code, long.stderr).toBe(0);
    expect(long.stdout.length).toBeLessThan(2_000_000);
    expect(long.stdout).toMatch(/^A+\n\(\d+ more characters are not recorded\)\n$/);
    const id = await run("run", "remote.ts", "long-id", "--session", "i");
    expect(id.code).toBe(1);
    expect(id.stderr).toContain("the id of a task or its context has more than 1000 characters");
  },
);

test(
  "a question of a remote agent is one of the session, and its answer continues the task over kill -9",
  ofCampaign,
  async () => {
    const first = project.startHere(["run", "remote.ts", "question", "--session", "s"]);
    await inboxSays("remote asks: Which colour?");
    first.kill("SIGKILL");
    await first.finished;
    expect((await run("answer", "s", '"blue"')).code).toBe(0);
    const { code, stdout, stderr } = await run("resume", "s");
    expect(code, stderr).toBe(0);
    expect(stdout).toBe("Done after an answer.\n");
    expect(remote.messages).toHaveLength(2);
    expect(remote.messages[1]).toContain("Its result: blue");
  },
);

test("a session that is cancelled after kill -9 cancels its remote task on its next drive", async () => {
  const first = project.startHere(["run", "remote.ts", "hang", "--session", "s"]);
  while (remote.states().length === 0) await delay(20);
  await delay(500); // The id of the task is stored with the next report.
  first.kill("SIGKILL");
  await first.finished;
  expect((await run("cancel", "s")).stderr).toContain("no process runs it");
  await run("resume", "s");
  expect((await project.shown("s")).status).toBe("cancelled");
  expect(remote.states()).toEqual(["TASK_STATE_CANCELED"]);
});

test("a question of an MCP server during its call is one of the session", ofCampaign, async () => {
  const source = fileURLToPath(new URL("../../../programs/src/testing/fake-mcp-agent.mjs", import.meta.url));
  writeFileSync(project.path("agent"), `#!/bin/sh\nexec "${process.execPath}" "${source}"\n`);
  chmodSync(project.path("agent"), 0o755);
  writeFileSync(
    project.path("tool.ts"),
    `import { externalAgent, mcpToolAgent } from "@holdfast/programs";
const folder = process.cwd();
const tool = mcpToolAgent({ name: "tool", command: ["./agent"], tool: "begin", folder });
export default externalAgent(tool, { folder, permissionModes: ["default"] });
`,
  );
  const running = project.startHere(["run", "tool.ts", "ask:a.txt", "--session", "s"]);
  await running.says("May I write?");
  // The question is for no call whose input a person could change.
  const withInput = await run("approve", "s", "--input", "{}");
  expect(withInput.code).toBe(2);
  expect(withInput.stderr).toContain("takes no input for a call: May I write?");
  expect((await run("approve", "s")).code).toBe(0);
  const { code, stdout, stderr } = await running.finished;
  expect(code, stderr).toBe(0);
  expect(stdout).toBe("Done: ask:a.txt\n");
  expect(project.lines("a.txt")).toEqual(["x"]);
});
