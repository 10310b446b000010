// Profiles of external agents, by the real command. The program is a fake that speaks the protocol of Claude
// Code.

import { existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { ExternalProject } from "../testing/external-project.ts";

let project: ExternalProject;
beforeEach(() => void (project = new ExternalProject()));
afterEach(() => project.dispose());

test(
  "a profile of the user runs a program that is not on the PATH, with the variables that it names",
  ofCampaign,
  async () => {
    mkdirSync(project.path("own"));
    renameSync(project.path("bin/claude"), project.path("own/my-claude"));
    const text = `agent: claude-code\nprogram: ${project.path("own/my-claude")}\nvariables: [CLAUDE_CODE_USE_BEDROCK]\nkeys: [MY_KEY]\n`;
    mkdirSync(project.path(".holdfast/profiles"), { recursive: true });
    writeFileSync(project.path(".holdfast/profiles/mine.yaml"), text, { mode: 0o600 });
    const env = { CLAUDE_CODE_USE_BEDROCK: "1", MY_KEY: "canary-0123456789", OTHER_KEY: "x" };
    const missing = await project.finishHere(["run", "claude-code", "hello"], env);
    expect(missing.stderr).toContain("E_PROGRAM_MISSING");
    const args = ["run", "claude-code", "env", "--session", "s", "--profile", "mine"];
    const { code, stderr } = await project.finishHere(args, env);
    expect(code, stderr).toBe(0);
    const got = project.starts()[0]?.env;
    expect(got).toEqual(expect.arrayContaining(["CLAUDE_CODE_USE_BEDROCK", "MY_KEY"]));
    expect(got).not.toContain("OTHER_KEY");
    const recorded = JSON.stringify(await project.shown("s"));
    expect(recorded).toContain("MY_KEY");
    expect(recorded).not.toContain("canary-0123456789");
    expect(recorded).toContain('"costMicroUsd":"unknown"'); // The prices of another vendor are not known.
    const given = await project.finishHere([...args.slice(0, 3), "--profile", "mine", "--env", "A=b"], env);
    expect([given.code, given.stderr]).toEqual([
      2,
      expect.stringContaining("in a profile (`variables`, `keys`)"),
    ]);
    const named = [
      "run",
      "claude-code",
      "--input",
      '{"text": "hello", "profile": "mine", "model": "claude-sonnet-4-5"}',
    ];
    const paid = await project.finishHere([...named, "--budget", "1usd"], env);
    expect(paid.code).toBe(9);
    expect(paid.stderr).toContain("E_UNKNOWN_PRICE");
  },
);

test(
  "a profile that is not there, or that would permit more by a project's file, is refused before anything starts",
  ofCampaign,
  async () => {
    const missing = await project.finishHere(["run", "claude-code", "hello", "--profile", "none"]);
    expect(missing.code).toBe(2);
    expect(missing.stderr).toContain('no profile "none"');
    mkdirSync(project.path("work/.holdfast/profiles"), { recursive: true });
    writeFileSync(project.path("work/.holdfast/profiles/wide.yaml"), "permissionMode: acceptEdits\n");
    const wide = await project.shell("cd work && holdfast agents check");
    expect(wide.stdout).toMatch(/wide \(profile\)[^]*only a profile in ~\/\.holdfast\/profiles/);
    const named = await project.shell("cd work && holdfast agents check wide");
    expect(named.stderr).toContain("`holdfast agents check` without a name reports on it");
    expect(existsSync(project.path("claude.log"))).toBe(false);
  },
);

test("a session that exists takes no other sandbox, and does not go on without it", ofCampaign, async () => {
  const named = ["run", "claude-code", "--session", "s"];
  const begun = await project.finishHere([...named, "--input", '"hello"', "--conversation"]);
  expect(begun.code, begun.stderr).toBe(0);
  const { code, stderr } = await project.finishHere([...named, "--sandbox", "bubblewrap"]);
  expect(code).toBe(2);
  expect(stderr).toContain("session s exists already, and keeps the choices of its start");
  expect(stderr).toContain("--sandbox");
});
