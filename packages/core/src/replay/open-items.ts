// `OpenItems`: the asks of an agent that have no answer yet, in the order in which it asked.
//
// A plain collection, which knows what is open and when it is due, and decides nothing. Finding due or
// answered items costs nothing while only tasks are open, and O(log n) in the open waits and timers.

import type { JsonText } from "../json/json.ts";
import type { AnswerShape } from "../journal/approval.ts";
import type { EffectClass, RetryPolicy } from "../journal/task-policy.ts";
import type { ChildRequest, NoteRecord, TokenUsage } from "../journal/record.ts";
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
  readonly effect: EffectClass | undefined;
  readonly timeoutMs: number | undefined;
  /** How long the whole task may take, from when it was asked for; whole milliseconds. */
  readonly deadlineMs: number | undefined;
  /** The end of that time, in epoch milliseconds. */
  deadlineAt: number | undefined;
  readonly closure: ((task: unknown) => unknown) | undefined;
  /** The author's line of a step, known in development. */
  readonly lineOf?: () => string | undefined;
  /** Whether its repeats are counted, as it is recorded. */
  readonly guarded: boolean;
  /** The attempt that runs next, or that was running when the process ended. */
  attempt: number;
  retryAt: number | undefined;
  /**
   * How many attempts died with their process. After one, the outcome is kept before it is delivered (K6).
   */
  lost: number;
  /** How many attempts ended with a pause of the session. They count toward no limit. */
  paused: number;
  /** The last attempt ended so, and no process has recorded anything of the next one. */
  isPaused: boolean;
  /** How many attempts were cut off by an orderly stop of their process. They count toward no limit. */
  handedOver: number;
  /** An orderly stop left it, and no process has begun its attempt since. */
  isHandedOver: boolean;
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
  /** The child's request that the task handles: the task's outcome is the answer. */
  readonly request?: ChildRequest;
}

/** The attempts of a task that was asked for just now. */
export const NEW_ATTEMPTS = {
  attempt: 1,
  retryAt: undefined,
  lost: 0,
  paused: 0,
  isPaused: false,
  handedOver: 0,
  isHandedOver: false,
  kept: undefined,
} as const satisfies Partial<OpenTask>;

export interface OpenItem {
  readonly future: DurableFuture<unknown>;
  readonly task?: OpenTask;
  /** The signal that answers a wait. */
  readonly name?: string;
  /** When a timer fires, or a wait gives up. */
  readonly at?: number | undefined;
  /** The time at which the session is cancelled if the question has no answer. */
  readonly cancelAt?: number | undefined;
  /** The question to a person. */
  readonly prompt?: string;
  readonly answer?: AnswerShape;
  /** As of the wait. */
  readonly life?: number;
  /** Asked inside `ctx.cleanup`: a graceful cancel does not affect it. */
  readonly sheltered?: boolean;
  /** The line that asked, for errors; only in development. */
  readonly lineOf?: (() => string | undefined) | undefined;
}

/** The place of a wait or a timer in the queues. */
interface Places {
  readonly answer: Place<OpenItem>;
  readonly due: Place<OpenItem> | undefined;
  readonly cancel: Place<OpenItem> | undefined;
}

export class OpenItems {
  readonly #items = new Map<number, OpenItem>();
  #tasks = 0;
  /** The number of tasks that handle a request of a child. */
  #requests = 0;
  /** The places of waits and timers. */
  readonly #places = new Map<number, Places>();
  readonly #answered = new AnsweredWaits<OpenItem>();
  readonly #due = new WakeQueue<Place<OpenItem>>();
  readonly #cancels = new WakeQueue<Place<OpenItem>>();
  #waits: readonly Wait[] | undefined;
  /**
   * Answer only waits and timers that were asked for inside `ctx.cleanup`. After a cancel and its patience
   * the others hang.
   */
  onlySheltered = false;
  /** A cancel was requested already. A question without an answer then stays open until its session ends. */
  isCancelled = false;
  /**
   * A cancel came after the agent had returned: no agent code is left that could use the outcome of a task.
   */
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

  /** The number of waits and timers. */
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

  /** A signal of this name is now pending, and none was before. */
  noteArrived(name: string): void {
    this.#answered.arrived(name);
  }

  /**
   * The first wait, in the order of asking, whose signal is pending or that is to be cancelled. Any other
   * wait can only become such a wait by `noteArrived`, and is not examined before.
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
   * @param isForChildren whether the end waits for children. They may need the answers to their requests in
   *   order to end.
   */
  besideReturn(isForChildren: boolean): DurableFuture<unknown>[] {
    const isAwaited = ({ task, future }: OpenItem): boolean => {
      // mutant: unobserved-task-dropped
      if (task === undefined || future.observed) return false;
      // mutant: early-cancel-ends-return
      return !this.#isReturnCancelled || (isForChildren && task.request !== undefined);
    };
    return [...this.#items.values()].filter((item) => !isAwaited(item)).map(({ future }) => future);
  }

  tasks(): OpenTask[] {
    return [...this.#items.values()].flatMap((item) => item.task ?? []);
  }

  /**
   * The earliest time at which a timer fires, a wait gives up, or a question is given up with its session.
   */
  get wakeAt(): number | undefined {
    return earlier(this.#earliest()?.at, this.#earliestCancel()?.cancelAt);
  }

  /** A question whose session is to be cancelled, because it had to be answered by `now`. */
  unanswered(now: number): OpenItem | undefined {
    const first = this.#earliestCancel();
    return first !== undefined && (first.cancelAt ?? 0) <= now ? first : undefined;
  }

  /** The timer or wait that is due by `now`, the earliest first. */
  due(now: number): OpenItem | undefined {
    const first = this.#earliest();
    // mutant: timer-early
    return first !== undefined && (first.at ?? 0) <= now ? first : undefined;
  }

  /** Apply a note about a task. */
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
    const handedOver = note.type === "attempt_failed" ? note.handedOver : undefined;
    task.isHandedOver = handedOver !== undefined;
    if (handedOver === "waiting" || (note.type === "attempt_lost" && note.begins === true)) {
      task.isPaused = false;
      return;
    }
    if (handedOver === "running") task.handedOver++;
    task.attempt = note.attempt + 1;
    task.isPaused = note.type === "attempt_failed" && note.paused === true;
    if (note.type === "attempt_lost") task.lost++;
    else if (task.isPaused) task.paused++;
    task.retryAt = note.type === "attempt_failed" && handedOver === undefined ? note.retryAt : undefined;
  }

  /**
   * Waits for events of other sessions, and tasks that answer requests; with `tasks`, the session's own tasks
   * too.
   */
  ofOthers(tasks: boolean): OpenItem[] {
    return [...this.#items.values()].filter((item) =>
      item.task === undefined
        ? item.future.type !== "input" && item.name !== undefined && isReservedName(item.name)
        : tasks || item.task.request !== undefined,
    );
  }

  /**
   * Forget all attempts of tasks that are not done. Returns these tasks, with their time counted from `now`.
   */
  restartTasks(now: number): OpenTask[] {
    const again = this.tasks().filter((task) => !isDone(task));
    for (const task of again) {
      const deadlineAt = task.deadlineMs === undefined ? undefined : now + task.deadlineMs;
      Object.assign(task, { ...NEW_ATTEMPTS, deadlineAt });
    }
    return again;
  }

  hangs(item: OpenItem): boolean {
    return this.onlySheltered && item.task === undefined && item.sheltered !== true;
  }

  #earliest(): OpenItem | undefined {
    for (let place = this.#due.first(); place !== undefined; place = this.#due.first()) {
      if (!this.hangs(place.item)) return place.item;
      this.#due.set(place, Infinity); // An item that hangs once hangs to the end.
    }
    return undefined;
  }

  #earliestCancel(): OpenItem | undefined {
    return this.isCancelled ? undefined : this.#cancels.first()?.item;
  }

  /**
   * The waits of the session, as people are told of them. Tasks are left out. The list stays the same object
   * while nothing in it changes.
   */
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
