// Agents that profiles of the user describe, by the real command: remote ones (A2A), tools of MCP servers,
// and programs of the user.

import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { startA2aServer, startScriptedModelServer, type A2aServer } from "@holdfast/testkit";
import { ExternalProject } from "../testing/external-project.ts";

const TOKEN = "canary-a2a-token";
const env = { TRANSLATOR_TOKEN: TOKEN };
let project: ExternalProject;
let remote: A2aServer;
beforeEach(async () => {
  project = new ExternalProject();
  remote = await startA2aServer(TOKEN);
  profile(
    "translator",
    `description: Translates.\na2a: { url: "${remote.url}", tokenVariable: TRANSLATOR_TOKEN }\n`,
  );
});
afterEach(async () => {
  await project.dispose();
  await remote.close();
});

/** The home of these tests is the project. */
function profile(name: string, text: string): void {
  mkdirSync(project.path(".holdfast/profiles"), { recursive: true });
  writeFileSync(project.path(`.holdfast/profiles/${name}.yaml`), text, { mode: 0o600 });
}

const run = (...args: string[]) => project.startHere(args, env).finished;
const inboxSays = async (text: string): Promise<void> => {
  while (!(await run("inbox")).stdout.includes(text)) await delay(50);
};

test(
  "a remote agent of a profile runs by its name, and the doctor and the list name it",
  ofCampaign,
  async () => {
    const { code, stdout, stderr } = await run("run", "translator", "hello", "--session", "s");
    expect(code, stderr).toBe(0);
    expect(stdout).toBe("Done: hello\n");
    expect((await run("agents", "list")).stdout).toMatch(/translator +loaded +external .*Translates\./);
    // A check of the doctor ends after 3 s, also on a machine that is busy.
    while (!(await run("doctor")).stdout.includes("translator 2.0.0 (resumes sessions")) await delay(50);
    const without = await project.startHere(["run", "translator", "hello"]).finished;
    expect(without.code).toBe(3);
    expect(without.stderr).toContain("set TRANSLATOR_TOKEN");
  },
);

test("an agent file starts the agent of a profile as its child", ofCampaign, async () => {
  const server = await startScriptedModelServer({
    script: ({ messages }) =>
      messages.some(({ role }) => role === "assistant")
        ? { text: "It is translated." }
        : { toolCalls: [{ name: "delegate", input: { agent: "translator", input: "hello" } }] },
  });
  try {
    writeFileSync(
      project.path("lead.md"),
      "---\nname: lead\ndescription: Leads.\nholdfast:\n  agents: [translator]\n---\nLead.\n",
    );
    const given = { ...env, HOLDFAST_SCRIPTED_MODEL_URL: server.url };
    const { code, stderr } = await project.startHere(["run", "lead.md", "Go."], given).finished;
    expect(code, stderr).toBe(0);
    expect(remote.messages).toEqual(["hello"]);
  } finally {
    await server.close();
  }
});

test(
  "a session that is cancelled while its remote task waits for an answer cancels the task",
  ofCampaign,
  async () => {
    const first = project.startHere(["run", "translator", "question", "--session", "s"], env);
    await inboxSays("translator asks: Which colour?");
    const { code, stderr } = await run("cancel", "s");
    expect(code, stderr).toBe(0);
    await first.finished;
    expect(remote.states()).toEqual(["TASK_STATE_CANCELED"]);
  },
);

test(
  "a tool of an MCP server, and a program of the user, are agents by their profiles",
  ofCampaign,
  async () => {
    const source = fileURLToPath(
      new URL("../../../programs/src/testing/fake-mcp-agent.mjs", import.meta.url),
    );
    writeFileSync(project.path("bin/server"), `#!/bin/sh\nexec "${process.execPath}" "${source}"\n`);
    chmodSync(project.path("bin/server"), 0o755);
    profile("tool", "mcp: { command: [server], tool: begin }\n");
    profile("mine", "custom: { command: [lines], protocol: lines, resumes: true }\n");
    for (const name of ["tool", "mine"]) {
      const { code, stdout, stderr } = await run("run", name, `write:${name}.txt`);
      expect(code, stderr).toBe(0);
      expect(stdout).toBe(`Done: write:${name}.txt\n`);
      expect(project.lines(`${name}.txt`)).toEqual(["x"]);
    }
  },
);

test(
  "a profile that is an agent is none for another agent, and its other fields are refused",
  ofCampaign,
  async () => {
    const asProfile = await run("run", "claude-code", "hello", "--profile", "translator");
    expect(asProfile.code).toBe(3);
    expect(asProfile.stderr).toContain("is an agent of its own");
    profile("wide", `permissionMode: acceptEdits\na2a: { url: "${remote.url}" }\n`);
    const wide = await run("run", "wide", "hello");
    expect(wide.code).toBe(3);
    expect(wide.stderr).toContain("permissionMode: not in a profile that is an agent of its own");
    expect((await run("agents", "list")).stdout).toMatch(/wide +refused +external/);
  },
);

test("a cancel of a session that no process runs cancels its remote task", async () => {
  const first = project.startHere(["run", "translator", "question", "--session", "s"], env);
  await inboxSays("translator asks: Which colour?");
  first.kill("SIGKILL");
  await first.finished;
  const { code, stderr } = await project.finishHere(["cancel", "s"], env);
  expect(code, stderr).toBe(0);
  expect(stderr).toContain("session s is cancelled");
  expect(remote.states()).toEqual(["TASK_STATE_CANCELED"]);
});
