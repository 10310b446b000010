// The programs are fakes that speak the protocols of Claude Code and Codex. The last line of a prompt says
// what they do.

import { copyFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { ExternalProject } from "../../packages/holdfast/src/testing/external-project.ts";

let project: ExternalProject;
beforeEach(() => {
  project = new ExternalProject();
  copyFileSync(new URL("reviewed.ts", import.meta.url), project.path("reviewed.ts"));
});
afterEach(() => project.dispose());

test("Codex reviews the change of Claude Code and may only read", ofCampaign, async () => {
  const { code, stdout, stderr } = await project.startHere(["run", "reviewed.ts", "--input", '"write:a.txt"'])
    .finished;
  expect(code, stderr).toBe(0);
  expect(stdout).toContain("APPROVED");
  expect(project.lines("a.txt")).toEqual(["x"]);
  expect(project.lines("codex.log").map((line) => (JSON.parse(line) as { sandbox: string }).sandbox)).toEqual(
    ["read-only"],
  );
});
