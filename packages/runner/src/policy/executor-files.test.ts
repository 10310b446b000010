// An agent that can write its project tries to decide what an allowed name of an executor starts.

import { mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";

import { findExecutor, type ExecutorProfile } from "../executors/profile.ts";
import { openWorld, type Opened, type World } from "../testing/executor-world.ts";
import { isReachedIn, requireOutside } from "./executor-files.ts";

let world: World;
let project: string;
let outside: string;
beforeEach(async () => {
  world = await openWorld();
  project = join(world.folder, "project");
  outside = join(world.folder, "outside");
  for (const folder of [project, outside, join(project, "bin")]) mkdirSync(folder);
});
afterEach(() => world.close());

const REPORT = 'await event("result", { result_data: { path: process.env.PATH, cwd: process.cwd() } });';

/** The world's programs lie above the project. */
function open(profile: ExecutorProfile, path = process.env["PATH"]): Opened {
  return world.open(profile, {
    projectDir: project,
    policy: { executors: [profile.name] },
    environment: { ...process.env, PATH: path },
  });
}

async function outcomeOf({ runtime, agent }: Opened, input: unknown = "work"): Promise<string> {
  return JSON.stringify(await (await runtime.start(agent, input)).settled());
}

function program(path: string): string {
  writeFileSync(path, "#!/bin/sh\ntouch ran\n", { mode: 0o755 });
  return path;
}

describe("with names in the policy", () => {
  test(
    "an executor outside of the project runs in the project, and finds no program there by its name",
    ofCampaign,
    async () => {
      const bin = join(project, "bin");
      symlinkSync(bin, join(outside, "bin"));
      const path = [bin, "bin", join(outside, "bin"), process.env["PATH"]].join(delimiter);
      const outcome = JSON.parse(await outcomeOf(open(await world.node(REPORT), path))) as {
        output: { result_data: { path: string; cwd: string } };
      };
      expect(outcome.output.result_data).toEqual({ path: process.env["PATH"], cwd: project });
    },
  );

  test.each<[string, () => readonly [string, ...string[]]]>([
    ["its program is in the project", () => [program(join(project, "mine"))]],
    ["its program is relative to the project", () => [program(join(project, "mine")) && "./mine"]],
    ["its script is an argument", () => ["/bin/sh", program(join(project, "mine"))]],
    ["its script is an argument that will be there later", () => ["/bin/sh", join(project, "later")]],
    ["its script is relative", () => ["/bin/sh", program(join(project, "mine")) && "mine"]],
    [
      "a link outside leads into the project",
      () => {
        symlinkSync(program(join(project, "mine")), join(outside, "link"));
        return [join(outside, "link")];
      },
    ],
    [
      "a link in the project leads outside again",
      () => {
        symlinkSync(program(join(outside, "real")), join(project, "hop"));
        symlinkSync("../project/hop", join(outside, "link"));
        return [join(outside, "link")];
      },
    ],
    [
      "a folder on its way is a link through the project",
      () => {
        program(join(outside, "real"));
        symlinkSync(outside, join(project, "hop"));
        symlinkSync(join(project, "hop"), join(world.folder, "alias"));
        return [join(world.folder, "alias", "real")];
      },
    ],
  ])("an executor is refused before there is a session when %s", async (_what, command) => {
    const profile = { ...(await world.shell("")), command: command() };
    expect(() => open(profile)).toThrow("only from outside of the folders in which sessions work");
  });

  test("an executor is refused at the start of a turn when its program has become a link into the project", async () => {
    const path = program(join(outside, "mine"));
    const opened = open({ ...(await world.shell("")), command: [path] });
    renameSync(path, join(project, "mine"));
    symlinkSync(join(project, "mine"), path);
    expect(await outcomeOf(opened)).toContain("policy_denied");
    expect(isReachedIn(path, project)).toBe(true);
  });

  test("an executor is refused in a session whose folder has its program", async () => {
    const opened = open({ ...(await world.shell("")), command: [program(join(outside, "mine"))] });
    expect(await outcomeOf(opened, { prompt: "work", project_dir: outside })).toContain("policy_denied");
    expect(await outcomeOf(opened, { prompt: "work", project_dir: world.folder })).toContain("policy_denied");
  });

  test(
    "an executor is refused in a session whose folder has the program of another executor",
    ofCampaign,
    async () => {
      const profile = await world.node(REPORT);
      const opened = open(profile);
      const input = { prompt: "work", project_dir: outside };
      expect(await outcomeOf(opened, input)).toContain("completed");
      opened.host.add({ ...profile, command: [program(join(outside, "other"))] });
      expect(await outcomeOf(opened, input)).toContain("policy_denied");
    },
  );

  test("the executor that comes with Holdfast needs no other place", ofCampaign, async () => {
    const profile = { ...findExecutor(project, "test-executor"), conversationTtlMs: 0 };
    expect(await outcomeOf(open(profile), "echo")).toContain('"result_text":"echo"');
  });
});

test("a program without a slash is started by the path that was checked", () => {
  program(join(outside, "tool"));
  program(join(project, "bin", "tool"));
  const path = [join(project, "bin"), outside].join(delimiter);
  expect(requireOutside("x", ["tool", "--fast"], [project], path)).toEqual([join(outside, "tool"), "--fast"]);
  expect(requireOutside("x", ["no-such-tool"], [project], path)).toEqual(["no-such-tool"]);
});

test("a link before two dots is followed as the system does", () => {
  mkdirSync(join(project, "deep"));
  symlinkSync(join(project, "deep"), join(outside, "in"));
  expect(isReachedIn(`${outside}/in/../mine`, project)).toBe(true);
  expect(isReachedIn(`${outside}/./x/../mine`, project)).toBe(false);
});

test("without names in the policy, the project's own executors run", ofCampaign, async () => {
  const profile = { ...(await world.shell("")), command: [program(join(project, "mine"))] as const };
  const opened = world.open(profile, { projectDir: project, policy: {} });
  expect(await outcomeOf(opened)).toContain("without a result");
});
