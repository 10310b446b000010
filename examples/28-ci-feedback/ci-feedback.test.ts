// The program `claude` is a fake that speaks the protocol of Claude Code. The step of the workflow runs as it
// is written.

import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { ExternalProject } from "../../packages/holdfast/src/testing/external-project.ts";

let project: ExternalProject;
beforeEach(() => {
  project = new ExternalProject();
  writeFileSync(project.path(".gitignore"), "*\n");
  const author = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
  const git = (...args: string[]) => execFileSync("git", [...author, ...args], { cwd: project.folder });
  git("init", "-q");
  git("commit", "-q", "--allow-empty", "-m", "first");
});
afterEach(() => project.dispose());

test("the output of a failed build wakes the session whose branch it was", ofCampaign, async () => {
  const options = ["--session", "s", "--worktree", "--conversation"];
  const begun = await project.finishHere(["run", "claude-code", "write:a.txt", ...options]);
  expect(begun.code, begun.stderr).toBe(0);
  expect(begun.stdout).toBe("s\n");
  expect(begun.stderr).toContain("holdfast signal s ci @build.log");
  const actions = readFileSync(new URL("ci-feedback.yml", import.meta.url), "utf8");
  const step = /run: npx (holdfast signal .+)$/m.exec(actions)![1]!;
  writeFileSync(project.path("build.log"), "1 test failed\nwrite:b.txt");
  const branch = execFileSync("git", ["branch", "--list", "holdfast/*"], { cwd: project.folder })
    .toString()
    .replace(/^[+*\s]+/, "")
    .trim();
  const env = { ...project.environment(), GITHUB_REF_NAME: branch, GITHUB_RUN_ID: "7" };
  for (const _ of ["first", "repeated"]) {
    const sent = await project.shell(step, { env });
    expect(sent.code, sent.stderr).toBe(0);
  }
  const resumed = await project.finishHere(["resume", "s", "--park"]);
  expect(resumed.code, resumed.stderr).toBe(0);
  const { entries } = await project.shown("s");
  const prompts = entries.flatMap(({ role, content }) => (role === "user" ? [String(content)] : []));
  expect(prompts).toEqual(["write:a.txt", expect.stringMatching(/It is data[^]*1 test failed/)]);
  expect((await project.finishHere(["cancel", "s"])).code).toBe(0);
  const late = await project.finishHere(["signal", "s", "ci", "@build.log"]);
  expect(late.code).not.toBe(0);
  expect(late.stderr).toMatch(/fork s --agent claude-code[^]*run claude-code "…" --conversation/);
});
