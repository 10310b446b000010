// `holdfast local start` without options: the agents that it finds.

import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import type { StackState } from "@holdfast/place/local-stack";
import { ModelProject } from "../testing/model-project.ts";

let project: ModelProject;
beforeEach(async () => {
  project = await ModelProject.open();
});
afterEach(async () => {
  await project.run("local", "stop");
  await project.dispose();
});

const start = (...args: string[]) => project.run("local", "start", "--port", "0", ...args);
const offers = async () =>
  (await project.json<StackState & Record<string, unknown>>("local", "status")).offers;

test("it starts without any agent, and says how to add one", ofCampaign, async () => {
  const { code, stderr } = await start();
  expect(code, stderr).toBe(0);
  expect(stderr).toContain("add one with `holdfast agents new NAME`");
});

test("it serves the agents of the project and those of its last start", async () => {
  project.write(
    "code.ts",
    'import { defineAgent } from "holdfast";\nexport const code = defineAgent({ name: "code", run: async () => 1 });\n',
  );
  expect((await start("--agents", "code.ts")).code).toBe(0);
  expect(await offers()).toEqual(["code"]);
  await project.run("local", "stop");
  project.write(".holdfast/agents/found.md", "---\nname: found\ndescription: F.\n---\nHelp.\n");
  await project.run("agents", "trust");
  const { code, stderr } = await start();
  expect(code, stderr).toBe(0);
  expect(new Set(await offers())).toEqual(new Set(["code", "found"]));
});

test("one --agents takes several Markdown files, as a shell writes them for a pattern, and a folder is refused with that way", async () => {
  const folder = ".claude/agents";
  for (const name of ["reviewer", "tester"])
    project.write(`${folder}/${name}.md`, `---\nname: ${name}\ndescription: D.\n---\nHelp.\n`);
  await project.run("agents", "trust");

  const refused = await start("--agents", folder);
  const path = project.path(folder);
  expect([refused.code, refused.stderr]).toEqual([3, expect.stringContaining(`${path} is a folder`)]);
  const [, pattern = ""] = /fix: .*`--agents (.*)`/.exec(refused.stderr) ?? [];
  expect(pattern).toBe(`${path}/*.md`);

  const files = ["reviewer", "tester"].map((name) => pattern.replace("*", name)); // As the shell reads the pattern.
  const { code, stderr } = await start("--agents", ...files);
  expect(code, stderr).toBe(0);
  expect(new Set(await offers())).toEqual(new Set(["reviewer", "tester"]));
});
