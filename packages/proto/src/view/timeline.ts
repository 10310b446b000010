// `TimelineBuilder`: what a session did, when, for how long and at what cost. It is computed from the journal
// alone, so every session has a timeline.
//
//   - A command has the time of the delivery before it. A task's duration is therefore measured from the
//     agent's request to the task's end, and includes its wait for a slot.
//   timeline-2. Usage is what outcomes recorded. Where none is recorded none is shown; nothing is estimated.
//       A price that is not recorded is unknown (cost-1).
//
// The journal does not say where one commit ended and the next began. It says what was delivered, and each
// segment begins with a delivery.

import { addUsage, NO_COST, type Cost } from "./cost.ts";
import type { JournalEvent, PlainError, PlainUsage, RecordType } from "./journal-event.ts";
import { AGENT_REPORT } from "./wait.ts";

export interface TimelineAttempt {
  readonly attempt: number;
  readonly startedAt: number;
  endedAt?: number;
  outcome: "running" | "completed" | "failed" | "lost" | "withdrawn";
  error?: PlainError;
  usage?: PlainUsage;
}

/** Something that took time: a task with its attempts, or a wait. */
export interface TimelineItem {
  /** The position in `holdfast logs`. */
  readonly id: number;
  readonly type: "task" | "signal" | "timer" | "question";
  readonly name: string;
  readonly startedAt: number;
  endedAt?: number;
  outcome: "open" | "completed" | "failed" | "timed_out" | "cancelled" | "withdrawn";
  /** The attempts of a task. */
  readonly attempts?: TimelineAttempt[];
  usage?: Cost;
}

/** Something that happened in a moment. */
export interface TimelineMark {
  readonly at: number;
  readonly text: string;
  /** Something that need not have been. */
  readonly isWarning: boolean;
}

export interface TimelineTurn {
  readonly turn: number;
  readonly startedAt: number;
  endedAt?: number;
  /** Outcomes handed to the agent, its start included. */
  deliveries: number;
  usage?: Cost;
  readonly items: TimelineItem[];
  readonly marks: TimelineMark[];
}

/** The types of events that are delivered to the agent. */
const DELIVERIES: ReadonlySet<RecordType> = new Set<RecordType>([
  "started",
  "task_completed",
  "task_failed",
  "timer_fired",
  "signal_received",
  "signal_ready",
  "wait_timed_out",
  "wait_cancelled",
  "cancel_requested",
  "request_received",
  "forked",
]);

type Step = (timeline: TimelineBuilder, turn: TimelineTurn, event: JournalEvent) => void;

/** The step of an event that no timeline shows. */
const notShown: Step = () => undefined;

/** Takes the events of a session in their order. */
export class TimelineBuilder {
  /** The change that an event makes to its turn, by its type. */
  static readonly #STEPS: Readonly<Record<RecordType, Step>> = {
    // Something that takes time begins.
    schedule_task: (timeline, turn, event) => timeline.#begin(turn, event, "task", event.kind ?? ""),
    wait_signal: (timeline, turn, event) => timeline.#begin(turn, event, "signal", event.name ?? ""),
    start_timer: (timeline, turn, event) => timeline.#begin(turn, event, "timer", "timer"),
    request_input: (timeline, turn, event) => timeline.#begin(turn, event, "question", event.prompt ?? ""),

    // It ends or is tried again.
    attempt_failed: (timeline, turn, event) => timeline.#retry(turn, event),
    attempt_lost: (timeline, turn, event) => timeline.#retry(turn, event),
    task_completed: (timeline, turn, event) => timeline.#endTask(turn, event, "completed"),
    task_failed: (timeline, turn, event) => timeline.#endTask(turn, event, "failed"),
    signal_received: (timeline, _, event) => void timeline.#end(Number(event["wait"]), "completed"),
    signal_ready: (timeline, _, event) => void timeline.#end(Number(event["wait"]), "completed"),
    timer_fired: (timeline, _, event) => void timeline.#end(Number(event["timer"]), "completed"),
    wait_timed_out: (timeline, _, event) => void timeline.#end(Number(event["wait"]), "timed_out"),
    wait_cancelled: (timeline, _, event) => void timeline.#end(Number(event["wait"]), "cancelled"),
    withdraw: (timeline, _, { targets = [] }) => timeline.#withdraw(targets),

    // Something happens in a moment.
    take_signals: (timeline, turn, { names = [] }) => timeline.#took(turn, names),
    cancel_requested: (timeline, turn, { reason }) =>
      timeline.#warn(turn, `asked to cancel${reason === undefined ? "" : `: ${reason}`}`),
    warned: (timeline, turn, { message }) => timeline.#warn(turn, `warning: ${String(message)}`),
    drift_accepted: (timeline, turn, { positions }) =>
      timeline.#warn(turn, `recorded results are kept for changed inputs at ${String(positions)}`),
    spawn_child: (timeline, turn, { handOff, agent, childId }) =>
      timeline.#mark(
        turn,
        `${handOff === true ? "hands over to" : "asks for"} ${String(agent)} ${String(childId)}`,
      ),
    cancel_child: (timeline, turn, { childId }) => timeline.#warn(turn, `cancels child ${String(childId)}`),
    forked: (timeline, turn, { from }) => timeline.#mark(turn, `forked from ${String(from)}`),

    // The turn ends.
    checkpoint: (timeline, turn, event) => timeline.#endTurn(turn, event),
    complete: (timeline, turn) => timeline.#close(turn),
    fail: (timeline, turn) => timeline.#close(turn),

    started: notShown,
    tell_session: notShown,
    request_parent: notShown,
    reply_child: notShown,
    request_received: notShown,
    enable_persistence: notShown,
    append_entry: notShown,
    record_probe: notShown,
    outcome_kept: notShown,
  };

  readonly #turns: TimelineTurn[] = [];
  readonly #open = new Map<number, TimelineItem>();
  readonly #models = new Map<string, Cost>();
  usage: Cost | undefined;
  #at = 0;
  #turn = 0;

  add(event: JournalEvent): void {
    this.#at = event.at ?? this.#at;
    const turn = this.#currentTurn();
    if (DELIVERIES.has(event.type)) turn.deliveries++;
    if (Object.hasOwn(TimelineBuilder.#STEPS, event.type))
      TimelineBuilder.#STEPS[event.type](this, turn, event);
  }

  /** The turns so far. Later events change them. */
  get turns(): readonly TimelineTurn[] {
    return this.#turns;
  }

  get models(): readonly ({ readonly model: string } & Cost)[] {
    return [...this.#models].map(([model, usage]) => ({ model, ...usage }));
  }

  #currentTurn(): TimelineTurn {
    const last = this.#turns.at(-1);
    if (last?.turn === this.#turn) return last;
    const turn: TimelineTurn = { turn: this.#turn, startedAt: this.#at, deliveries: 0, items: [], marks: [] };
    this.#turns.push(turn);
    return turn;
  }

  /** The reports of an external agent are as many as its events, and its entries say more. */
  #took(turn: TimelineTurn, names: readonly string[]): void {
    const shown = names.filter((name) => name !== AGENT_REPORT);
    if (shown.length > 0) this.#mark(turn, `took ${shown.join(", ")}`);
  }

  #begin(turn: TimelineTurn, event: JournalEvent, type: TimelineItem["type"], name: string): void {
    const attempts: TimelineAttempt[] = [{ attempt: 1, startedAt: this.#at, outcome: "running" }];
    const item: TimelineItem = {
      id: event.id ?? -1,
      type,
      name,
      startedAt: this.#at,
      outcome: "open",
      ...(type === "task" ? { attempts } : {}),
    };
    turn.items.push(item);
    this.#open.set(item.id, item);
  }

  #retry(turn: TimelineTurn, event: JournalEvent): void {
    const item = this.#open.get(taskNumber(event));
    const last = item?.attempts?.at(-1);
    if (item === undefined || last === undefined) return;
    last.endedAt = this.#at;
    last.outcome = event.type === "attempt_lost" ? "lost" : "failed";
    if (event.error !== undefined) last.error = event.error;
    this.#spend(turn, item, last, event);
    const startedAt = event.retryAt ?? this.#at;
    item.attempts!.push({ attempt: last.attempt + 1, startedAt, outcome: "running" });
  }

  #endTask(turn: TimelineTurn, event: JournalEvent, outcome: "completed" | "failed"): void {
    const item = this.#end(taskNumber(event), outcome);
    const last = item?.attempts?.at(-1);
    if (item === undefined || last === undefined) return;
    last.outcome = outcome;
    if (event.error !== undefined) last.error = event.error;
    this.#spend(turn, item, last, event);
  }

  #end(id: number, outcome: TimelineItem["outcome"]): TimelineItem | undefined {
    const item = this.#open.get(id);
    if (item === undefined) return undefined;
    this.#open.delete(id);
    item.endedAt = this.#at;
    item.outcome = outcome;
    const last = item.attempts?.at(-1);
    if (last !== undefined) {
      // A retry that was not due yet when nobody wanted it any more never began.
      if (outcome === "withdrawn" && last.startedAt > this.#at) item.attempts?.pop();
      else Object.assign(last, { endedAt: this.#at, outcome: "withdrawn" });
    }
    return item;
  }

  #withdraw(ids: readonly number[]): void {
    for (const id of ids) this.#end(id, "withdrawn");
  }

  #close(turn: TimelineTurn): void {
    turn.endedAt = this.#at;
  }

  /** The next turn begins at a checkpoint. */
  #endTurn(turn: TimelineTurn, event: JournalEvent): void {
    this.#close(turn);
    this.#turn = event.turn ?? this.#turn + 1;
    this.#open.clear();
  }

  /** timeline-2. */
  #spend(turn: TimelineTurn, item: TimelineItem, attempt: TimelineAttempt, { usage }: JournalEvent): void {
    if (usage === undefined) return;
    attempt.usage = usage;
    const sum = (before: Cost | undefined): Cost => addUsage(before ?? NO_COST, usage);
    item.usage = sum(item.usage);
    turn.usage = sum(turn.usage);
    this.usage = sum(this.usage);
    if (usage.model !== undefined) this.#models.set(usage.model, sum(this.#models.get(usage.model)));
  }

  #mark(turn: TimelineTurn, text: string): void {
    turn.marks.push({ at: this.#at, text, isWarning: false });
  }

  #warn(turn: TimelineTurn, text: string): void {
    turn.marks.push({ at: this.#at, text, isWarning: true });
  }
}

function taskNumber({ taskId }: JournalEvent): number {
  return Number(taskId?.slice(taskId.lastIndexOf("-") + 1));
}
