// Agents by their names in the local stack and a runner: coding agents, and agent files.

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { StackState } from "@holdfast/place/local-stack";
import { openFleet } from "../testing/fleet.ts";
import { startSession } from "../testing/coordinator-client.ts";
import { ended } from "../testing/fleet-sessions.ts";
import { ExternalProject } from "../testing/external-project.ts";

let project: ExternalProject;
const git = (...args: string[]) =>
  execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.org", ...args], {
    cwd: project.folder,
  });
beforeEach(() => {
  project = new ExternalProject();
  project.write(".gitignore", "*\n!kept.txt\n!a.txt\n");
  project.write("kept.txt", "kept\n");
  git("init", "-q", "-b", "main");
  git("add", "kept.txt");
  git("commit", "-qm", "first");
});
afterEach(async () => {
  await project.run("local", "stop");
  await project.dispose();
});

const startStack = (...args: string[]) => project.finishHere(["up", "--port", "0", "--grace", "1s", ...args]);
const status = () => project.json<StackState & Record<string, unknown>>("local", "status");

test("a coding agent works in the background, in a worktree, after `up --agents` with its name", async () => {
  const { code, stderr } = await startStack("--agents", "claude-code");
  expect(code, stderr).toBe(0);
  expect(stderr).toContain("a runner with claude-code");
  expect((await status()).offers).toEqual(["claude-code"]);

  const args = ["run", "claude-code", "write:a.txt", "--worktree", "--session", "s"];
  const ran = await project.finishHere(args);
  expect(ran.code, ran.stderr).toBe(0);
  expect(ran.stderr).toContain("in the local stack");
  expect(existsSync(project.path("a.txt"))).toBe(false);
  expect((await project.finishHere(["diff", "s"])).stdout).toContain("+x");
  const merged = await project.finishHere(["merge", "s", "--commit"]);
  expect(merged.code, merged.stderr).toBe(0);
  expect(existsSync(project.path("a.txt"))).toBe(true);

  // The next start has it again.
  await project.run("local", "stop");
  expect((await startStack()).code).toBe(0);
  expect((await status()).offers).toContain("claude-code");
});

test("the page of the stack shows the work in a worktree to its admin, and merges it", async () => {
  expect((await startStack("--agents", "claude-code")).code).toBe(0);
  const ran = await project.finishHere(["run", "claude-code", "write:a.txt", "--worktree", "--session", "s"]);
  expect(ran.code, ran.stderr).toBe(0);
  const { url = "" } = await status();
  const [, file = ""] = /the token in (\S+)/.exec((await project.finishHere(["ui"])).stderr) ?? [];
  const token = readFileSync(file, "utf8").trim();
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  const ask = async (path: string, body?: object): Promise<unknown> => {
    const post = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
    return (await fetch(`${url}/ui/${path}`, { headers, ...post })).json();
  };
  expect(await ask("about")).toMatchObject({ isLocal: false, hasWorkspaces: true });
  const work = (await ask("workspaces/s")) as { readonly revision: string };
  expect(work).toMatchObject({ status: "there", diff: expect.stringContaining("+x") });
  expect(await ask("workspaces/s/merge", { commit: true })).toMatchObject({
    code: "validation",
    at: "/revision",
  });
  const { revision } = work;
  expect(await ask("workspaces/s/merge", { commit: true, revision })).toMatchObject({
    into: "main",
    isNew: true,
  });
  expect(existsSync(project.path("a.txt"))).toBe(true);
});

test("a coding agent in the background has its cost while it works, and asks a person for no signal", async () => {
  expect((await startStack("--agents", "claude-code")).code).toBe(0);
  const args = ["run", "claude-code", "write:a.txt hang", "--session", "s"];
  const run = project.startHere(args);
  await project.hangs("s");
  expect((await project.finishHere(["list"])).stdout).toMatch(/ working .*\$0\.0\d\d\d/);
  expect((await project.finishHere(["cancel", "s", "--hard"])).code).toBe(0);
  const { stderr } = await run.finished;
  expect(stderr).toContain("in the local stack");
  expect(stderr).not.toContain("steer");
});

test("an agent that is called in another folder than that of the stack works there, in its own process", async () => {
  expect((await startStack("--agents", "claude-code")).code).toBe(0);
  mkdirSync(project.path("below"));
  const args = ["run", "claude-code", "write:a.txt"];
  const { code, stderr } = await project.startHere(args, {}, "below").finished;
  expect(code, stderr).toBe(0);
  expect(stderr).toContain(`the local stack works in ${project.folder} and not here`);
  expect([existsSync(project.path("a.txt")), existsSync(project.path("below/a.txt"))]).toEqual([false, true]);
});

test("an agent file has its name there, too, and a name that nobody has is refused before anything starts", async () => {
  project.write(".holdfast/agents/found.md", "---\nname: found\ndescription: F.\n---\nHelp.\n");
  project.write(".holdfast/agents/pi.md", "---\nname: pi\ndescription: F.\n---\nHelp.\n");
  await project.run("agents", "trust");
  for (const [name, says] of [
    ["fond", "there is no agent fond; did you mean found?"],
    ["none.ts", "there is no file none.ts"],
    ["pi", "an agent file and an external agent have the name pi"],
  ] as const) {
    const { code, stderr } = await startStack("--agents", name);
    expect([code, stderr]).toEqual([expect.any(Number), expect.stringContaining(says)]);
    expect(code).not.toBe(0);
  }
  const { code, stderr } = await startStack("--agents", "found", "external:pi");
  expect(code, stderr).toBe(0);
  expect((await status()).agents).toEqual([project.path(".holdfast/agents/found.md"), "external:pi"]);
});

test("a coding agent of a runner works in the folder of the runner", { timeout: 60_000 }, async () => {
  const fleet = await openFleet();
  try {
    mkdirSync(project.path("work"));
    const args = ["runner", "-c", fleet.url, "-p", "work", "--agents", "claude-code"];
    const runner = project.startHere(args, { HOLDFAST_TOKEN: await fleet.token("registration", "r") });
    await runner.says("waiting for runs");
    const id = await startSession(fleet, { agent: "claude-code", input: "write:a.txt" });
    expect(await ended(fleet, id)).toMatchObject({ status: "completed" });
    expect([existsSync(project.path("a.txt")), existsSync(project.path("work/a.txt"))]).toEqual([
      false,
      true,
    ]);
    runner.kill("SIGTERM");
    await runner.finished;
  } finally {
    await fleet.close();
  }
});
