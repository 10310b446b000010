// What an agent has asked for and not been answered, in the order it asked.
//
// A plain collection: it knows what is open and when it is due, and decides nothing. Looking for what is due or answered costs
// nothing while only tasks are open, and O(log n) in the waits and timers that are.

import type { JsonText } from "../json/json.ts";
import type { AnswerShape } from "../journal/approval.ts";
import type { ChildRequest, NoteRecord, RetryPolicy, TokenUsage } from "../journal/record.ts";
import { isReservedName } from "../journal/signal-names.ts";
import type { Wait } from "../session/session.ts";
import { WakeQueue } from "../collections/wake-queue.ts";
import { AnsweredWaits, placeOf, type Place } from "./answered-waits.ts";
import type { DurableFuture } from "./future.ts";

/** A task that was asked for and has no delivered outcome. */
export interface OpenTask {
  /** Its command's number. */
  readonly id: number;
  readonly kind: string;
  readonly input: JsonText | undefined;
  readonly key: string | undefined;
  readonly retry: RetryPolicy | undefined;
  readonly timeoutMs: number | undefined;
  /** How long the whole task may take, from when it was asked for; whole milliseconds. */
  readonly deadlineMs: number | undefined;
  /** The same as a moment, in epoch milliseconds. */
  deadlineAt: number | undefined;
  readonly closure: ((task: unknown) => unknown) | undefined;
  /** Whether its repeats are counted, as it is recorded. */
  readonly guarded: boolean;
  /** The attempt that is to run next, or was running when the process ended. */
  attempt: number;
  retryAt: number | undefined;
  /** How many attempts died with their process: after one the outcome is kept before it is delivered (K6). */
  lost: number;
  /** An outcome that is stored but not delivered. */
  kept:
    | {
        readonly outcome: "task_completed" | "task_failed";
        readonly usage: TokenUsage | undefined;
        readonly payload: JsonText | undefined;
      }
    | undefined;
  /** Whether its input refers to the conversation. */
  hasConversation: boolean;
  /** The child's request it handles: its outcome is the answer. */
  readonly request?: ChildRequest;
}

export interface OpenItem {
  readonly future: DurableFuture<unknown>;
  readonly task?: OpenTask;
  /** The signal that answers a wait. */
  readonly name?: string;
  /** When a timer fires, or a wait gives up. */
  readonly at?: number | undefined;
  /** When the session is cancelled for want of an answer. */
  readonly cancelAt?: number | undefined;
  /** The question to a person. */
  readonly prompt?: string;
  readonly answer?: AnswerShape;
  /** As of the wait. */
  readonly life?: number;
  /** Asked inside `ctx.cleanup`: a graceful cancel leaves it alone. */
  readonly sheltered?: boolean;
  /** Where it was asked, for errors; only in development. */
  readonly lineOf?: (() => string | undefined) | undefined;
}

/** Where a wait or a timer stands. */
interface Places {
  readonly answer: Place<OpenItem>;
  readonly due: Place<OpenItem> | undefined;
  readonly cancel: Place<OpenItem> | undefined;
}

export class OpenItems {
  readonly #items = new Map<number, OpenItem>();
  #tasks = 0;
  /** Those of the tasks that handle a request of a child. */
  #requests = 0;
  /** Of waits and timers. */
  readonly #places = new Map<number, Places>();
  readonly #answered = new AnsweredWaits<OpenItem>();
  readonly #due = new WakeQueue<Place<OpenItem>>();
  readonly #cancels = new WakeQueue<Place<OpenItem>>();
  #waits: readonly Wait[] | undefined;
  /** Answer no waits and timers but those asked inside `ctx.cleanup`: the others hang, after a cancel and its patience. */
  onlySheltered = false;
  /** It cannot be cancelled for want of an answer any more: such a question stays open until its session ends. */
  isCancelled = false;
  /** A cancel came after the agent had returned: no code of it is left that would use the outcome of a task. */
  #isReturnCancelled = false;

  requestCancel(isAfterReturn: boolean): void {
    this.isCancelled = true;
    this.#isReturnCancelled ||= isAfterReturn;
  }

  get size(): number {
    return this.#items.size;
  }

  get taskCount(): number {
    return this.#tasks;
  }

  get requestCount(): number {
    return this.#requests;
  }

  /** How many are waits or timers. */
  get waitCount(): number {
    return this.#items.size - this.#tasks;
  }

  add(item: OpenItem): void {
    const { task, future, at, cancelAt } = item;
    this.#items.set(future.id, item);
    if (task !== undefined) {
      this.#tasks++;
      if (task.request !== undefined) this.#requests++;
      return;
    }
    this.#waits = undefined;
    const places = {
      answer: placeOf(item),
      due: at === undefined ? undefined : placeOf(item),
      cancel: cancelAt === undefined ? undefined : placeOf(item),
    };
    this.#places.set(future.id, places);
    this.#answered.add(places.answer);
    if (places.due !== undefined) this.#due.set(places.due, at ?? Infinity);
    if (places.cancel !== undefined) this.#cancels.set(places.cancel, cancelAt ?? Infinity);
  }

  get(id: number): OpenItem | undefined {
    return this.#items.get(id);
  }

  remove(id: number): OpenItem | undefined {
    const item = this.#items.get(id);
    if (item === undefined) return undefined;
    this.#items.delete(id);
    if (item.task !== undefined) {
      this.#tasks--;
      if (item.task.request !== undefined) this.#requests--;
      return item;
    }
    this.#waits = undefined;
    const { answer, due, cancel } = this.#places.get(id)!;
    this.#places.delete(id);
    this.#answered.remove(answer);
    if (due !== undefined) this.#due.set(due, Infinity);
    if (cancel !== undefined) this.#cancels.set(cancel, Infinity);
    return item;
  }

  /** A signal of this name is pending, and none was. */
  noteArrived(name: string): void {
    this.#answered.arrived(name);
  }

  /**
   * The wait that was asked first of those whose signal is pending, or that are to be cancelled. One that is neither becomes so by
   * `noteArrived` alone, and is not looked at before.
   */
  firstAnswered(
    isToBeCancelled: (item: OpenItem) => boolean,
    pending: { has(name: string): boolean },
  ): OpenItem | undefined {
    if (this.waitCount === 0) return undefined;
    return this.#answered.first((item) => {
      if (isToBeCancelled(item)) return true;
      return item.name !== undefined && pending.has(item.name) && !this.hangs(item);
    });
  }

  /** Waits for a signal of this name. */
  named(name: string): Iterable<OpenItem> {
    return this.#answered.named(name);
  }

  values(): IterableIterator<OpenItem> {
    return this.#items.values();
  }

  /**
   * The items that a return withdraws (K13).
   *
   * @param isForChildren whether the end waits for children. They may need the answers to their requests in order to end.
   */
  besideReturn(isForChildren: boolean): DurableFuture<unknown>[] {
    const isAwaited = ({ task, future }: OpenItem): boolean => {
      if (task === undefined || future.observed) return false;
      return !this.#isReturnCancelled || (isForChildren && task.request !== undefined);
    };
    return [...this.#items.values()].filter((item) => !isAwaited(item)).map(({ future }) => future);
  }

  tasks(): OpenTask[] {
    return [...this.#items.values()].flatMap((item) => item.task ?? []);
  }

  /** The earliest moment a timer fires, a wait gives up, or a question is given up with its session. */
  get wakeAt(): number | undefined {
    return earlier(this.#earliest()?.at, this.#earliestCancel()?.cancelAt);
  }

  /** The question that was to be answered by `now`, or the session cancelled. */
  unanswered(now: number): OpenItem | undefined {
    const first = this.#earliestCancel();
    return first !== undefined && (first.cancelAt ?? 0) <= now ? first : undefined;
  }

  /** The timer or wait that is due by `now`, the earliest first. */
  due(now: number): OpenItem | undefined {
    const first = this.#earliest();
    return first !== undefined && (first.at ?? 0) <= now ? first : undefined;
  }

  /** What a fact that was not delivered says of a task. */
  readNote(note: NoteRecord): void {
    if (note.type !== "attempt_failed" && note.type !== "attempt_lost" && note.type !== "outcome_kept")
      return;
    const task = this.get(note.task)?.task;
    if (task === undefined) return;
    if (note.type === "outcome_kept") {
      task.attempt = note.attempt;
      task.kept = { outcome: note.outcome, usage: note.usage, payload: note.payload };
      return;
    }
    task.attempt = note.attempt + 1;
    if (note.type === "attempt_lost") task.lost++;
    task.retryAt = note.type === "attempt_failed" ? note.retryAt : undefined;
  }

  /** Waits for what other sessions tell this one, and what it does for them; with `tasks`, its own tasks too. */
  ofOthers(tasks: boolean): OpenItem[] {
    return [...this.#items.values()].filter((item) =>
      item.task === undefined
        ? item.future.type !== "input" && item.name !== undefined && isReservedName(item.name)
        : tasks || item.task.request !== undefined,
    );
  }

  /** Forget all attempts of tasks but those that are done. Answers which are to be done again, their time counted from `now`. */
  startOver(now: number): OpenTask[] {
    const again = this.tasks().filter((task) => !isDone(task));
    for (const task of again) {
      const deadlineAt = task.deadlineMs === undefined ? undefined : now + task.deadlineMs;
      Object.assign(task, { attempt: 1, retryAt: undefined, lost: 0, kept: undefined, deadlineAt });
    }
    return again;
  }

  hangs(item: OpenItem): boolean {
    return this.onlySheltered && item.task === undefined && item.sheltered !== true;
  }

  #earliest(): OpenItem | undefined {
    for (let place = this.#due.first(); place !== undefined; place = this.#due.first()) {
      if (!this.hangs(place.item)) return place.item;
      this.#due.set(place, Infinity); // What hangs once hangs to the end.
    }
    return undefined;
  }

  #earliestCancel(): OpenItem | undefined {
    return this.isCancelled ? undefined : this.#cancels.first()?.item;
  }

  /** What a person is told the session waits for. Tasks are not among them. The same list as long as nothing of it changes. */
  waits(): readonly Wait[] {
    return (this.#waits ??= this.#listWaits());
  }

  #listWaits(): Wait[] {
    if (this.waitCount === 0) return [];
    const waits: Wait[] = [];
    for (const [id, { future, name = "", at, cancelAt, prompt = "", answer, life }] of this.#items) {
      const end = earlier(at, cancelAt);
      const until = end === undefined ? {} : { until: end };
      switch (future.type) {
        case "task":
          break;
        case "timer":
          waits.push({ type: "timer", id, at: at ?? 0 });
          break;
        case "input":
          waits.push({
            type: "input",
            id,
            name,
            prompt,
            ...(answer === undefined ? {} : { answer }),
            ...(life === undefined ? {} : { life }),
            ...until,
          });
          break;
        case "signal":
        case "signal_ready":
          waits.push({ type: "signal", id, name, ...until });
          break;
      }
    }
    return waits;
  }
}

/** Whether its output is stored and only has to be delivered. */
export function isDone({ kept }: OpenTask): boolean {
  return kept?.outcome === "task_completed";
}

function earlier(a: number | undefined, b: number | undefined): number | undefined {
  if (a === undefined) return b;
  return b === undefined ? a : Math.min(a, b);
}
