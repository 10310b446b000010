// Programs of the Agent Client Protocol as durable sessions, by the real command. The programs are fakes that
// speak it.

import { existsSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { ExternalProject } from "../testing/external-project.ts";
import type { Finished } from "../testing/holdfast-process.ts";

let project: ExternalProject;
beforeEach(() => void (project = new ExternalProject()));
afterEach(() => project.dispose());

const start = (args: readonly string[], env?: Readonly<Record<string, string>>) =>
  project.startHere(args, env);
const run = (...args: string[]): Promise<Finished> => project.finishHere(args);

test("run opencode records its conversation, and its cost is unknown", async () => {
  const { code, stdout, stderr } = await run("run", "opencode", "think write:a.txt", "--session", "s");
  expect(code, stderr).toBe(0);
  expect(stdout).toBe("Done: think write:a.txt\n");
  expect((await project.shown("s")).entries.map(({ role }) => role)).toEqual([
    "user",
    "thinking",
    "assistant",
    "tool",
    "assistant",
  ]);
  expect((await run("show", "s")).stdout).toContain('"costMicroUsd":"unknown"');
});

test("after kill -9 OpenCode loads its session by the id that it chose", ofCampaign, async () => {
  const first = start(["run", "opencode", "hang", "--session", "s"]);
  await project.hangs("s");
  first.kill("SIGKILL");
  await first.finished;
  const { code, stdout, stderr } = await run("resume", "s");
  expect(code, stderr).toBe(0);
  expect(project.hanging()).toEqual([]);
  expect(stdout).toBe("Done: hang\n"); // And not the answer of before, which the program repeats.
});

test(
  "Gemini cannot resume: after kill -9 a person decides, and a refusal is restore_incomplete",
  ofCampaign,
  async () => {
    const first = start(["run", "gemini", "hang", "--session", "s"]);
    await project.hangs("s");
    first.kill("SIGKILL");
    await first.finished;
    expect((await run("resume", "s", "--park")).code).toBe(0);
    expect(project.hanging()).toEqual([]);
    expect((await run("approve", "s", "--no")).code).toBe(0);
    expect((await run("resume", "s")).code).toBe(1);
    expect((await project.shown("s")).error?.code).toBe("restore_incomplete");
  },
);

test(
  "a request for a permission is a question, answered by the option of the program",
  ofCampaign,
  async () => {
    const running = start(["run", "gemini", "ask:a.txt", "--session", "s"]);
    await running.says("Allow edit_file: a.txt?");
    expect((await run("approve", "s")).code).toBe(0);
    expect((await running.finished).code).toBe(0);
    expect(project.answers()).toEqual(['{"outcome":{"outcome":"selected","optionId":"yes"}}']);
    expect(existsSync(project.path("a.txt"))).toBe(true);
  },
);

test("an endless line is refused, and so is a model of Gemini, which offers none", ofCampaign, async () => {
  const { code, stderr } = await run("run", "opencode", "huge");
  expect(code).toBe(1);
  expect(stderr).toContain("a line of more than 16777216 characters");
  expect((await run("run", "gemini", "--input", '{"text": "hello", "model": "m"}')).code).toBe(2);
});

test("a program that cancels its own turn again and again fails the session", ofCampaign, async () => {
  const { code, stderr } = await run("run", "opencode", "cancelled");
  expect(code).toBe(1);
  expect(stderr).toContain("was cut off in 6 turns in a row: its turn was cancelled by the program");
});
