// What an agent has asked for and not been answered, in the order it asked.
//
// A plain collection: it knows what is open and when it is due, and decides nothing. Looking for what is due or awaited
// costs nothing while only tasks are open, however many.

import type { JsonText } from "../json.ts";
import type { RetryPolicy } from "../journal/record.ts";
import type { Wait } from "../session/session.ts";
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
  readonly closure: ((task: unknown) => unknown) | undefined;
  /** The attempt that is to run next, or was running when the process ended. */
  attempt: number;
  retryAt: number | undefined;
  /** Whether an attempt died with its process: then the outcome is kept before it is delivered (K6). */
  lost: boolean;
  /** An outcome that is stored but not delivered. */
  kept:
    | { readonly outcome: "task_completed" | "task_failed"; readonly payload: JsonText | undefined }
    | undefined;
}

export interface OpenItem {
  readonly future: DurableFuture<unknown>;
  readonly task?: OpenTask;
  /** The signal that answers a wait. */
  readonly name?: string;
  /** When a timer fires, or a wait gives up. */
  readonly at?: number | undefined;
  /** The question to a person. */
  readonly prompt?: string;
  /** Asked inside `ctx.cleanup`: a graceful cancel leaves it alone. */
  readonly sheltered?: boolean;
}

export class OpenItems {
  readonly #items = new Map<number, OpenItem>();
  #tasks = 0;
  #timed = 0;
  /** Answer no waits and timers but those asked inside `ctx.cleanup`: the others hang, after a cancel and its patience. */
  onlySheltered = false;

  get size(): number {
    return this.#items.size;
  }

  get taskCount(): number {
    return this.#tasks;
  }

  /** How many are waits or timers. */
  get waitCount(): number {
    return this.#items.size - this.#tasks;
  }

  add(item: OpenItem): void {
    this.#items.set(item.future.id, item);
    if (item.task !== undefined) this.#tasks++;
    if (item.at !== undefined) this.#timed++;
  }

  get(id: number): OpenItem | undefined {
    return this.#items.get(id);
  }

  remove(id: number): OpenItem | undefined {
    const item = this.#items.get(id);
    if (item === undefined) return undefined;
    this.#items.delete(id);
    if (item.task !== undefined) this.#tasks--;
    if (item.at !== undefined) this.#timed--;
    return item;
  }

  values(): IterableIterator<OpenItem> {
    return this.#items.values();
  }

  tasks(): OpenTask[] {
    return [...this.#items.values()].flatMap((item) => item.task ?? []);
  }

  /** The earliest moment a timer fires or a wait gives up. */
  get wakeAt(): number | undefined {
    return this.#earliest()?.at;
  }

  /** The timer or wait that is due by `now`, the earliest first. */
  due(now: number): OpenItem | undefined {
    const first = this.#earliest();
    return first !== undefined && (first.at ?? 0) <= now ? first : undefined;
  }

  hangs(item: OpenItem): boolean {
    return this.onlySheltered && item.task === undefined && item.sheltered !== true;
  }

  #earliest(): OpenItem | undefined {
    if (this.#timed === 0) return undefined;
    let earliest: OpenItem | undefined;
    for (const item of this.#items.values()) {
      if (this.hangs(item)) continue;
      if (item.at !== undefined && (earliest?.at === undefined || item.at < earliest.at)) earliest = item;
    }
    return earliest;
  }

  /** What a person is told the session waits for. Tasks are not among them. */
  waits(): Wait[] {
    if (this.waitCount === 0) return [];
    const waits: Wait[] = [];
    for (const [seq, { future, name = "", at, prompt = "" }] of this.#items) {
      const until = at === undefined ? {} : { until: at };
      switch (future.type) {
        case "task":
          break;
        case "timer":
          waits.push({ type: "timer", seq, at: at ?? 0 });
          break;
        case "input":
          waits.push({ type: "input", seq, name, prompt, ...until });
          break;
        case "signal":
        case "signal_ready":
          waits.push({ type: "signal", seq, name, ...until });
          break;
      }
    }
    return waits;
  }
}
