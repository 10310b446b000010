import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { exampleProject } from "../../packages/holdfast/src/testing/example-project.ts";
import type { Project } from "../../packages/holdfast/src/testing/holdfast-process.ts";

const FILE = "compare.ts";

interface Event {
  readonly type: string;
  readonly seq?: number;
  readonly kind?: string;
}

describe("parallel tasks", () => {
  let project: Project;
  beforeEach(() => void (project = exampleProject(import.meta.url)));
  afterEach(() => project.dispose());

  test("three tasks run at once, and the race is won by the timer", async () => {
    const { code, stdout } = await project.run("run", FILE, "--json");

    const events = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Event);
    expect(code).toBe(0);
    expect(events.at(-1)).toMatchObject({
      type: "result",
      status: "completed",
      output: { cheapest: { name: "Market", cents: 990 }, offers: 3, island: "did not answer in time" },
    });
    // All were asked for before the first had an answer.
    const numbered = events.filter(({ seq }) => seq !== undefined).map(({ type }) => type);
    expect(numbered.slice(1, 4)).toEqual(["schedule_task", "schedule_task", "schedule_task"]);
    expect(numbered.filter((type) => type === "task_completed")).toHaveLength(3);
    expect(numbered).toContain("timer_fired");
  });

  test("an ephemeral run gives the same result and stores no session", async () => {
    const { code, stdout } = await project.run("run", FILE, "--ephemeral");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ offers: 3, island: "did not answer in time" });
    expect(await project.json<object[]>("list")).toEqual([]);
  });
});
