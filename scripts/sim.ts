// `npm run sim`: random programs of agents under random faults, each decided by its seed.
//
//   -- --seed N [--verbose]                        one of them, with its last events or all of them
//   -- --seeds N [--from M] [--minutes K] [--json] many of them, on one core; `npm run campaign -- --seeds N`
//   uses all
//   … --first                                      ends with the first that breaks a promise
//   … --fleet                                      only the fleets of these: several runners and coordinators, and a network
//
// Which seeds are fleets is decided by the seed: every fifth is one (4, 9, 14, …), so that one number replays
// either.
//
// Ends with 1 when a promise was broken.

import { describeFailure, isFleet, simulate } from "@holdfast/simulator";
import { readArguments, readWhole, refuse } from "./arguments.ts";

/** The findings of a run of many seeds. */
export interface SeedsReport {
  readonly seeds: number;
  readonly sessions: number;
  readonly steps: number;
  readonly simulatedMs: number;
  readonly failures: readonly { readonly seed: number; readonly found: string }[];
}

/** After so many it is known that something is wrong. */
const FAILURES_MAX = 20;

const { values } = readArguments(import.meta.filename, {
  seed: { type: "string" },
  seeds: { type: "string" },
  from: { type: "string", default: "1" },
  minutes: { type: "string" },
  fleet: { type: "boolean", default: false },
  first: { type: "boolean", default: false },
  verbose: { type: "boolean", default: false },
  json: { type: "boolean", default: false },
});

if (values.seed !== undefined) await replay(readWhole("seed", values.seed, 0));
else await runMany(readWhole("seeds", values.seeds ?? "2000", 0), readWhole("from", values.from, 0));

async function replay(seed: number): Promise<void> {
  if (values.fleet && !isFleet(seed))
    refuse(`seed ${seed} is no fleet`, "every fifth seed is one: 4, 9, 14, …");
  const report = await simulate(seed);
  const failure = describeFailure(report);
  if (values.verbose) console.log(report.log().join("\n"));
  console.log(
    failure ?? `seed ${seed}: ${report.sessions} sessions, ${report.steps} steps, no promise broken`,
  );
  process.exitCode = failure === undefined ? 0 : 1;
}

async function runMany(count: number, from: number): Promise<void> {
  const startedAt = performance.now();
  const ends =
    values.minutes === undefined ? Infinity : startedAt + readWhole("minutes", values.minutes, 0) * 60_000;
  const failures: { seed: number; found: string }[] = [];
  const sum = { seeds: 0, sessions: 0, steps: 0, simulatedMs: 0 };
  for (let seed = from; seed < from + count && performance.now() < ends; seed++) {
    if (values.fleet && !isFleet(seed)) continue;
    const report = await simulate(seed);
    sum.seeds++;
    sum.sessions += report.sessions;
    sum.steps += report.steps;
    sum.simulatedMs += report.simulatedMs;
    if (report.violation === undefined) continue;
    failures.push({ seed, found: `${report.violation.promise}: ${report.violation.what}` });
    if (failures.length === 1) console.error(describeFailure(report));
    if (failures.length === (values.first ? 1 : FAILURES_MAX)) break;
  }
  const result: SeedsReport = { ...sum, failures };
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
  if (values.json) console.log(JSON.stringify(result));
  else
    console.log(
      `${sum.seeds} seeds, ${sum.sessions} sessions, ${sum.steps} steps in ${seconds} s; ` +
        (failures.length === 0
          ? "no promise broken"
          : `broken by seeds ${failures.map(({ seed }) => seed).join(", ")}`),
    );
  process.exitCode = failures.length === 0 ? 0 : 1;
}
