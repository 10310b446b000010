// A model's usage limit and refused key, as a person meets them on the command line.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startScriptedModelServer, type ScriptedModelServer } from "@holdfast/testkit";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { Project } from "../testing/holdfast-process.ts";

let project: Project;
let home: string;
let server: ScriptedModelServer;

beforeEach(async () => {
  project = new Project();
  home = mkdtempSync(join(tmpdir(), "holdfast-home-"));
  server = await startScriptedModelServer({
    script: ({ messages }) =>
      messages.some(({ role }) => role === "assistant")
        ? { text: "It says one." }
        : { toolCalls: [{ name: "read_file", input: { path: "value.txt" } }] },
  });
  writeFileSync(project.path("value.txt"), "one\n");
  writeFileSync(project.path("reader.md"), "---\nname: reader\ndescription: Reads.\n---\nYou read.\n");
});

afterEach(async () => {
  await project.dispose();
  await server.close();
  rmSync(home, { recursive: true, force: true });
});

const env = () => ({ HOME: home, XDG_DATA_HOME: undefined, HOLDFAST_SCRIPTED_MODEL_URL: server.url });
const run = (...args: string[]) => project.finish(args, { stdin: "", env: env() });

test("a usage limit pauses a session, says until when, and a resume continues it without repeating a tool", async () => {
  server.setFaults({ 2: { type: "rate_limited", retryAfterSeconds: 7_200 } });
  const first = await run("run", "reader.md", "Read it.", "--session", "q");
  expect(first.code, first.stderr).toBe(7);
  expect(first.stderr).toMatch(/session q is paused \(quota\): scripted\/scripted-model: the usage limit/);
  expect(first.stderr).toContain("continue with: holdfast resume q");
  const shown = (await run("show", "q")).stdout;
  expect(shown).toContain("paused (quota)");
  expect(shown).toMatch(/the limit is reset .*\(in (1 h 59 min|2 h).*wait for the reset/);
  expect((await run("list")).stdout).toContain("paused (quota)");
  const inbox = await run("inbox");
  expect(inbox.stdout).toMatch(/the usage limit is reached until/);
  expect(inbox.stdout).toContain("holdfast resume q");
  expect(await project.json("show", "q")).toMatchObject({
    pauseReason: "quota",
    quota: { pool: "scripted/scripted-model", resetsAt: expect.any(Number) },
  });
  server.setFaults();
  const resumed = await run("resume", "q");
  expect(resumed.code, resumed.stderr).toBe(0);
  expect((await run("result", "q")).stdout).toBe("It says one.\n");
  expect(server.requests).toHaveLength(3);
});

test("with --resume-at-reset the session says when it continues without a person", async () => {
  server.setFaults({ 1: { type: "rate_limited", retryAfterSeconds: 7_200 } });
  const parked = await run("run", "reader.md", "Read it.", "--session", "q", "--resume-at-reset", "--park");
  expect(parked.code, parked.stderr).toBe(7);
  const restart = /it continues by itself .*\(in (1 h 59 min|2 h)/;
  for (const command of ["show q", "list", "inbox", "top"])
    expect((await run(...command.split(" "))).stdout, command).toMatch(restart);
});

test(
  "a new chat with --resume-at-reset continues without a person, and one that exists keeps its own setting",
  ofCampaign,
  async () => {
    server.setFaults({ 1: { type: "rate_limited", retryAfterSeconds: 7_200 } });
    const chat = project.start(["chat", "reader.md", "Read it.", "--session", "c", "--resume-at-reset"], {
      env: env(),
    });
    await expect.poll(async () => (await run("show", "c")).stdout).toContain("it continues by itself");
    chat.kill("SIGTERM");
    await chat.finished;
    const again = await run("chat", "--session", "c", "--resume-at-reset");
    expect(again.code).toBe(2);
    expect(again.stderr).toContain("the conversation exists already, and keeps the agent of its start");
  },
);

test("a session whose input asks for it continues without a person, as the local stack starts it", async () => {
  server.setFaults({ 1: { type: "rate_limited", retryAfterSeconds: 7_200 } });
  const input = JSON.stringify({ text: "Read it.", resumeAtReset: true });
  const parked = await run("run", "reader.md", "--input", input, "--session", "q", "--park");
  expect(parked.code, parked.stderr).toBe(7);
  expect((await run("show", "q")).stdout).toContain("it continues by itself");
});

test("a refused key pauses a session, and the command that repairs it is named", ofCampaign, async () => {
  server.setFaults({ 1: { type: "unauthorized" } });
  const first = await run("run", "reader.md", "Read it.", "--session", "q");
  expect(first.code, first.stderr).toBe(5);
  expect((await run("inbox")).stdout).toMatch(/paused \(auth_required\): scripted\/scripted-model: .* key/);
  const resumed = await run("resume", "q");
  expect(resumed.code, resumed.stderr).toBe(0);
});

test("--resume-at-reset is for agent files", async () => {
  writeFileSync(
    project.path("code.ts"),
    `import { defineAgent } from "holdfast";\nexport default defineAgent({ name: "code", run: async () => 1 });\n`,
  );
  const { code, stderr } = await run("run", "code.ts", "--resume-at-reset");
  expect(code).toBe(2);
  expect(stderr).toContain("--resume-at-reset: for agent files, and this agent is code");
});
