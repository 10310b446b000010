// The parts that adapters share whose agent is a process: limits, the events before a subscriber comes, and
// the reason why a process ended.

import { MIB } from "@holdfast/core";
import { describeProcessEnd, type ProcessReport, type Redactor } from "@holdfast/system";

import type { ExternalEnd, ExternalEvent } from "../external-agent-protocol.ts";

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

/** Events that wait for their subscriber, which comes at once. */
const EVENTS_MAX = 10_000;
export const TOO_MANY_EVENTS = `it wrote more than ${EVENTS_MAX} events at once`;

/** Gives every event to one subscriber, in order, also those that came before it. */
export class EventQueue {
  #subscriber: ((event: ExternalEvent) => void) | undefined;
  readonly #waiting: ExternalEvent[] = [];

  /** More events came before a subscriber than are kept. */
  get isOverflowing(): boolean {
    return this.#waiting.length > EVENTS_MAX;
  }

  subscribe(subscriber: (event: ExternalEvent) => void): void {
    this.#subscriber = subscriber;
    for (const event of this.#waiting.splice(0)) subscriber(event);
  }

  give(event: ExternalEvent): void {
    if (this.#subscriber !== undefined) this.#subscriber(event);
    else if (!this.isOverflowing) this.#waiting.push(event);
  }
}

/** A turn that was aborted or cut off ends with what ended its process. */
export function withProcess(end: ExternalEnd, report: ProcessReport): ExternalEnd {
  return end.type === "aborted" || end.type === "died" ? { ...end, process: report.end } : end;
}

/** Why a process ended before its turn did: its end, and the last of what it wrote for people. */
export function whyDied({ end, stderr }: ProcessReport, redactor: Redactor, more = ""): string {
  const said = redactor.text(stderr).trim().slice(-AGENT_PROCESS.errorChars);
  return [describeProcessEnd(end), said, more].filter((text) => text !== "").join(": ");
}
