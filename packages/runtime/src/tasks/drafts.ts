// `EventDraft`, `NoteDraft`: records that a session's tasks ask for, before the kernel gives them a place in
// the journal.

import type { EventRecord, NoteRecord } from "@holdfast/core";

type Draft<R> = R extends unknown ? Omit<R, "seq" | "id"> : never;
export type EventDraft = Draft<EventRecord>;
export type NoteDraft = Draft<NoteRecord>;

export type OutcomeDraft = Extract<EventDraft, { type: "task_completed" | "task_failed" }>;

/** An outcome that is stored before it is delivered. */
export function keptOutcome({ type: outcome, task, attempt, at, usage, payload }: OutcomeDraft): NoteDraft {
  return {
    type: "outcome_kept",
    outcome,
    task,
    attempt,
    at,
    ...(usage === undefined ? {} : { usage }),
    payload,
  };
}
