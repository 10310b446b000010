// What one session's driver tells whoever watches: what is so, when it is so, and nothing at all when nobody listens.
//
//   session-trace-1. A turn that was told to have started is told to have ended, once, however it ends.
//   session-trace-2. What is told of the row or of waits is committed.

import {
  positionId,
  type Clock,
  type SealedSegment,
  type Session,
  type TraceEvent,
  type Wait,
} from "@holdfast/core";
import { departureEvent, type Departure } from "./driver-exit.ts";

export class SessionTrace {
  /** Whoever listens. Events are built only for somebody. */
  readonly listener: ((event: TraceEvent) => void) | undefined;
  readonly #sessionId: string;
  readonly #clock: Clock;
  /** The turn that was told to have started, and not to have ended. */
  #turn: number | undefined;

  constructor(sessionId: string, clock: Clock, listener: ((event: TraceEvent) => void) | undefined) {
    this.#sessionId = sessionId;
    this.#clock = clock;
    this.listener = listener;
  }

  started({ name, version, traceparent }: Session["agent"], recovered: boolean): void {
    this.listener?.({
      ...this.#stamp(),
      type: "session_started",
      agent: name,
      version,
      recovered,
      ...(traceparent === undefined ? {} : { traceparent }),
    });
  }

  turnStarted(turn: number, recovered: boolean): void {
    this.#turn = turn;
    this.listener?.({ ...this.#stamp(), type: "turn_started", turn, recovered });
  }

  turnEnded(outcome: Extract<TraceEvent, { type: "turn_ended" }>["outcome"]): void {
    if (this.#turn === undefined) return;
    this.listener?.({ ...this.#stamp(), type: "turn_ended", turn: this.#turn, outcome });
    this.#turn = undefined;
  }

  committed({ records, entries, firstSeq }: SealedSegment): void {
    if (this.listener === undefined) return;
    const nextSeq = firstSeq + records.length;
    this.listener({ ...this.#stamp(), type: "committed", records: records.length, nextSeq });
    for (const { id, role, content } of entries) {
      const entryId = positionId(this.#sessionId, id);
      this.listener({ ...this.#stamp(), type: "entry_appended", entryId, role, content });
    }
  }

  waiting(waits: readonly Wait[]): void {
    this.listener?.({ ...this.#stamp(), type: "waiting", waits });
  }

  signalReceived(name: string): void {
    this.listener?.({ ...this.#stamp(), type: "signal_received", name });
  }

  departed(departure: Departure): void {
    this.turnEnded("interrupted");
    this.listener?.({ ...this.#stamp(), ...departureEvent(departure) });
  }

  #stamp(): { readonly sessionId: string; readonly at: number } {
    return { sessionId: this.#sessionId, at: this.#clock.now() };
  }
}
