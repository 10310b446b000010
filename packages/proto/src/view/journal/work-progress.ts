// `WorkProgress`: what a session does now, from its events. It has the steps that run, since when, and the
// tokens and the cost so far.

import { addUsage, type Cost, NO_COST } from "../cost.ts";
import type { JournalEvent } from "../journal-event.ts";

/** Takes the events of a session in their order. */
export class WorkProgress {
  readonly #running = new Map<number, { readonly kind: string; readonly since: number }>();
  #at = 0;
  spent: Cost = NO_COST;

  event({ type, id, at, task, kind, usage, withdrawn }: JournalEvent): void {
    this.#at = at ?? this.#at;
    if (type === "schedule_task" && id !== undefined)
      this.#running.set(id, { kind: kind ?? "", since: this.#at });
    if (type === "task_completed" || type === "task_failed" || type === "outcome_kept")
      this.#running.delete(task ?? -1);
    for (const one of withdrawn ?? []) this.#running.delete(one.task);
    // No task runs on behind a checkpoint or the end.
    if (type === "checkpoint" || type === "complete" || type === "fail") this.#running.clear();
    if (usage !== undefined) this.spent = addUsage(this.spent, usage);
  }

  /** Whether a task runs, by its number. */
  isRunning(task: number): boolean {
    return this.#running.has(task);
  }

  /** The names of the steps that run. */
  get steps(): readonly string[] {
    return [...this.#running.values()].map(({ kind }) => kind);
  }

  /** When the first of the steps that run was asked for. */
  get since(): number | undefined {
    return this.#running.values().next().value?.since;
  }
}

/** The steps of code in one line: two of them by name. */
export function stepsText(steps: readonly string[]): string {
  const [first = "", second, ...others] = steps;
  const more = others.length === 0 ? "" : ` and ${others.length} more`;
  return second === undefined ? first : `${first}, ${second}${more}`;
}

/** The work of a model that calls no tool. The names of its steps are no words of the work. */
export const THINKING = "thinking";
