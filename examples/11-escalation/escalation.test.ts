import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { sampled } from "@holdfast/testkit/campaign";
import { exampleProject } from "../../packages/holdfast/src/testing/example-project.ts";
import type { Project } from "../../packages/holdfast/src/testing/holdfast-process.ts";

const FILE = "escalation.ts";

describe("escalation", () => {
  let project: Project;
  beforeEach(() => void (project = exampleProject(import.meta.url)));
  afterEach(() => project.dispose());

  test.each(
    sampled([
      [["approve", "o"], "booked for north, as permitted\n"],
      [["approve", "o", "--no"], "not booked\n"],
    ]),
  )("child to parent to person and back, over a kill: %j", async (answer, output) => {
    const running = project.start(["run", FILE, "--session", "o", "--input", '{"amount": 250}']);
    await running.says("May this be booked?");
    running.kill("SIGKILL");
    await running.finished;
    expect(await project.run(...answer)).toMatchObject({ code: 0 });

    const { code, stdout } = await project.run("resume", "o");

    expect({ code, stdout }).toEqual({ code: 0, stdout: output });
  });

  test("a request that the parent's handler can answer needs no person", async () => {
    expect(await project.run("run", FILE, "--input", '{"amount": 5}')).toMatchObject({
      code: 0,
      stdout: "booked for north\n",
    });
  });
});
