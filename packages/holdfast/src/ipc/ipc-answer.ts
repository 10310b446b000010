// `questionFor`: the question that an answer of the host is for.

import type { StorageReader } from "@holdfast/core";
import { onlyQuestion } from "@holdfast/client";
import { openQuestions } from "@holdfast/terminal/view/describe-session";
import type { RequestOf } from "./ipc-messages.ts";

/** @throws UsageError when the answer names none of several open questions. */
export async function questionFor(
  { sessionId, question }: RequestOf<"answer">,
  reader: StorageReader,
): Promise<{ readonly question?: number }> {
  if (question !== undefined) return { question };
  const open = openQuestions((await reader.session(sessionId)) ?? { waits: [] });
  const pending = new Set((await reader.pendingSignals(sessionId)).map(({ name }) => name));
  const only = onlyQuestion(
    sessionId,
    open.filter(({ name }) => !pending.has(name)),
  );
  return only === undefined ? {} : { question: only.id };
}
