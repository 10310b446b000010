// W1: one session, sequential trivial durable steps. Every step waits for its own commit, so this is the
// price of one.

import { createRuntime, defineAgent, silentTracer } from "@holdfast/runtime";
import { keepInOrder, withFloor } from "../floors.ts";
import type { Measured } from "../line.ts";
import { assertDone, cpuMicros, gaps, inTurns, median, nowMs, percentile } from "../measure.ts";
import { withStorage } from "../storages.ts";
import type { Additions, Bench, Workload } from "../workload.ts";

interface Run {
  readonly ms: number;
  /** One number per step: from the moment the one before ran to the moment it did. */
  readonly stepMs: readonly number[];
  readonly cpuMicros: number;
  readonly statements: number | undefined;
}

/** Steps at both ends whose price is compared. */
const END_STEPS = 500;

export const sequential: Workload = {
  id: "W1",
  title: "one session, sequential durable steps",
  async *run(bench) {
    for (const steps of [bench.size(1_000, 20), bench.size(10_000, 40)]) yield measure(bench, steps);
  },
};

async function measure(bench: Bench, steps: number): Promise<Measured> {
  const { ours, floors } = await inTurns(
    bench.repeats,
    () => runSequential(bench, steps),
    () => runFloor(bench, steps),
  );
  const stepMs = ours.flatMap((run) => run.stepMs);
  const msPerStep = median(ours.map((run) => run.ms / steps));
  const floorMsPerStep = median(floors.map((run) => run.ms / steps));
  const statements = ours[0]?.statements;
  const end = Math.min(END_STEPS, steps >> 1);
  const firstMs = median(ours.flatMap((run) => run.stepMs.slice(0, end)));
  const lastMs = median(ours.flatMap((run) => run.stepMs.slice(-end)));
  return {
    variant: `${steps.toLocaleString("en-US")} steps`,
    unit: "steps/s",
    value: 1_000 / msPerStep,
    floor: 1_000 / floorMsPerStep,
    p50Ms: median(stepMs),
    p99Ms: percentile(stepMs, 0.99),
    cpuMicrosPerStep: median(ours.map((run) => run.cpuMicros / steps)),
    statementsPerStep: statements === undefined ? null : statements / steps,
    ...goalOf(bench, msPerStep, floorMsPerStep),
    more: {
      msPerStep,
      floorMsPerStep,
      firstStepsMs: firstMs,
      lastStepsMs: lastMs,
      lastOverFirst: lastMs / firstMs,
      floorP99Ms: percentile(
        floors.flatMap((run) => run.stepMs),
        0.99,
      ),
    },
  };
}

/** The time that a step may take, as a multiple of a raw commit. */
const FACTORS = { sqlite: 1.25, postgres: 1.6 } as const;

function goalOf({ storage }: Bench, ms: number, floorMs: number): Pick<Measured, "goal" | "isGoalMet"> {
  return storage === "memory"
    ? { goal: "<= 10 µs per step", isGoalMet: ms <= 0.01 }
    : { goal: `<= ${FACTORS[storage]} x a raw commit`, isGoalMet: ms <= FACTORS[storage] * floorMs };
}

export function runSequential(
  { storage: kind, folder }: Bench,
  steps: number,
  { tracer = silentTracer, budget }: Additions = {},
): Promise<Run> {
  return withStorage(kind, folder, async ({ storage, statements }) => {
    const runtime = createRuntime({ storage, tracer });
    const marks: number[] = [];
    const agent = defineAgent({
      name: "sequential",
      run: async (ctx) => {
        let sum = 0;
        for (let i = 0; i < steps; i++) {
          sum += await ctx.run("step", () => {
            marks.push(nowMs());
            return i;
          });
        }
        return sum;
      },
    });
    const statementsBefore = statements();
    const cpuBefore = process.cpuUsage();
    const startedAt = nowMs();
    const session = await runtime.start(agent, undefined, budget && { budget });
    const sum = await session.result();
    const endedAt = nowMs();
    const used = cpuMicros(cpuBefore);
    assertDone("the sum of the steps", sum, ((steps - 1) * steps) / 2);
    assertDone("steps that ran", marks.length, steps);
    // Per step its command and its outcome; besides them the start and the end.
    assertDone("records of the session", (await session.session()).nextSeq, 2 * steps + 2);
    await runtime.close();
    marks.push(endedAt);
    return {
      ms: endedAt - startedAt,
      stepMs: gaps(marks),
      cpuMicros: used,
      statements: statementsBefore === undefined ? undefined : (statements() ?? 0) - statementsBefore,
    };
  });
}

function runFloor({ storage: kind, folder }: Bench, steps: number): Promise<Pick<Run, "ms" | "stepMs">> {
  return withFloor(kind, folder, async (floor) => {
    const marks = [nowMs()];
    await keepInOrder(floor, 1, steps, () => marks.push(nowMs()));
    assertDone("rows of the floor", floor.count, steps);
    return { ms: marks.at(-1)! - marks[0]!, stepMs: gaps(marks) };
  });
}
