// The usage of coding agents whose supervising process was killed, by the real command: it is in the budget,
// or is said to be unknown.

import { existsSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { ExternalProject } from "../testing/external-project.ts";
import type { Finished } from "../testing/holdfast-process.ts";

let project: ExternalProject;
beforeEach(() => void (project = new ExternalProject()));
afterEach(() => project.dispose());

const run = (...args: string[]): Promise<Finished> => project.finishHere(args);

/** Starts the work, and kills the process that supervises it once its program has left this file. */
async function killedAt(file: string, ...args: string[]): Promise<void> {
  const first = project.startHere(["run", ...args, "--session", "s"]);
  while (!existsSync(project.path(file))) await delay(20);
  first.kill("SIGKILL");
  await first.finished;
}

test("list, show and budget say that the usage of a request which was under way at a kill is unknown", async () => {
  await killedAt("done-no_answer", "codex", "write:a.txt no-answer", "--budget", "100000tokens");
  expect((await run("resume", "s")).code).toBe(0);
  expect((await run("list")).stdout).toMatch(/\$[\d.]+ \+ unknown/);
  const words = "the usage of one turn is not known in full";
  expect((await run("show", "s")).stdout).toContain(words);
  expect((await run("budget", "s")).stderr).toContain(words);
});

test(
  "the usage of an agent that reports none is unknown where it works and in list, and not zero",
  ofCampaign,
  async () => {
    const { code, stderr } = await run("run", "opencode", "hello", "--session", "s", "-v");
    expect(code, stderr).toBe(0);
    expect(stderr).toMatch(/✓ opencode:turn .* usage unknown/);
    expect(stderr).not.toContain("0 tokens");
    expect((await run("list")).stdout).toContain("unknown");
    expect((await run("show", "s")).stdout).toContain("the usage of one turn is not known");
  },
);
