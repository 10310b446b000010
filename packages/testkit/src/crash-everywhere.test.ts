import { defineAgent, defineTask } from "@holdfast/runtime";
import { describe, expect, test } from "vitest";
import { crashEverywhere } from "./crash-everywhere.ts";
import { crashScenarios } from "./crash-scenarios.ts";

describe("H9: a crash at any point, and a resume, is the same as no crash (memory)", () => {
  test.each(crashScenarios)("$name", async (scenario) => {
    const report = await crashEverywhere(scenario);
    expect(report.failures).toEqual([]);
    expect(report.commits).toBeGreaterThan(1);
  });
});

describe("the harness sees what it is there to see", () => {
  test("an effect that is not idempotent is a failure at the points where it is repeated", async () => {
    let count = 0;
    const append = defineTask({ name: "append", run: () => ++count });
    const report = await crashEverywhere({
      name: "not idempotent",
      agent: defineAgent({
        name: "careless",
        tasks: [append],
        run: async (ctx) => (await ctx.scheduleTask(append, {})) && "done",
      }),
      effects: () => count,
      reset: () => void (count = 0),
    });
    expect(report.failures.length).toBeGreaterThan(0);
    expect(new Set(report.failures.map(({ point }) => point.kind))).toContain("task_end");
  });

  test("state kept outside the session is a failure", async () => {
    let lives = 0;
    const report = await crashEverywhere({
      name: "process memory",
      agent: defineAgent({
        name: "forgetful",
        run: async (ctx) => {
          const life = ++lives;
          await ctx.run("a", () => 1);
          await ctx.run("b", () => 2);
          return life;
        },
      }),
      reset: () => void (lives = 0),
    });
    expect(report.failures.map(({ point }) => point.kind)).toContain("crash_after");
  });

  test("a world that waits for what passed in an earlier life polls no longer than its own", async () => {
    const looks: string[] = [];
    const report = await crashEverywhere({
      name: "passed",
      agent: defineAgent({
        name: "asks",
        run: async (ctx) => {
          const { approved } = await ctx.requestInput("Go?");
          await ctx.run("after", () => 1);
          return approved;
        },
      }),
      world: async ({ runtime, sessionId, until }) => {
        await until((session) => {
          looks.push(session?.status ?? "none");
          return session?.status === "input_required";
        });
        await runtime.answer(sessionId, { approved: true });
      },
    });
    expect(report.failures).toEqual([]);
    const seen = looks.length;
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(looks.length).toBe(seen);
  });

  test("a scenario that does not end is told what it waits for", { timeout: 30_000 }, async () => {
    const agent = defineAgent({ name: "waits", run: (ctx) => ctx.waitForSignal("never sent") });
    await expect(crashEverywhere({ name: "no world", agent })).rejects.toMatchObject({
      message: 'scenario "no world" does not end even undisturbed',
      got: 'it is waiting, and waits for signal "never sent"',
      fix: expect.stringContaining("`world`"),
    });
  });
});
