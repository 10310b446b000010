// The question that an answer is for.

import {
  answerSignalName,
  ConflictError,
  decodeJson,
  findAnswerer,
  isEnded,
  noSuchQuestion,
  NotFoundError,
  openQuestion,
  type Session,
  UsageError,
} from "@holdfast/core";
import { answerText, unnamedAnswer } from "@holdfast/proto/view";
import type { ServiceHost } from "../service-host.ts";
import { hasEnded, keyedSignalId, messageSignalId, recordsOf } from "./signals.ts";

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
  if (id !== undefined) {
    const given = answerSignalName(id);
    const taken = await takenAnswer(host, sessionId, id);
    if (taken?.signalId === keyedSignalId(sessionId, given, given, text) || taken?.payload === (text ?? null))
      return given;
    if (taken !== undefined) throw await answeredOtherwise(host, sessionId, id, taken.payload);
  }
  if (isEnded(session.status)) throw hasEnded(session);
  throw new NotFoundError("question_not_found", noSuchQuestion(session, question), {
    at: "question",
    fix: "get the session to see its open questions; omit `question` to answer the only one",
  });
}

/**
 * The question that a message with this id has answered, however many questions the session has asked since.
 * Empty for a message that the session took and that answered none. `undefined` for one that is new.
 */
export async function answeredByMessage(
  { storage: { reader } }: ServiceHost,
  sessionId: string,
  messageId: string,
): Promise<string | undefined> {
  const signalId = messageSignalId(sessionId, messageId);
  if (!(await reader.seenSignals(sessionId)).ids.includes(signalId)) return undefined;
  const pending = await reader.pendingSignals(sessionId);
  const waiting = pending.find((signal) => signal.signalId === signalId);
  if (waiting !== undefined) return waiting.name;
  for await (const record of recordsOf(reader, sessionId))
    if (record.type === "signal_received" && record.signalId === signalId)
      return answerSignalName(record.wait);
  return "";
}

interface TakenAnswer {
  readonly signalId: string;
  readonly payload: string | null;
}

/** The answer of a question that its session has taken, by the journal. */
async function takenAnswer(
  { storage }: ServiceHost,
  sessionId: string,
  id: number,
): Promise<TakenAnswer | undefined> {
  for await (const record of recordsOf(storage.reader, sessionId))
    if (record.type === "signal_received" && record.wait === id)
      return { signalId: record.signalId, payload: record.payload ?? null };
  return undefined;
}

/**
 * Refuses an answer that is another one than the stored answer. An equal one is the same answer
 * (session-service-1).
 *
 * @throws ConflictError that says which answer counts, and whose it is.
 */
export async function refuseOtherAnswer(
  host: ServiceHost,
  session: Session,
  { id, name }: { readonly id: number; readonly name: string },
  text: string | undefined,
): Promise<void> {
  const { sessionId } = session;
  const pending = await host.storage.reader.pendingSignals(sessionId);
  const stored = pending.find((signal) => signal.name === name) ?? (await takenAnswer(host, sessionId, id));
  if (stored === undefined || (stored.payload ?? null) === (text ?? null)) return;
  throw await answeredOtherwise(host, sessionId, id, stored.payload ?? null);
}

async function answeredOtherwise(
  { storage }: ServiceHost,
  sessionId: string,
  id: number,
  payload: string | null,
): Promise<ConflictError> {
  const by = await findAnswerer(storage.reader, sessionId, id);
  const words = answerText(payload === null ? undefined : decodeJson(payload));
  return new ConflictError(
    "answered_otherwise",
    `the question was answered before: ${words}${by === undefined ? "" : ` by ${by}`}. That answer counts, and yours was not stored`,
    {
      at: "question",
      expected: payload ?? "no answer",
      fix: "cancel the session if the answer that counts was wrong",
    },
  );
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
