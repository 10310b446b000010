import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { exampleProject } from "../../packages/holdfast/src/testing/example-project.ts";
import type { Project } from "../../packages/holdfast/src/testing/holdfast-process.ts";

const FILE = "report.ts";
const INPUT = '{"topic": "bees", "thinkMs": 3600000}';

describe("supervised", () => {
  let project: Project;
  beforeEach(() => void (project = exampleProject(import.meta.url)));
  afterEach(() => project.dispose());

  const progress = async () => (await project.json<{ progress?: { done: number } }>("show", "r")).progress;

  test(
    "a plan is approved, progress is shown, a running call is steered, over a kill",
    ofCampaign,
    async () => {
      const running = project.start(["run", FILE, "--session", "r", "--input", INPUT]);
      await running.says("Write about bees?");
      await project.run("approve", "r");
      await running.says("write");
      while ((await progress())?.done !== 0);
      await project.run("signal", "r", "steer", '"in one line"');
      while ((await progress())?.done !== 1);
      running.kill("SIGKILL");
      await running.finished;

      const resumed = project.start(["resume", "r"]);
      await resumed.says("resumes");
      await project.run("signal", "r", "steer", '"in two"');

      const { code, stdout } = await resumed.finished;
      expect({ code, output: JSON.parse(stdout) as unknown }).toEqual({
        code: 0,
        output: { text: ["the history of bees, in one line.", "the present of bees, in two."] },
      });
      const { tasks } = await project.json<{ tasks: object[] }>("show", "r");
      expect(tasks).toMatchObject([
        { status: "withdrawn" },
        { status: "completed" },
        { status: "withdrawn" },
        { status: "completed" },
      ]);
    },
  );

  test("a plan that is refused ends it", ofCampaign, async () => {
    const running = project.start(["run", FILE, "--session", "r", "--input", INPUT]);
    await running.says("Write about bees?");
    await project.run("approve", "r", "--no", "--reason", "wasps");
    expect(await running.finished).toMatchObject({ code: 0, stdout: expect.stringContaining("wasps") });
  });
});
