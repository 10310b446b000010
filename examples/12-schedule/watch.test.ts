import { appendFileSync, writeFileSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { Project } from "../../packages/holdfast/src/testing/holdfast-process.ts";

const START = new URL("./start.ts", import.meta.url).pathname;

describe("an agent on a schedule", () => {
  let project: Project;
  beforeEach(() => {
    project = new Project({ fromSources: true });
    writeFileSync(project.path("watched.log"), "one\n");
  });
  afterEach(() => project.dispose());

  const start = (steps: number) =>
    execFileSync(process.execPath, [START, "watched.log", "* * * * * *", String(steps)], {
      cwd: project.folder,
      encoding: "utf8",
    });

  test("looks at each tick, over a kill, until there is enough to see", ofCampaign, async () => {
    expect(start(100)).toContain("first tick at");
    expect(start(100), "safe to repeat").toContain("first tick at");
    const killed = project.start(["schedule", "run"]);
    await killed.says(/watch-tick signalled watch/);
    killed.kill("SIGKILL");
    await killed.finished;

    appendFileSync(project.path("watched.log"), "two\nthree\nfour\nfive\n");
    const running = project.start(["schedule", "run"]);
    await running.says("watch completed");
    expect(await project.json("result", "watch")).toMatchObject({
      output: { why: "enough lines", lines: 5 },
    });
    running.kill("SIGINT");
    expect((await running.finished).code).toBe(130);
  });

  test("the session is paused when its budget is spent", ofCampaign, async () => {
    start(1);
    const running = project.start(["schedule", "run"]);
    await running.says("watch paused");
    const { pauseReason, turn } = await project.json("show", "watch");
    expect({ pauseReason, turn }).toEqual({ pauseReason: "budget_exceeded", turn: 1 });
  });
});
