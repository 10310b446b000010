import { writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { exampleProject } from "../../packages/holdfast/src/testing/example-project.ts";
import type { Project } from "../../packages/holdfast/src/testing/holdfast-process.ts";

const FILE = "summary.ts";

describe("fire and forget", () => {
  let project: Project;
  beforeEach(() => void (project = exampleProject(import.meta.url)));
  afterEach(() => project.dispose());

  const run = (...options: string[]) =>
    project.run("run", FILE, "--input", JSON.stringify({ file: project.path("text") }), ...options);

  test("runs to its end, and a second call under its id is told the first answer", async () => {
    writeFileSync(project.path("text"), "three words long\n");
    const first = await run("--session", "s");
    expect({ code: first.code, output: JSON.parse(first.stdout) as unknown }).toEqual({
      code: 0,
      output: { words: 3, begins: "three words long\n" },
    });
    writeFileSync(project.path("text"), "something else");
    expect(await run("--session", "s")).toMatchObject({ code: 0, stdout: first.stdout });
    expect(await project.run("result", "s")).toMatchObject({ code: 0, stdout: first.stdout });
  });

  test("within limits of the caller", ofCampaign, async () => {
    writeFileSync(project.path("text"), "a b");
    const { code, stderr } = await run("--session", "s", "--budget", "1steps");
    expect(code).toBe(9);
    expect(stderr).toContain("holdfast budget s --raise");
    await project.run("budget", "s", "--raise", "2steps");
    expect(await project.run("resume", "s")).toMatchObject({ code: 0 });
  });
});
