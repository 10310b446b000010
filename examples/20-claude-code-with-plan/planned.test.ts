// The program `claude` is a fake that speaks the protocol of Claude Code. The last line of its prompt says
// what it does.

import { copyFileSync, existsSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { ExternalProject } from "../../packages/holdfast/src/testing/external-project.ts";

let project: ExternalProject;
beforeEach(() => {
  project = new ExternalProject();
  copyFileSync(new URL("planned.ts", import.meta.url), project.path("planned.ts"));
});
afterEach(() => project.dispose());

test("nothing is changed before a person has approved a plan", ofCampaign, async () => {
  const run = (...args: string[]) => project.startHere(args).finished;
  const parked = await run("run", "planned.ts", "--input", '"write:a.txt"', "--session", "plan", "--park");
  expect(parked.code, parked.stderr).toBe(0);
  expect((await run("approve", "plan", "--no", "--reason", "think again")).code).toBe(0);
  expect((await run("resume", "plan", "--park")).code).toBe(0);
  expect(existsSync(project.path("a.txt"))).toBe(false);
  expect((await run("approve", "plan")).code).toBe(0);
  const { code, stdout, stderr } = await run("resume", "plan");
  expect(code, stderr).toBe(0);
  expect(stdout).toBe("Done: write:a.txt\n");
  expect(project.lines("a.txt")).toEqual(["x"]);
  const modes = project.starts().map(({ args }) => args[args.indexOf("--permission-mode") + 1]);
  expect(modes).toEqual(["plan", "plan", "acceptEdits"]);
});
