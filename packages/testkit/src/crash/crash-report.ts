// `CrashReport`: what `crashEverywhere` has played, and the differences that it has found.

import type { FaultKind } from "../faulty-storage.ts";

/** The four kinds of fault at a commit, and the death of the process at a task's start and end. */
export type CrashKind =
  | Exclude<FaultKind, "crash_before" | "crash_after">
  | "crash_before"
  | "crash_after"
  | "task_start"
  | "task_end";

/** A place of a crash in a run. */
export interface CrashPoint {
  readonly kind: CrashKind;
  /** From 1: the n-th commit, start or end of the undisturbed run. */
  readonly number: number;
}

/** A difference between a run with a crash and the undisturbed run. */
export interface CrashFailure {
  readonly point: CrashPoint;
  readonly what: string;
  readonly expected: unknown;
  readonly got: unknown;
}

/** The runs of `crashEverywhere`, and the differences that it found. */
export interface CrashReport {
  readonly scenario: string;
  readonly storage: string;
  readonly commits: number;
  readonly attempts: number;
  /** How often the scenario was run. */
  readonly runs: number;
  /** The points that were played. */
  readonly points: readonly CrashPoint[];
  /** How the undisturbed run ended. */
  readonly outcome: unknown;
  /** The differences between a run with a fault and the undisturbed run. */
  readonly failures: readonly CrashFailure[];
}
