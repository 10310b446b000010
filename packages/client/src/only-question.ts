// `onlyQuestion`, `onlyQuestionName`: the question for an answer that names none.

import { UsageError } from "@holdfast/core";
import { unnamedAnswer, type ListedQuestion } from "@holdfast/proto/view";

/**
 * The only one of the questions without an answer; `undefined` where there is none.
 *
 * @throws UsageError where there are several.
 */
export function onlyQuestion<Question extends ListedQuestion>(
  sessionId: string,
  unanswered: readonly Question[],
): Question | undefined {
  if (unanswered.length < 2) return unanswered[0];
  const { message, ...details } = unnamedAnswer(sessionId, unanswered);
  throw new UsageError(message, { at: "question", ...details });
}

/** The same for the status of a session at a coordinator. */
export function onlyQuestionName({
  sessionId,
  questions,
}: {
  readonly sessionId: string;
  readonly questions: readonly { readonly name: string; readonly prompt: string }[];
}): string | undefined {
  const listed = questions.map((one) => ({ ...one, id: Number(one.name.replace("answer:", "")) }));
  return onlyQuestion(sessionId, listed)?.name;
}
