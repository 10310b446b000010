// `npm test` plays every third point of each scenario in memory, and the crash-points campaign plays all
// (`HOLDFAST_CAMPAIGN`).

import { storageWith } from "@holdfast/core";
import { defineAgent, defineTask, MemoryStorage } from "@holdfast/runtime";
import { describe, expect, test } from "vitest";
import { isCampaign, ofCampaign } from "@holdfast/testkit/campaign";
import { crashEverywhere, memorySubject, type CrashSubject, type CrashWorld } from "./crash-everywhere.ts";
import type { CrashPoint } from "./crash-report.ts";
import { crashScenarios } from "./crash-scenarios.ts";

const EVERY = isCampaign ? 1 : 3;

describe("H9: a crash at any point, and a resume, is the same as no crash (memory)", () => {
  // The scenarios begin at different points, so together they meet every kind of point.
  test.each(crashScenarios.map((scenario, from) => ({ name: scenario.name, scenario, from })))(
    "$name",
    async ({ scenario, from }) => {
      const report = await crashEverywhere(scenario, memorySubject, { every: EVERY, from });
      expect(report.failures).toEqual([]);
      expect(report.commits).toBeGreaterThan(1);
    },
  );
});

describe("the harness sees what it is there to see", () => {
  test("samples that begin at each of the first n points are together all points, each once", async () => {
    const scenario = {
      name: "two tasks",
      agent: defineAgent({
        name: "two",
        run: async (ctx) => [await ctx.run("a", () => 1), await ctx.run("b", () => 2)],
      }),
    };
    const whole = await crashEverywhere(scenario);
    const samples = await Promise.all(
      [0, 1, 2].map((from) => crashEverywhere(scenario, memorySubject, { every: 3, from })),
    );
    const named = (points: readonly CrashPoint[]) =>
      points.map(({ kind, number }) => `${kind} ${number}`).sort();
    expect(named(samples.flatMap(({ points }) => points))).toEqual(named(whole.points));
    expect(samples.map(({ points }) => points.length)).not.toContain(whole.points.length);
  });

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

  test("a variable of the agent that a step fills is a failure", async () => {
    const report = await crashEverywhere({
      name: "filled variable",
      agent: defineAgent({
        name: "fills",
        run: async (ctx) => {
          const found: number[] = [];
          await ctx.run("search", () => void found.push(1));
          await ctx.run("report", () => null);
          return found.length;
        },
      }),
    });
    expect(report.failures.map(({ point }) => point.kind)).toContain("crash_after");
  });

  // The session has ended by then, and its runtime waits for the answer that never comes.
  test("a crash in a commit that comes after the end is survived", async () => {
    let world: CrashWorld | undefined;
    const report = await crashEverywhere({
      name: "late signal",
      agent: defineAgent({ name: "quick", run: (ctx) => ctx.run("one", () => 1) }),
      world: async (given) => void (world = given),
      effects: () => void world?.runtime.signal(world.sessionId, "late").catch(() => {}),
    });
    expect(report.failures).toEqual([]);
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

  // The dedup of storage would drop the second of two signals with one id, which looks like a signal that was
  // lost.
  test("two incarnations of a process never mint the same id, and restart the session with the same seed", async () => {
    const shared: string[] = [];
    let incarnation = 0;
    let signals = 0;
    const seeds = new Set<number>();
    const recording: CrashSubject = {
      name: "recording",
      open: async () => {
        const inner = new MemoryStorage();
        const minted = new Map<string, number>();
        return storageWith(inner, {
          commit: (changes, now) => {
            for (const change of changes) {
              if (change.type === "send_signal") {
                // An id begins with the time, which two incarnations may share; the rest is their draws.
                const drawn = change.signalId.split("-").slice(2).join("-");
                if ((minted.get(drawn) ?? incarnation) !== incarnation) shared.push(drawn);
                minted.set(drawn, incarnation);
                signals++;
              }
              if (change.type === "create_session") seeds.add(change.seed);
            }
            return inner.commit(changes, now);
          },
        });
      },
    };
    const run = await crashEverywhere(
      {
        name: "signals without dedup keys",
        agent: defineAgent({ name: "patient", run: (ctx) => ctx.waitForSignal("go") }),
        world: async ({ runtime, sessionId }) => {
          incarnation++;
          await runtime.signal(sessionId, "go", true);
        },
      },
      recording,
    );
    expect(run.failures).toEqual([]);
    expect(signals).toBeGreaterThan(1);
    expect(shared).toEqual([]);
    expect(seeds.size).toBe(1);
  });

  test(
    "a scenario that does not end is told what it waits for",
    { ...ofCampaign, timeout: 30_000 },
    async () => {
      const agent = defineAgent({ name: "waits", run: (ctx) => ctx.waitForSignal("never sent") });
      await expect(crashEverywhere({ name: "no world", agent })).rejects.toMatchObject({
        message: expect.stringMatching(
          /does not end even undisturbed: it is waiting, and waits for signal "never sent".*`world`/,
        ),
      });
    },
  );
});
