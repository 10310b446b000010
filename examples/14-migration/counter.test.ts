import { readFileSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { exampleProject } from "../../packages/holdfast/src/testing/example-project.ts";
import type { Project } from "../../packages/holdfast/src/testing/holdfast-process.ts";

const V1 = "counter-v1.ts";
const V2 = "counter-v2.ts";

describe("typed state", () => {
  let project: Project;
  beforeEach(async () => {
    project = exampleProject(import.meta.url);
    await project.run("run", V1, "--session", "w", "--park");
    for (const word of ["tea", "milk", "tea"]) await say(word, V1);
  });
  afterEach(() => project.dispose());

  async function say(word: string, file: string) {
    await project.run("signal", "w", "word", JSON.stringify(word));
    return project.run("resume", "w", "--park", "--agent", file);
  }

  test("version 2 of the agent continues a session of version 1", ofCampaign, async () => {
    await say("milk", V2);
    const { code, stdout } = await say("stop", V2);
    expect({ code, output: JSON.parse(stdout) as unknown }).toEqual({ code: 0, output: { tea: 2, milk: 2 } });
  });

  test("without a migration it is paused, and the old code goes on", ofCampaign, async () => {
    const source = readFileSync(project.path(V2), "utf8").replace(/\n {4}migrate:.*/, "");
    writeFileSync(project.path("v3.ts"), source);
    const refused = await say("stop", project.path("v3.ts"));
    expect(refused).toMatchObject({ code: 11, stderr: expect.stringContaining("version 1") });
    const { code, stdout } = await project.run("resume", "w", "--agent", V1);
    expect({ code, output: JSON.parse(stdout) as unknown }).toEqual({
      code: 0,
      output: ["tea", "milk", "tea"],
    });
  });
});
