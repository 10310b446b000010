// The parts that adapters share whose agent is a process: limits, and the reason why a process ended.

import { MIB } from "@holdfast/core";
import { describeProcessEnd, type ProcessReport, type Redactor } from "@holdfast/system";

import type { ExternalEnd } from "../external-agent-protocol.ts";

/** How long the steps of an abort take. */
export interface StopLimits {
  /** From a request to end the turn to SIGTERM. */
  readonly askMs: number;
  /** From SIGTERM to SIGKILL. */
  readonly graceMs: number;
}

export const AGENT_PROCESS = {
  /** From a request to end the turn to SIGTERM. */
  askMs: 5_000,
  /** From SIGTERM to SIGKILL. */
  graceMs: 3_000,
  /** The output that is kept for errors. */
  outputBytes: 128 * 1024,
  /** One message, which may hold a picture. */
  lineChars: 16 * MIB,
  errorChars: 1_000,
} as const;

export const LINE_TOO_LONG = `it wrote a line of more than ${AGENT_PROCESS.lineChars} characters`;

/** A turn that was aborted or cut off ends with what ended its process. */
export function withProcess(end: ExternalEnd, report: ProcessReport): ExternalEnd {
  return end.type === "aborted" || end.type === "died" ? { ...end, process: report.end } : end;
}

/** Why a process ended before its turn did: its end, and the last of what it wrote for people. */
export function whyDied({ end, stderr }: ProcessReport, redactor: Redactor, more = ""): string {
  const said = redactor.text(stderr).trim().slice(-AGENT_PROCESS.errorChars);
  return [describeProcessEnd(end), said, more].filter((text) => text !== "").join(": ");
}
