// The policy of a runner for executors: real programs, which a session of theirs tries to replace, or which
// want more than is allowed.

import { mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";

import { findExecutor, isBuiltIn, type ExecutorProfile } from "@holdfast/programs";
import { openWorld, type Opened, type World } from "@holdfast/programs/testing";
import { executorPolicy, isReachedIn, type ExecutorLimits, type RunnerPolicy } from "@holdfast/runner";

let world: World;
let project: string;
let outside: string;
let policy: ExecutorLimits;
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
  policy = executorPolicy({ executors: [profile.name] }, project, (command) => isBuiltIn({ command }));
  return world.open(profile, {
    projectDir: project,
    policy,
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
      const other = { ...profile, command: [program(join(outside, "other"))] as const };
      policy.add({ profile: other, environment: process.env });
      expect(await outcomeOf(opened, input)).toContain("policy_denied");
    },
  );

  test("the executor that comes with Holdfast needs no other place", ofCampaign, async () => {
    const profile = { ...findExecutor(project, "test-executor"), conversationTtlMs: 0 };
    expect(await outcomeOf(open(profile), "echo")).toContain('"result_text":"echo"');
  });
});

test("without names in the policy, the project's own executors run", ofCampaign, async () => {
  const profile = { ...(await world.shell("")), command: [program(join(project, "mine"))] as const };
  const opened = world.open(profile, {
    projectDir: project,
    policy: executorPolicy({}, project, () => false),
  });
  expect(await outcomeOf(opened)).toContain("without a result");
});

describe("a run that demands what the policy forbids is refused at the runner", () => {
  async function ended(given: RunnerPolicy, input: unknown = "go", body = SHOW): Promise<unknown> {
    const { runtime, agent } = world.open(await world.node(body), {
      policy: executorPolicy(given, world.folder, () => false),
    });
    const settled = await (await runtime.start(agent, input)).settled();
    return settled.status === "completed" ? settled.output : settled;
  }
  const SHOW =
    'await event("result", { result_data: { proxy: process.env.HTTPS_PROXY ?? null, cwd: process.cwd() } });';
  const denied = (message: string) =>
    expect.objectContaining({
      status: "failed",
      error: expect.objectContaining({
        cause: expect.objectContaining({ code: "policy_denied", message: expect.stringContaining(message) }),
      }),
    });

  test("an executor that is not allowed is refused before there is a session", ofCampaign, async () => {
    await expect(ended({ executors: ["other"] })).rejects.toThrow("does not allow the executor tried");
    expect(await ended({})).toMatchObject({ result_data: { cwd: world.folder } });
  });

  test("a project folder outside of the roots is not used", ofCampaign, async () => {
    const root = join(world.folder, "root");
    mkdirSync(root);
    const elsewhere = { prompt: "go", project_dir: world.folder };
    expect(await ended({ roots: [root] }, elsewhere)).toEqual(denied("does not allow this folder"));
    expect(await ended({ roots: [root] })).toEqual(denied("does not allow this folder"));
    const inside = { prompt: "go", project_dir: root };
    expect(await ended({ roots: [root] }, inside)).toMatchObject({ result_data: { cwd: root } });
  });

  test("an executor has a proxy only where the policy allows a host", ofCampaign, async () => {
    expect(await ended({})).toMatchObject({ result_data: { proxy: null } });
    expect(await ended({ network: { allow: ["example.org"] } })).toMatchObject({
      result_data: { proxy: expect.stringMatching(/^http:\/\/run:\[secret\]@127/) },
    });
  });
});
