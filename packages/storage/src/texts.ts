// Text that a database or the journal's lines would change without a word is refused: lone surrogates outside of JSON escapes, and
// line breaks in recorded JSON (writer-4 of `sqlite/engine/writer.ts`). Each function answers what is wrong, or `undefined`.

import type {
  CommitBatch,
  CreateSession,
  Effect,
  ImportSession,
  Schedule,
  SendSignal,
  StoredDocument,
} from "@holdfast/core";

export function findSessionProblem({
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
    findTextProblem("parent's id", parent?.sessionId) ??
    findTextProblem("shared context", value) ??
    findTextProblem("progress it goes on from", resumedFrom) ??
    (first && findPartsProblem(first))
  );
}

export function findSignalProblem({ signalId, name, dedupKey, payload }: SendSignal): string | undefined {
  return (
    findTextProblem("signal id", signalId) ??
    findTextProblem("signal name", name) ??
    findTextProblem("dedup key", dedupKey) ??
    findTextProblem("payload", payload)
  );
}

type Parts = Pick<CommitBatch, "records" | "entries" | "session" | "effects">;

export function findBatchProblem(batch: CommitBatch): string | undefined {
  return findPartsProblem(batch);
}

function findPartsProblem({ records, entries, session, effects }: Parts): string | undefined {
  // Words only for what is wrong: every step of every agent comes through here.
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
    findTextProblem("progress it goes on from", session?.resumedFrom)
  );
}

/** What an effect says is refused with its batch: afterwards it is too late (cascade-1 of the core's `cascade.ts`). */
function findEffectProblem(effect: Effect): string | undefined {
  switch (effect.type) {
    case "create_session":
      return findSessionProblem(effect);
    case "send_signal":
      return findSignalProblem(effect);
    case "request_cancel":
      return undefined;
  }
}

export function findImportTextProblem({ session, records, entries }: ImportSession): string | undefined {
  const { sessionId, input, output } = session;
  return (
    findTextProblem("session id", sessionId) ??
    findTextProblem("input", input) ??
    findTextProblem("output", output) ??
    findPartsProblem({ records, entries })
  );
}

export function findScheduleProblem({ scheduleId, cron, timeZone, action }: Schedule): string | undefined {
  return (
    findTextProblem("schedule id", scheduleId) ??
    findTextProblem("cron", cron) ??
    findTextProblem("time zone", timeZone) ??
    findTextProblem("what it starts or signals with", action.type === "start" ? action.input : action.payload)
  );
}

/** A body may have line breaks: it is no line of a journal. */
export function findDocumentProblem({ id, body }: StoredDocument): string | undefined {
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
