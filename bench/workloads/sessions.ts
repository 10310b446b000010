// W3: many sessions, 64 at a time. The fsync is shared between them, or it is the ceiling.
//
// The floor of a session is `four`: the start is acknowledged, then step after step, the last one with the
// end. A session of three steps is four commits and five rows on both sides.

import { createRuntime, defineAgent, silentTracer } from "@holdfast/runtime";
import { keepSession, withFloor } from "../floors.ts";
import { runInFreshProcess, type Shape } from "../fresh.ts";
import type { Measured } from "../line.ts";
import { assertDone, cpuMicros, eachOf, inTurns, median, nowMs } from "../measure.ts";
import { withStorage } from "../storages.ts";
import type { Additions, Bench, Workload } from "../workload.ts";

interface Goal {
  /** Least part of the floor, where a disk is involved. */
  readonly sqlite: number;
  readonly postgres: number;
  /** CPU per step of ours. */
  readonly microsMax: number;
}

const WIDTH = 64;
const LONG: Goal = { sqlite: 0.65, postgres: 0.35, microsMax: 20 };
const SUSTAINED: Goal = { sqlite: 0.4, postgres: 0.35, microsMax: 25 };
const COLD: Goal = { sqlite: 0.25, postgres: 0.35, microsMax: Infinity };

export const sessions: Workload = {
  id: "W3",
  title: "many sessions, 64 at a time",
  async *run(bench) {
    // Long ones first: what a step costs when its session's beginning and end hardly count.
    yield measure(bench, { sessions: bench.size(WIDTH, 8), steps: bench.size(100, 5) }, "", LONG);
    yield measure(bench, { sessions: bench.size(30_000, 80), steps: 3 }, ", sustained", SUSTAINED);
    yield measure(bench, { sessions: bench.size(2_000, 80), steps: 3 }, ", cold", COLD);
  },
};

/** Each run of either side is a process of its own. */
async function measure(
  { storage, folder, repeats }: Bench,
  shape: Shape,
  suffix: string,
  goal: Goal,
): Promise<Measured> {
  const all = shape.sessions * shape.steps;
  const run = { workload: "W3", storage, folder, shape } as const;
  const { ours, floors } = await inTurns(
    repeats,
    () => runInFreshProcess({ ...run, side: "ours" }),
    () => runInFreshProcess({ ...run, side: "floor" }),
  );
  const value = median(ours.map(({ ms }) => (all * 1_000) / ms));
  const floor = median(floors.map(({ ms }) => (all * 1_000) / ms));
  const cpu = median(ours.map((each) => (each.cpuMicros ?? Number.NaN) / all));
  const statements = ours[0]?.statements;
  return {
    variant: `${shape.sessions.toLocaleString("en-US")} sessions x ${shape.steps} steps${suffix}`,
    unit: "steps/s",
    value,
    floor,
    p50Ms: median(ours.map((each) => each.p50Ms ?? Number.NaN)),
    p99Ms: median(ours.map((each) => each.p99Ms ?? Number.NaN)),
    cpuMicrosPerStep: cpu,
    statementsPerStep: statements === undefined ? null : statements / all,
    ...judged(storage, goal, value / floor, cpu),
    more: { sessionsPerSecond: value / shape.steps },
  };
}

function judged(
  storage: Bench["storage"],
  { sqlite, postgres, microsMax }: Goal,
  part: number,
  cpu: number,
): Pick<Measured, "goal" | "isGoalMet"> {
  const isCpuMet = cpu <= microsMax;
  const cpuGoal = microsMax === Infinity ? [] : [`<= ${microsMax} µs CPU per step`];
  if (storage === "memory") return cpuGoal.length === 0 ? {} : { goal: cpuGoal.join(), isGoalMet: isCpuMet };
  const least = storage === "sqlite" ? sqlite : postgres;
  return {
    goal: [`>= ${least} of the floor`, ...cpuGoal].join(", "),
    isGoalMet: part >= least && isCpuMet,
  };
}

export function runSessions(
  { storage: kind, folder }: Pick<Bench, "storage" | "folder">,
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

export function runSessionsFloor(
  { storage: kind, folder }: Pick<Bench, "storage" | "folder">,
  shape: Shape,
): Promise<number> {
  return withFloor(kind, folder, async (floor) => {
    const startedAt = nowMs();
    await eachOf(shape.sessions, WIDTH, (session) => keepSession(floor, session, shape.steps));
    const ms = nowMs() - startedAt;
    assertDone("rows of the floor", floor.count, shape.sessions * (shape.steps + 2));
    return ms;
  });
}
