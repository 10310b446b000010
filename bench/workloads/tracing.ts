// What tracing costs: W1 to W3 with a tracer that hears everything, each beside the same without one. Here the floor is ours.
//
// In CPU time: a tracer is called synchronously and waits for nothing, so it costs nothing else, and the disk would hide it.

import { compositeTracer } from "@holdfast/runtime";
import type { Measured } from "../line.ts";
import { assertDone, inTurns, median } from "../measure.ts";
import type { Bench, Workload } from "../workload.ts";
import { runParallel } from "./parallel.ts";
import { runSequential } from "./sequential.ts";
import { runSessions } from "./sessions.ts";

/** A step that is traced may cost this much more. */
const FACTOR_MAX = 1.1;
const WIDTH = 64;

type Run = (
  tracer?: ReturnType<typeof compositeTracer>,
) => Promise<{ readonly ms: number; readonly cpuMicros: number }>;

export const tracing: Workload = {
  id: "tracing",
  title: "W1 to W3 traced by a composite of a counting tracer, beside the same without a tracer",
  refuses: (storage) => (storage === "postgres" ? "it is not measured with a server" : undefined),
  async *run(bench) {
    const [steps, tasks] = [bench.size(1_000, 20), bench.size(1_000, 20)];
    const shape = { sessions: bench.size(2_000, WIDTH), steps: 3 };
    yield measure(bench, "W1", steps, (tracer) => runSequential(bench, steps, tracer));
    yield measure(bench, "W2", tasks, (tracer) => runParallel(bench, tasks, tracer));
    yield measure(bench, "W3", shape.sessions * shape.steps, (tracer) => runSessions(bench, shape, tracer));
  },
};

async function measure(bench: Bench, variant: string, steps: number, run: Run): Promise<Measured> {
  let events = 0;
  const counting = compositeTracer([{ trace: () => void events++ }]);
  const { ours, floors } = await inTurns(
    bench.repeats,
    () => run(counting),
    () => run(),
  );
  const runs = bench.repeats > 1 ? bench.repeats + 1 : 1;
  assertDone("a start and an end heard of every step", events >= 2 * steps * runs, true);
  const micros = median(ours.map((each) => each.cpuMicros / steps));
  const silentMicros = median(floors.map((each) => each.cpuMicros / steps));
  return {
    variant,
    unit: "µs CPU/step",
    value: micros,
    floor: silentMicros,
    cpuMicrosPerStep: micros,
    goal: "<= 1.1 x without",
    isGoalMet: micros <= FACTOR_MAX * silentMicros,
    more: {
      ms: median(ours.map((each) => each.ms)),
      silentMs: median(floors.map((each) => each.ms)),
      eventsPerStep: events / steps / runs,
    },
  };
}
