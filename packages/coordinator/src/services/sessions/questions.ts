// The question that an answer is for.

import {
  answerSignalName,
  isEnded,
  noSuchQuestion,
  NotFoundError,
  openQuestion,
  type Session,
  UsageError,
} from "@holdfast/core";
import { unnamedAnswer } from "@holdfast/proto/view";
import type { ServiceHost } from "../service-host.ts";
import { hasEnded, keyedSignalId, wasConsumed } from "./signals.ts";

type Question = ReturnType<typeof openQuestion>;

/** The open question that an answer names, or the only one when it names none. @throws UsageError */
export async function answeredQuestion(
  host: ServiceHost,
  session: Session,
  question: string | undefined,
): Promise<Question> {
  if (question === undefined) return onlyQuestion(session, await pendingNames(host, session.sessionId));
  return openQuestion(session, numberOf(question) ?? NO_QUESTION);
}

/**
 * The name of the question that is no longer open because it got this answer (session-service-1).
 *
 * @throws ConflictError, NotFoundError when it did not.
 */
export async function answeredBefore(
  host: ServiceHost,
  session: Session,
  question: string | undefined,
  text: string | undefined,
): Promise<string> {
  const { sessionId } = session;
  const id = question === undefined ? undefined : numberOf(question);
  const given = id === undefined ? undefined : answerSignalName(id);
  if (
    given !== undefined &&
    (await wasConsumed(host, sessionId, keyedSignalId(sessionId, given, given, text)))
  )
    return given;
  if (isEnded(session.status)) throw hasEnded(session);
  throw new NotFoundError("question_not_found", noSuchQuestion(session, question), {
    at: "question",
    fix: "get the session to see its open questions; omit `question` to answer the only one",
  });
}

/** A number that no command has. */
const NO_QUESTION = -1;

/**
 * The question for an answer that names none: the only one without an answer. If all have one, it is the
 * oldest, whose first answer counts.
 *
 * @throws UsageError where there are several.
 */
function onlyQuestion(session: Session, pending: ReadonlySet<string>): Question {
  const unanswered = session.waits
    .filter((wait) => wait.type === "input")
    .filter(({ name }) => !pending.has(name));
  if (unanswered.length < 2) return openQuestion(session, undefined, pending);
  const { message, ...details } = unnamedAnswer(session.sessionId, unanswered);
  throw new UsageError(message, { at: "question", ...details });
}

/** The number of a question, given alone or as the name of the signal that answers it. */
function numberOf(question: string): number | undefined {
  const digits = /^(?:answer:)?(\d+)$/.exec(question)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** The names of stored signals that are not read. */
export async function pendingNames(
  { storage }: ServiceHost,
  sessionId: string,
): Promise<ReadonlySet<string>> {
  return new Set((await storage.reader.pendingSignals(sessionId)).map(({ name }) => name));
}
