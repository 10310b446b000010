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
import { subjectOfTool } from "./journal/call.ts";
import {
  endsAttempt,
  type JournalEvent,
  type PlainError,
  type PlainUsage,
  type RecordType,
} from "./journal-event.ts";
import { AGENT_REPORT } from "./wait.ts";

interface TimelineAttempt {
  readonly attempt: number;
  startedAt: number;
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
  /** The command, path or address that a task is about, where its input says it as calls of tools do. */
  readonly subject?: string;
  /** The child whose end is waited for. */
  readonly child?: TimelineChildRef;
  /** The positions of the records that begin and end it. */
  readonly seq: number;
  endSeq?: number;
  readonly startedAt: number;
  endedAt?: number;
  outcome: "open" | "completed" | "failed" | "timed_out" | "cancelled" | "withdrawn";
  /** The attempts of a task. */
  readonly attempts?: TimelineAttempt[];
  usage?: Cost;
}

/** A child that a session asked for. */
export interface TimelineChildRef {
  readonly sessionId: string;
  readonly agent: string;
}

/** Something that happened in a moment. */
export interface TimelineMark {
  readonly at: number;
  readonly text: string;
  /** Something that need not have been. */
  readonly isWarning: boolean;
  /** The child that it is about. */
  readonly child?: TimelineChildRef;
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

const SUBJECT_CHARS = 300;

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
    signal_received: (timeline, _, event) =>
      void timeline.#end(Number(event["wait"]), "completed", event.seq),
    signal_ready: (timeline, _, event) => void timeline.#end(Number(event["wait"]), "completed", event.seq),
    timer_fired: (timeline, _, event) => void timeline.#end(Number(event["timer"]), "completed", event.seq),
    wait_timed_out: (timeline, _, event) => void timeline.#end(Number(event["wait"]), "timed_out", event.seq),
    wait_cancelled: (timeline, _, event) => void timeline.#end(Number(event["wait"]), "cancelled", event.seq),
    withdraw: (timeline, _, event) => timeline.#withdraw(event),

    // Something happens in a moment.
    take_signals: (timeline, turn, { names = [] }) => timeline.#took(turn, names),
    cancel_requested: (timeline, turn, { reason }) =>
      timeline.#warn(turn, `asked to cancel${reason === undefined ? "" : `: ${reason}`}`),
    warned: (timeline, turn, { message }) => timeline.#warn(turn, `warning: ${String(message)}`),
    drift_accepted: (timeline, turn, { positions }) =>
      timeline.#warn(turn, `recorded results are kept for changed inputs at ${String(positions)}`),
    spawn_child: (timeline, turn, event) => timeline.#spawn(turn, event),
    cancel_child: (timeline, turn, { childId }) => timeline.#warn(turn, `cancels child ${String(childId)}`),
    forked: (timeline, turn, { from }) => timeline.#mark(turn, `forked from ${String(from)}`),

    // The turn ends.
    checkpoint: (timeline, turn, event) => timeline.#endTurn(turn, event),
    complete: (timeline) => timeline.end(),
    fail: (timeline) => timeline.end(),

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
  /** The children that were asked for, by the end of the id that their records name. */
  readonly #children = new Map<string, TimelineChildRef>();
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

  /**
   * The session has ended, and everything open ends with it. The journal of a cancelled session need not say so.
   *
   * @param at when it ended; by default with the last record.
   */
  end(at = this.#at): void {
    this.#at = Math.max(at, this.#at);
    for (const id of this.#open.keys()) this.#end(id, "cancelled");
    const last = this.#turns.at(-1);
    if (last !== undefined) last.endedAt ??= this.#at;
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

  #spawn(turn: TimelineTurn, { handOff, agent, childId }: JournalEvent): void {
    const child = { sessionId: String(childId), agent: String(agent) };
    this.#children.set(numberOf(child.sessionId), child);
    const text = `${handOff === true ? "hands over to" : "asks for"} ${child.agent} ${child.sessionId}`;
    turn.marks.push({ at: this.#at, text, isWarning: false, child });
  }

  #begin(turn: TimelineTurn, event: JournalEvent, type: TimelineItem["type"], name: string): void {
    const attempts: TimelineAttempt[] = [{ attempt: 1, startedAt: this.#at, outcome: "running" }];
    const subject = type === "task" ? subjectOfTool(name, event.input) : undefined;
    const child = type === "signal" ? this.#children.get(endOfChild(name)) : undefined;
    const item: TimelineItem = {
      id: event.id ?? -1,
      type,
      name,
      ...(subject !== undefined && { subject: subject.slice(0, SUBJECT_CHARS) }),
      ...(child !== undefined && { child }),
      seq: event.seq,
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
    if (!endsAttempt(event)) {
      last.startedAt = this.#at;
      return;
    }
    last.endedAt = this.#at;
    last.outcome = event.type === "attempt_lost" ? "lost" : "failed";
    if (event.error !== undefined) last.error = event.error;
    this.#spend(turn, item, last, event);
    const startedAt = event.retryAt ?? this.#at;
    item.attempts!.push({ attempt: last.attempt + 1, startedAt, outcome: "running" });
  }

  #endTask(turn: TimelineTurn, event: JournalEvent, outcome: "completed" | "failed"): void {
    const item = this.#end(taskNumber(event), outcome, event.seq);
    const last = item?.attempts?.at(-1);
    if (item === undefined || last === undefined) return;
    last.outcome = outcome;
    if (event.error !== undefined) last.error = event.error;
    this.#spend(turn, item, last, event);
  }

  #end(id: number, outcome: TimelineItem["outcome"], seq?: number): TimelineItem | undefined {
    const item = this.#open.get(id);
    if (item === undefined) return undefined;
    this.#open.delete(id);
    item.endedAt = this.#at;
    item.outcome = outcome;
    if (seq !== undefined) item.endSeq = seq;
    const last = item.attempts?.at(-1);
    if (last !== undefined) {
      // A retry that was not due yet when nobody wanted it any more never began.
      if ((outcome === "withdrawn" || outcome === "cancelled") && last.startedAt > this.#at)
        item.attempts?.pop();
      else Object.assign(last, { endedAt: this.#at, outcome: "withdrawn" });
    }
    return item;
  }

  #withdraw({ targets = [], seq }: JournalEvent): void {
    for (const id of targets) this.#end(id, "withdrawn", seq);
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

function taskNumber({ taskId = "" }: JournalEvent): number {
  return Number(numberOf(taskId));
}

/** The position at the end of an id. */
function numberOf(id: string): string {
  return id.slice(id.lastIndexOf("-") + 1);
}

/** The number of the child whose end a signal tells. */
function endOfChild(name: string): string {
  return /^child-end:(\d+)$/.exec(name)?.[1] ?? "";
}
