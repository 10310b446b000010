// `TurnEvents`: records what the agent of a turn says and asks, as signals of its session. The rules are in
// `turn-task.ts`.

import { HoldfastError, MIB, toError } from "@holdfast/core";
import type { TaskContext } from "@holdfast/runtime";

import { boundedEvent } from "./bounded-events.ts";
import type { ExternalEvent } from "./external-agent-protocol.ts";
import { priced, type BudgetFence } from "./limits/budget-fence.ts";
import type { PendingCall, SessionCallEvent } from "./way-back/pending-calls.ts";

/** The name of the signals with events. */
export const REPORT_SIGNAL = "external_agent.report";

/** The payload of a signal. */
export interface StoredReport {
  readonly events: readonly RecordedEvent[];
  /** The number of the turn. */
  readonly turn: number;
  /** The usage among the events was charged with the signal. */
  readonly isCharged: true;
}

export type RecordedEvent = Exclude<ExternalEvent, TextDelta> | SessionCallEvent;
type TextDelta = Extract<ExternalEvent, { type: "text_delta" }>;

/** Events that wait to be stored. */
const PENDING_CHARS_MAX = 32 * MIB;
/** The events of one signal. A single event may be larger. */
const REPORT_CHARS = 256 * 1024;

interface TurnEventsOptions {
  readonly task: TaskContext;
  /** The number of the turn. */
  readonly turn: number;
  readonly fence: BudgetFence;
  /** The id of the agent's session, if an earlier turn has learned it. */
  readonly boundId: string | null;
  /** Gives each event to the turn at work before it is recorded. */
  readonly note: (event: ExternalEvent | SessionCallEvent) => void;
  /** Ends the turn: an event cannot be recorded. */
  readonly onError: () => void;
}

export class TurnEvents {
  boundId: string | null;
  /** The agent has reported usage. */
  isCounted = false;
  readonly #task: TaskContext;
  readonly #fence: BudgetFence;
  readonly #note: TurnEventsOptions["note"];
  readonly #reports: Reports;

  constructor({ task, turn, fence, boundId, note, onError }: TurnEventsOptions) {
    this.#task = task;
    this.#fence = fence;
    this.boundId = boundId;
    this.#note = note;
    this.#reports = new Reports(task, turn, fence, onError);
  }

  addNotice(text: string): void {
    this.#reports.add({ type: "notice", text });
  }

  addCall(call: PendingCall): void {
    const event = { type: "session_call", ...call } as const;
    this.#note(event);
    this.#reports.add(event);
  }

  add(given: ExternalEvent): void {
    const bounded = boundedEvent(given); // turn-task-8.
    if (typeof bounded === "string") return this.#reports.refuse(bounded);
    const event = bounded.type === "usage" ? { ...bounded, usage: priced(bounded.usage) } : bounded;
    this.#note(event);
    if (event.type === "session_started") this.boundId = event.boundId ?? this.boundId;
    if (event.type === "usage") {
      this.isCounted = true;
      this.#task.reportUsage({ ...event.usage, isCharged: true });
      this.#fence.use(event.usage);
    }
    this.#reports.add(event);
  }

  /** Settles when every event so far is stored. @throws what prevented one. */
  stored(): Promise<void> {
    return this.#reports.stored();
  }

  /** @returns the number of reports. @throws what prevented one. */
  end(): Promise<number> {
    return this.#reports.end();
  }
}

/**
 * turn-task-2. Stores events in their order, several in one signal while the storage is busy. Pieces of text
 * are not stored. They are streamed when all that came before them is stored.
 */
class Reports {
  readonly #task: TaskContext;
  readonly #turn: number;
  readonly #fence: BudgetFence;
  readonly #onError: () => void;
  #pending: (RecordedEvent | TextDelta)[] = [];
  #pendingChars = 0;
  #stored = 0;
  #storing: Promise<void> | undefined;
  #error: Error | undefined;

  constructor(task: TaskContext, turn: number, fence: BudgetFence, onError: () => void) {
    this.#task = task;
    this.#turn = turn;
    this.#fence = fence;
    this.#onError = onError;
  }

  add(event: RecordedEvent | TextDelta): void {
    if (this.#error !== undefined) return;
    this.#pending.push(event);
    this.#pendingChars += sizeOf(event);
    if (this.#pendingChars > PENDING_CHARS_MAX)
      this.#fail(
        new HoldfastError(
          "external_agent_failed",
          "the agent reports events faster than they can be stored",
          {
            expected: `at most ${PENDING_CHARS_MAX} characters of events that wait`,
          },
        ),
      );
    this.#storing ??= this.#store().finally(() => (this.#storing = undefined));
  }

  /** Ends the turn: an event cannot be recorded. */
  refuse(reason: string): void {
    this.#fail(new HoldfastError("external_agent_failed", reason));
  }

  /** @throws what prevented a report. */
  async stored(): Promise<void> {
    while (this.#storing !== undefined) await this.#storing;
    if (this.#error !== undefined) throw this.#error;
  }

  /** @returns the number of reports. @throws what prevented one. */
  async end(): Promise<number> {
    await this.stored();
    return this.#stored;
  }

  async #store(): Promise<void> {
    await Promise.resolve(); // Events of the same moment share a signal.
    while (this.#pending.length > 0 && this.#error === undefined) {
      this.#stream();
      const events = this.#next();
      if (events.length === 0) return;
      const dedupKey = `${this.#task.taskId}/${this.#task.attempt}/${this.#stored}`;
      try {
        const report: StoredReport = { events, turn: this.#turn, isCharged: true };
        const spends = events.flatMap((event) => (event.type === "usage" ? event.usage : []));
        const unspent = await this.#task.signalSession(REPORT_SIGNAL, report, { dedupKey, spends });
        this.#stored++;
        this.#fence.charged(spends, unspent);
      } catch (error) {
        this.#fail(error);
      }
    }
  }

  /** The pieces of text that come next. */
  #stream(): void {
    const rest = this.#pending.findIndex(({ type }) => type !== "text_delta");
    for (const piece of this.#taken(rest < 0 ? this.#pending.length : rest))
      if (piece.type === "text_delta") this.#task.streamToken(piece.text);
  }

  /** The events up to the next piece of text, as far as one signal has room. */
  #next(): readonly RecordedEvent[] {
    let count = 0;
    let chars = 0;
    for (const event of this.#pending) {
      const size = sizeOf(event);
      if (event.type === "text_delta" || (count > 0 && chars + size > REPORT_CHARS)) break;
      chars += size;
      count++;
    }
    return this.#taken(count).filter((event) => event.type !== "text_delta");
  }

  #taken(count: number): readonly (RecordedEvent | TextDelta)[] {
    const taken = this.#pending.splice(0, count);
    this.#pendingChars -= taken.reduce((chars, event) => chars + sizeOf(event), 0);
    return taken;
  }

  #fail(error: unknown): void {
    this.#error ??= toError(error);
    this.#pending = [];
    this.#pendingChars = 0;
    this.#onError();
  }
}

function sizeOf(event: RecordedEvent | TextDelta): number {
  return JSON.stringify(event).length;
}
