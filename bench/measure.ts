// Time, medians, and taking turns with the floor.

import { readFileSync } from "node:fs";

// Taken before a runtime watches it: in development it reports agents that read clocks, and ours do, to be
// measured.
const hrtime = process.hrtime.bigint;

/** Milliseconds of a clock that all processes of this machine share. */
export function nowMs(): number {
  return Number(hrtime()) / 1e6;
}

export function median(numbers: readonly number[]): number {
  return percentile(numbers, 0.5);
}

/** The smallest number that is not below the given part of them; NaN of none. */
export function percentile(numbers: readonly number[], part: number): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? Number.NaN;
}

export function mean(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
}

/** From each mark to the next. */
export function gaps(marks: readonly number[]): number[] {
  return marks.slice(1).map((mark, i) => mark - marks[i]!);
}

/** CPU time of this process, all threads, in microseconds since `before`. */
export function cpuMicros(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

/** CPU time of all processes that this one has started and that have ended, in milliseconds and steps of ten. */
export function startedCpuMs(): number {
  const fields = statusOf("self");
  return (Number(fields[13]) + Number(fields[14])) * 10;
}

/** CPU time of a running process, in milliseconds and steps of ten. */
export function runningCpuMs(pid: number): number {
  const fields = statusOf(String(pid));
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** The fields from the state on. Times are in ticks of 10 ms. */
function statusOf(process: string): readonly string[] {
  // pid (name) state parent …, and the name may hold spaces and parentheses.
  const status = readFileSync(`/proc/${process}/stat`, "latin1");
  return status.slice(status.lastIndexOf(")") + 2).split(" ");
}

/** Run `job` for 0..count-1, `width` at a time, each worker its next one as soon as it is done with one. */
export async function eachOf(
  count: number,
  width: number,
  job: (index: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await job(next++);
  };
  await Promise.all(Array.from({ length: Math.min(width, count) }, worker));
}

/**
 * Runs both sides `repeats` times, in turns and with alternating order, so that a slow period of the machine
 * slows both. With more than one repeat, the first run of each side only compiles the code and does not
 * count.
 */
export async function inTurns<Ours, Floor>(
  repeats: number,
  runOurs: () => Promise<Ours>,
  runFloor: () => Promise<Floor>,
): Promise<{ readonly ours: readonly Ours[]; readonly floors: readonly Floor[] }> {
  const ours: Ours[] = [];
  const floors: Floor[] = [];
  if (repeats > 1) {
    await runFloor();
    await runOurs();
  }
  for (let i = 0; i < repeats; i++) {
    if (i % 2 === 0) floors.push(await runFloor());
    ours.push(await runOurs());
    if (i % 2 === 1) floors.push(await runFloor());
  }
  return { ours, floors };
}

/** Wait for something that no event tells of, without being what keeps the process busy. */
export async function until(what: string, isSo: () => boolean, patienceMs = 600_000): Promise<void> {
  const giveUpAt = nowMs() + patienceMs;
  for (let i = 0; !isSo(); i++) {
    if (nowMs() > giveUpAt) throw new Error(`waited ${patienceMs / 1_000} s for ${what}`);
    await new Promise((resolve) => (i < 1_000 ? setImmediate(resolve) : setTimeout(resolve, 1)));
  }
}

/** A benchmark of work that was not done is worse than none. */
export function assertDone(what: string, got: unknown, expected: unknown): void {
  if (JSON.stringify(got) === JSON.stringify(expected)) return;
  throw new Error(
    `${what}: got ${JSON.stringify(got)}, expected ${JSON.stringify(expected)}; the figures would mean nothing`,
  );
}
