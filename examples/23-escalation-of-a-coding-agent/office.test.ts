// The program `claude` is a fake that speaks the protocol of Claude Code and calls the tools of its session.

import { copyFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { ExternalProject } from "../../packages/holdfast/src/testing/external-project.ts";

let project: ExternalProject;
beforeEach(() => {
  project = new ExternalProject();
  copyFileSync(new URL("office.ts", import.meta.url), project.path("office.ts"));
});
afterEach(() => project.dispose());

test("the parent answers what it knows, and a person the rest", ofCampaign, async () => {
  const input = JSON.stringify("session:ask_parent:Which_region? session:ask_parent:When?");
  const running = project.startHere(["run", "office.ts", "--input", input, "--session", "office"]);
  const inbox = () => project.startHere(["inbox", "--json"]).finished;
  let asked = "";
  while (!asked.includes("When?")) {
    asked = (await inbox()).stdout;
    await delay(50);
  }
  const [, child] = /"(office-\d+)"/.exec(asked)!;
  expect((await project.startHere(["answer", child!, '"on Monday"']).finished).code).toBe(0);
  const { code, stderr } = await running.finished;
  expect(code, stderr).toBe(0);
  expect(project.lines("session-results")).toEqual(["north", "on Monday"]);
});
