// `PendingDeliveries`: the outcomes and notes of one session that its kernel has not taken yet.
//
// Outcomes are delivered one after the other, in the order in which they came. Notes are added at a
// standstill.

import { Fifo, isOutcome, type Kernel } from "@holdfast/core";
import { keptOutcome, type EventDraft, type NoteDraft } from "../tasks/drafts.ts";

export class PendingDeliveries {
  readonly #outcomes = new Fifo<EventDraft>();
  readonly #notes: NoteDraft[] = [];

  get isEmpty(): boolean {
    return this.#outcomes.size === 0 && this.#notes.length === 0;
  }

  add(outcome: EventDraft): void {
    this.#outcomes.push(outcome);
  }

  /** Deliver this one before all others. */
  addFirst(outcome: EventDraft): void {
    this.#outcomes.unshift(outcome);
  }

  note(note: NoteDraft): void {
    this.#notes.push(note);
  }

  /** Only at a standstill. */
  addNotes(kernel: Kernel): void {
    if (this.#notes.length > 0) for (const note of this.#notes.splice(0)) kernel.note(note);
  }

  /**
   * The oldest outcome that the kernel still needs. The task of one may have been withdrawn since it ended,
   * and the agent may have been notified of a cancel before (CancelWatch).
   */
  next({ open, turn }: Kernel): EventDraft | undefined {
    for (;;) {
      const event = this.#outcomes.shift();
      if (event === undefined) return undefined;
      if (event.type === "cancel_requested" && turn.cancel !== undefined) continue;
      if (!isOutcome(event) || open.get(event.task) !== undefined) return event;
    }
  }

  /** Store the outcomes of open tasks as notes, without delivering them (session-driver-5). */
  keep(kernel: Kernel): void {
    for (const event of this.#outcomes.drain()) {
      if (!isOutcome(event)) continue;
      const task = kernel.open.get(event.task)?.task;
      if (task !== undefined && task.kept === undefined) this.#notes.push(keptOutcome(event));
    }
    this.addNotes(kernel);
  }

  /** After a checkpoint no task is open, and only a cancel is left to deliver. */
  keepCancels(): void {
    for (const event of this.#outcomes.drain())
      if (event.type === "cancel_requested") this.#outcomes.push(event);
  }
}
