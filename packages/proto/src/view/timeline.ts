// `TimelineBuilder`: what a session did, when, for how long and at what cost. It is computed from the journal alone, so every
// session has a timeline.
//
//   timeline-1. A command has the time of the delivery before it. A task's duration is therefore measured from the agent's
//       request to the task's end, and includes its wait for a slot.
//   timeline-2. Usage is what outcomes recorded. Where none is recorded none is shown; nothing is estimated. A price that is not recorded is
//       unknown (cost-1).
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

/** Takes the events of a session in their order. */
export class TimelineBuilder {
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
    switch (event.type) {
      case "schedule_task":
        this.#begin(turn, event, "task", event.kind ?? "");
        return;
      case "wait_signal":
        this.#begin(turn, event, "signal", event.name ?? "");
        return;
      case "start_timer":
        this.#begin(turn, event, "timer", "timer");
        return;
      case "request_input":
        this.#begin(turn, event, "question", event.prompt ?? "");
        return;
      case "attempt_failed":
      case "attempt_lost":
        this.#retry(turn, event);
        return;
      case "task_completed":
        this.#endTask(turn, event, "completed");
        return;
      case "task_failed":
        this.#endTask(turn, event, "failed");
        return;
      case "signal_received":
      case "signal_ready":
        this.#end(Number(event["wait"]), "completed");
        return;
      case "timer_fired":
        this.#end(Number(event["timer"]), "completed");
        return;
      case "wait_timed_out":
        this.#end(Number(event["wait"]), "timed_out");
        return;
      case "wait_cancelled":
        this.#end(Number(event["wait"]), "cancelled");
        return;
      case "withdraw":
        for (const id of event.targets ?? []) this.#end(id, "withdrawn");
        return;
      case "take_signals":
        this.#took(turn, event.names ?? []);
        return;
      case "cancel_requested":
        this.#warn(turn, `asked to cancel${event.reason === undefined ? "" : `: ${event.reason}`}`);
        return;
      case "warned":
        this.#warn(turn, `warning: ${String(event.message)}`);
        return;
      case "drift_accepted":
        this.#warn(turn, `recorded results are kept for changed inputs at ${String(event.positions)}`);
        return;
      case "checkpoint":
        turn.endedAt = this.#at;
        this.#turn = event.turn ?? this.#turn + 1;
        this.#open.clear();
        return;
      case "complete":
      case "fail":
        turn.endedAt = this.#at;
        return;
      case "spawn_child":
        this.#mark(
          turn,
          `${event["handOff"] === true ? "hands over to" : "asks for"} ${String(event["agent"])} ${String(event["childId"])}`,
        );
        return;
      case "cancel_child":
        this.#warn(turn, `cancels child ${String(event["childId"])}`);
        return;
      case "forked":
        this.#mark(turn, `forked from ${String(event["from"])}`);
        return;
      case "started":
      case "tell_session":
      case "request_parent":
      case "reply_child":
      case "request_received":
      case "enable_persistence":
      case "append_entry":
      case "record_probe":
      case "outcome_kept":
        return;
    }
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
