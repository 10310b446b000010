// `find…TextProblem`: texts that a database or the lines of a journal would change silently.
//
// Refused are lone surrogates that are not escaped, and line breaks in recorded JSON. Each function returns
// the problem, or `undefined`.

import type { Schedule } from "../session/schedules.ts";
import type { StoredDocument } from "../session/stored-documents.ts";
import type { CommitBatch, CreateSession, Effect, ImportedSession, SendSignal } from "../session/changes.ts";

export function findCreationTextProblem({
  sessionId,
  input,
  shared,
  resumedFrom,
  parent,
  first,
}: CreateSession): string | undefined {
  const value = shared?.kind === "custom" ? shared.value : undefined;
  return (
    findTextProblem("session id", sessionId) ??
    findTextProblem("input", input) ??
    findTextProblem("id of the parent", parent?.sessionId) ??
    findTextProblem("shared context", value) ??
    findTextProblem("progress it resumes from", resumedFrom) ??
    (first && findPartsProblem(first))
  );
}

export function findSignalTextProblem({ signalId, name, dedupKey, payload }: SendSignal): string | undefined {
  return (
    findTextProblem("signal id", signalId) ??
    findTextProblem("signal name", name) ??
    findTextProblem("dedup key", dedupKey) ??
    findTextProblem("payload", payload)
  );
}

type Parts = Pick<CommitBatch, "records" | "entries" | "session" | "effects">;

export function findBatchTextProblem(batch: CommitBatch): string | undefined {
  return findPartsProblem(batch);
}

function findPartsProblem({ records, entries, session, effects }: Parts): string | undefined {
  // Hot path: a message is made only for a text that has a problem.
  for (const { payload, seq } of records) {
    if (hasTextProblem(payload)) return findTextProblem(`payload of record ${seq}`, payload);
  }
  for (const { id, role, content } of entries) {
    if (hasTextProblem(role)) return findTextProblem(`role of entry ${id}`, role);
    if (hasTextProblem(content)) return findTextProblem(`entry ${id}`, content);
  }
  if (effects !== undefined) {
    for (const effect of effects) {
      const problem = findEffectProblem(effect);
      if (problem !== undefined) return problem;
    }
  }
  return (
    findTextProblem("output", session?.output) ??
    findTextProblem("progress", session?.progress) ??
    findTextProblem("progress it resumes from", session?.resumedFrom)
  );
}

/** An effect is refused with its batch, because the cascade cannot refuse it (cascade-1). */
function findEffectProblem(effect: Effect): string | undefined {
  switch (effect.type) {
    case "create_session":
      return findCreationTextProblem(effect);
    case "send_signal":
      return findSignalTextProblem(effect);
    case "request_cancel":
      return undefined;
  }
}

export function findImportTextProblem({ session, records, entries }: ImportedSession): string | undefined {
  const { sessionId, title, input, output } = session;
  return (
    findTextProblem("session id", sessionId) ??
    findTextProblem("title", title) ??
    findTextProblem("input", input) ??
    findTextProblem("output", output) ??
    findPartsProblem({ records, entries })
  );
}

export function findScheduleTextProblem({
  scheduleId,
  cron,
  timeZone,
  action,
}: Schedule): string | undefined {
  return (
    findTextProblem("schedule id", scheduleId) ??
    findTextProblem("cron", cron) ??
    findTextProblem("time zone", timeZone) ??
    (action.type === "start"
      ? findTextProblem("input", action.input)
      : findTextProblem("payload", action.payload))
  );
}

/** A body may have line breaks, because it is not a line of a journal. */
export function findDocumentTextProblem({ id, body }: StoredDocument): string | undefined {
  return body.isWellFormed()
    ? undefined
    : `the body of document ${id} has a lone surrogate that is not escaped`;
}

function hasTextProblem(text: string | undefined): boolean {
  return findTextProblem("", text) !== undefined;
}

function findTextProblem(what: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  if (!text.isWellFormed()) return `${what} has a lone surrogate that is not escaped`;
  return text.includes("\n") ? `${what} has a line break that is not escaped` : undefined;
}
