// One measured variant of one workload: what `--json` prints, a line each, and how it reads in a table.

import type { StorageKind } from "./storages.ts";

export interface Line {
  readonly workload: string;
  readonly variant: string;
  readonly storage: StorageKind;
  readonly unit: string;
  /** Median over the repeats. */
  readonly value: number;
  /** The same of the floor, taken in turns with ours. `null` where there is nothing to stand beside. */
  readonly floor: number | null;
  /** `value / floor`. Whether more is better depends on the unit. */
  readonly ratio: number | null;
  /** Percentile of our side, over the samples of all repeats. */
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
  readonly cpuMicrosPerStep: number | null;
  readonly statementsPerStep: number | null;
  /** The goal of this line, and whether this run met it; `null` without a goal. */
  readonly goal: string | null;
  readonly isGoalMet: boolean | null;
  /** Other measurements, each with its unit in the name. Printed beside the rest. */
  readonly more: Readonly<Record<string, number>>;
}

/** The fields that a workload gives; the others are the same for all of its variants, or absent. */
export type Measured = Pick<Line, "variant" | "unit" | "value"> &
  Partial<Omit<Line, "ratio" | "workload" | "storage">>;

export function makeLine(workload: string, storage: StorageKind, measured: Measured): Line {
  const { variant, unit, value, floor = null, more = {} } = measured;
  return {
    workload,
    variant,
    storage,
    unit,
    value: rounded(value),
    floor: floor === null ? null : rounded(floor),
    ratio: floor === null || floor === 0 ? null : rounded(value / floor),
    p50Ms: roundedOrNull(measured.p50Ms),
    p99Ms: roundedOrNull(measured.p99Ms),
    cpuMicrosPerStep: roundedOrNull(measured.cpuMicrosPerStep),
    statementsPerStep: roundedOrNull(measured.statementsPerStep),
    goal: measured.goal ?? null,
    isGoalMet: measured.isGoalMet ?? null,
    more: Object.fromEntries(Object.entries(more).map(([name, number]) => [name, rounded(number)])),
  };
}

/** The exit code of the bench: 1 when a gate misses its goal. */
export function exitCodeOf(
  lines: readonly (Pick<Line, "isGoalMet"> & { readonly isGate: boolean })[],
): 0 | 1 {
  return lines.some(({ isGate, isGoalMet }) => isGate && isGoalMet === false) ? 1 : 0;
}

export function toJsonLine({ more, ...line }: Line): string {
  return JSON.stringify({ ...line, ...more });
}

const COLUMNS: readonly (readonly [title: string, cell: (line: Line) => string])[] = [
  ["", (line) => line.workload],
  ["storage", (line) => line.storage],
  ["variant", (line) => line.variant],
  ["ours", (line) => `${shown(line.value)} ${line.unit}`],
  ["floor", (line) => shown(line.floor)],
  ["ratio", (line) => shown(line.ratio)],
  ["p50 ms", (line) => shown(line.p50Ms)],
  ["p99 ms", (line) => shown(line.p99Ms)],
  ["CPU µs/step", (line) => shown(line.cpuMicrosPerStep)],
  ["SQL/step", (line) => shown(line.statementsPerStep)],
  [
    "goal",
    (line) =>
      line.goal === null || line.isGoalMet === null
        ? ""
        : `${line.isGoalMet ? "met" : "MISSED"}: ${line.goal}`,
  ],
];

export function toTable(lines: readonly Line[]): string {
  const rows = [
    COLUMNS.map(([title]) => title),
    ...lines.map((line) => COLUMNS.map(([, cell]) => cell(line))),
  ];
  const widths = COLUMNS.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const table = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join("  ")
      .trimEnd(),
  );
  const notes = lines.flatMap(({ workload, storage, variant, more }) => {
    const parts = Object.entries(more).map(([name, number]) => `${name} ${shown(number)}`);
    return parts.length === 0 ? [] : [`${workload} ${storage}, ${variant}: ${parts.join(", ")}`];
  });
  return [...table, ...(notes.length === 0 ? [] : ["", ...notes])].join("\n");
}

function shown(number: number | null): string {
  if (number === null) return "-";
  return number.toLocaleString("en-US", { maximumSignificantDigits: Math.max(3, digitsBefore(number)) });
}

function digitsBefore(number: number): number {
  return Math.min(21, Math.trunc(Math.abs(number)).toString().length);
}

/** Four digits: no run of ours is more exact than that. */
function rounded(number: number): number {
  return Number.isFinite(number) ? Number(number.toPrecision(Math.max(4, digitsBefore(number)))) : number;
}

function roundedOrNull(number: number | null | undefined): number | null {
  return number === null || number === undefined || !Number.isFinite(number) ? null : rounded(number);
}
