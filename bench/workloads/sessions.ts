// W3: many short sessions, 64 at a time. The fsync is shared between them, or it is the ceiling.

import { createRuntime, defineAgent, silentTracer } from "@holdfast/runtime";
import { keepInOrder, withFloor } from "../floors.ts";
import type { Measured } from "../line.ts";
import { assertDone, cpuMicros, eachOf, inTurns, median, nowMs, percentile } from "../measure.ts";
import { withStorage } from "../storages.ts";
import type { Additions, Bench, Workload } from "../workload.ts";

interface Shape {
  readonly sessions: number;
  readonly steps: number;
}

const WIDTH = 64;

export const sessions: Workload = {
  id: "W3",
  title: "many sessions, 64 at a time",
  async *run(bench) {
    // Long ones first: what a step costs when its session's beginning and end hardly count.
    yield measure(bench, { sessions: bench.size(WIDTH, 8), steps: bench.size(100, 5) });
    yield measure(bench, { sessions: bench.size(2_000, 80), steps: 3 });
  },
};

async function measure(bench: Bench, shape: Shape): Promise<Measured> {
  const all = shape.sessions * shape.steps;
  const { ours, floors } = await inTurns(
    bench.repeats,
    () => runSessions(bench, shape),
    () => runFloor(bench, shape),
  );
  const value = median(ours.map(({ ms }) => (all * 1_000) / ms));
  const floor = median(floors.map((ms) => (all * 1_000) / ms));
  const cpu = median(ours.map((run) => run.cpuMicros / all));
  const sessionMs = ours.flatMap((run) => run.sessionMs);
  const statements = ours[0]?.statements;
  return {
    variant: `${shape.sessions.toLocaleString("en-US")} sessions x ${shape.steps} steps`,
    unit: "steps/s",
    value,
    floor,
    p50Ms: median(sessionMs),
    p99Ms: percentile(sessionMs, 0.99),
    cpuMicrosPerStep: cpu,
    statementsPerStep: statements === undefined ? null : statements / all,
    ...goalOf(bench, value / floor, cpu),
    more: { sessionsPerSecond: value / shape.steps },
  };
}

/** Least part of the floor. */
const PARTS = { sqlite: 0.55, postgres: 0.35 } as const;

function goalOf({ storage }: Bench, part: number, cpu: number): Pick<Measured, "goal" | "isGoalMet"> {
  if (storage === "memory") return { goal: "<= 40 µs CPU per step", isGoalMet: cpu <= 40 };
  const least = PARTS[storage];
  return {
    goal: `>= ${least} of the floor, <= 40 µs CPU per step`,
    isGoalMet: part >= least && cpu <= 40,
  };
}

export function runSessions(
  { storage: kind, folder }: Bench,
  shape: Shape,
  { tracer = silentTracer, budget }: Additions = {},
) {
  return withStorage(kind, folder, async ({ storage, statements }) => {
    const runtime = createRuntime({ storage, tracer });
    let ran = 0;
    const agent = defineAgent({
      name: "short",
      run: async (ctx) => {
        let sum = 0;
        for (let i = 0; i < shape.steps; i++) {
          sum += await ctx.run("step", () => {
            ran++;
            return i;
          });
        }
        return sum;
      },
    });
    const expected = ((shape.steps - 1) * shape.steps) / 2;
    const sessionMs: number[] = [];
    const statementsBefore = statements();
    const cpuBefore = process.cpuUsage();
    const startedAt = nowMs();
    await eachOf(shape.sessions, WIDTH, async () => {
      const from = nowMs();
      const session = await runtime.start(agent, undefined, budget && { budget });
      assertDone("the sum of a session's steps", await session.result(), expected);
      sessionMs.push(nowMs() - from);
    });
    const ms = nowMs() - startedAt;
    const used = cpuMicros(cpuBefore);
    assertDone("steps that ran", ran, shape.sessions * shape.steps);
    const page = await storage.reader.sessions({ limit: shape.sessions + 1, status: "completed" });
    assertDone("sessions that completed", page.length, shape.sessions);
    await runtime.close();
    return {
      ms,
      sessionMs,
      cpuMicros: used,
      statements: statementsBefore === undefined ? undefined : (statements() ?? 0) - statementsBefore,
    };
  });
}

function runFloor({ storage: kind, folder }: Bench, shape: Shape): Promise<number> {
  return withFloor(kind, folder, async (floor) => {
    const startedAt = nowMs();
    await eachOf(shape.sessions, WIDTH, (session) => keepInOrder(floor, session, shape.steps));
    assertDone("rows of the floor", floor.count, shape.sessions * shape.steps);
    return nowMs() - startedAt;
  });
}
