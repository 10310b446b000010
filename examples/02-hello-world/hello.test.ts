import { readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { exampleProject } from "../../packages/holdfast/src/testing/example-project.ts";
import type { Project } from "../../packages/holdfast/src/testing/holdfast-process.ts";

const FILE = "hello.ts";

describe("hello world", () => {
  let project: Project;
  beforeEach(() => void (project = exampleProject(import.meta.url)));
  afterEach(() => project.dispose());

  test("the agent greets on standard output only", ofCampaign, async () => {
    const { code, stdout } = await project.run("run", FILE, "--input", '"Ada"');
    expect({ code, stdout }).toEqual({ code: 0, stdout: "Hello, Ada!\n" });
  });

  test("killed while it sleeps, it goes on and greets nobody twice", async () => {
    const killed = project.start(["run", FILE]);
    await killed.says("waits for a timer");
    killed.kill("SIGKILL");
    await killed.finished;

    const { code, stdout } = await project.run("resume", "--last");

    expect({ code, stdout }).toEqual({ code: 0, stdout: "Hello, world!\n" });
    const [session] = await project.json<{ sessionId: string }[]>("list");
    const { tasks } = await project.json<{ tasks: object[] }>("show", session!.sessionId);
    expect(tasks).toMatchObject([{ kind: "greet", status: "completed", attempts: 1 }]);
  });

  test("a durable agent takes at most 12 lines", () => {
    expect(readFileSync(project.path(FILE), "utf8").trimEnd().split("\n").length).toBeLessThanOrEqual(12);
  });
});
