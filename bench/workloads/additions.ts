// The cost of tracing and of a budget: W1 to W3 with a tracer of all events, or under limits. The floor here
// is the same workload without them.
//
// The unit is CPU time, because neither waits for anything, and the disk would hide their cost.

import { compositeTracer } from "@holdfast/runtime";
import type { Measured } from "../line.ts";
import { assertDone, inTurns, median } from "../measure.ts";
import type { Additions, Bench, Workload } from "../workload.ts";
import { runParallel } from "./parallel.ts";
import { runSequential } from "./sequential.ts";
import { runSessions } from "./sessions.ts";

/** A step with it may cost this much of what it costs without. */
const TRACING_MAX = 1.05;
const BUDGET_MAX = 1.2;
const WIDTH = 64;
/** Out of reach: every step is held for and settled. */
const BUDGET = { maxSteps: 1_000_000_000, maxCostMicroUsd: 1_000_000_000 };

type Run = (additions?: Additions) => Promise<{ readonly ms: number; readonly cpuMicros: number }>;

interface Compared {
  readonly variant: string;
  readonly steps: number;
  readonly run: Run;
}

const refuses: Workload["refuses"] = (storage) =>
  storage === "postgres" ? "it is not measured with a server" : undefined;

export const tracing: Workload = {
  id: "tracing",
  title: "W1 to W3 traced by a composite of a counting tracer, beside the same without a tracer",
  refuses,
  async *run(bench) {
    for (const compared of comparedIn(bench)) {
      let events = 0;
      const tracer = compositeTracer([{ trace: () => void events++ }]);
      const measured = await measure(bench, compared, { tracer }, TRACING_MAX);
      const steps = compared.steps * (bench.repeats > 1 ? bench.repeats + 1 : 1);
      assertDone("a start and an end heard of every step", events >= 2 * steps, true);
      yield { ...measured, more: { ...measured.more, eventsPerStep: events / steps } };
    }
  },
};

export const budgets: Workload = {
  id: "budgets",
  title: "W1 to W3 with limits of steps and cost, beside the same without a budget",
  refuses,
  async *run(bench) {
    for (const compared of comparedIn(bench)) yield measure(bench, compared, { budget: BUDGET }, BUDGET_MAX);
  },
};

function comparedIn(bench: Bench): readonly Compared[] {
  const [steps, tasks] = [bench.size(1_000, 20), bench.size(1_000, 20)];
  const shape = { sessions: bench.size(2_000, WIDTH), steps: 3 };
  return [
    { variant: "W1", steps, run: (additions) => runSequential(bench, steps, additions) },
    { variant: "W2", steps: tasks, run: (additions) => runParallel(bench, tasks, additions) },
    {
      variant: "W3",
      steps: shape.sessions * shape.steps,
      run: (additions) => runSessions(bench, shape, additions),
    },
  ];
}

async function measure(
  { repeats }: Bench,
  { variant, steps, run }: Compared,
  additions: Additions,
  factorMax: number,
): Promise<Measured> {
  const { ours, floors } = await inTurns(
    repeats,
    () => run(additions),
    () => run(),
  );
  const micros = median(ours.map((each) => each.cpuMicros / steps));
  const plainMicros = median(floors.map((each) => each.cpuMicros / steps));
  return {
    variant,
    unit: "µs CPU/step",
    value: micros,
    floor: plainMicros,
    cpuMicrosPerStep: micros,
    goal: `<= ${factorMax} x without`,
    isGoalMet: micros <= factorMax * plainMicros,
    more: {
      ms: median(ours.map((each) => each.ms)),
      plainMs: median(floors.map((each) => each.ms)),
    },
  };
}
