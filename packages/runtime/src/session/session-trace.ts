// `SessionTrace`: the trace events of one session's driver. Without a tracer no event is built.
//
//   - Each traced start of a turn has one traced end, however the turn ends.
//   - Events about the row or the waits are traced after their commit.

import {
  positionId,
  type Clock,
  type SealedSegment,
  type Session,
  type TraceEvent,
  type Wait,
} from "@holdfast/core";
import { departureEvent, type Departure } from "./session-outcome.ts";

export class SessionTrace {
  /** The tracer's function; events are built only when there is one. */
  readonly listener: ((event: TraceEvent) => void) | undefined;
  readonly #sessionId: string;
  readonly #clock: Clock;
  /** The turn whose start was traced, and whose end was not. */
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
