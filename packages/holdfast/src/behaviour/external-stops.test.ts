// An orderly stop while a coding agent works or asks: what it has done is not done again, and a person still
// finds the question.

import { afterEach, beforeEach, expect, test } from "vitest";
import { ExternalProject } from "../testing/external-project.ts";

let project: ExternalProject;
beforeEach(() => void (project = new ExternalProject()));
afterEach(() => project.dispose());

test.each(["codex", "claude-code"])(
  "a parked question of %s is in the inbox, and its answer holds for the next turn, which repeats nothing",
  { timeout: 60_000 },
  async (agent) => {
    const words = "step:a ask:asked.txt";
    expect((await project.finishHere(["run", agent, words, "--session", "s", "--park"])).code).toBe(0);
    expect((await project.finishHere(["list"])).stdout).toMatch(/^s +input_required /m);
    expect((await project.finishHere(["inbox"])).stdout).toContain("asked.txt");
    expect((await project.finishHere(["approve", "s"])).code).toBe(0);
    const resumed = await project.finishHere(["resume", "s"]);
    expect(resumed).toMatchObject({ code: 0 });
    expect([...project.steps()]).toEqual([["a", 1]]);
    expect(project.lines("asked.txt")).toEqual(["x"]);
    expect(project.processes()).toEqual([]);
  },
);

test("a turn that a stop cuts off is told so, and repeats no step", { timeout: 60_000 }, async () => {
  const running = project.startHere(["run", "codex", "step:a hang step:b", "--session", "s"]);
  await running.says("step a is done");
  running.kill("SIGTERM");
  await running.says("once more");
  running.kill("SIGTERM");
  await running.finished;
  const { code, stderr } = await project.finishHere(["resume", "s"]);
  expect(code, stderr).toBe(0);
  expect([...project.steps()]).toEqual([
    ["a", 1],
    ["b", 1],
  ]);
  expect(stderr).toContain("codex was cut off in its work when the process of the session stopped");
  expect(stderr).toContain("told the agent: Your previous turn was cut off");
  expect(stderr).not.toContain("UncertainEffectError");
});

test("a cancel says which call it cut off, and names no wait of ours as an error", async () => {
  const running = project.startHere(["run", "claude-code", "hang", "--session", "s"]);
  await project.hangs("s");
  expect((await project.finishHere(["cancel", "s"])).code).toBe(0);
  const { code, stderr } = await running.finished;
  expect(code).toBe(6);
  expect(stderr).toContain("cut off before it ended; it may have taken effect");
  expect(stderr).toMatch(/^ {2}\(The session was cancelled\. /m);
  expect(stderr).toMatch(/error\[E_SESSION_CANCELLED\]: session s was cancelled$/m);
  const { stdout } = await project.run("show", "s");
  expect(stdout).toMatch(/cancelled +its agent could clean up/);
  expect(stdout).not.toContain("CancelledError");
  expect((await project.run("list")).stdout).not.toContain("graceful");
});
