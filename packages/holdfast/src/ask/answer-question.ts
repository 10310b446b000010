// An answer to a question that a session asks a person.

import { encodeJson, HoldfastError, UsageError, type Session, type StorageReader } from "@holdfast/core";
import type { Arguments, Io } from "../frame/command.ts";
import { CommandError } from "../frame/command-error.ts";
import { answerCommands, openQuestions, statusText, type QuestionWait } from "../view/describe-session.ts";
import { questionRecords } from "../inbox/read-inbox.ts";
import { JournalTail } from "../view/journal-events.ts";
import { plainLine } from "../frame/plain-text.ts";
import { sendSignal, type PendingSignals } from "./send-signal.ts";

const TEXT_CHARS = 500;

export interface Answering {
  readonly id: string;
  readonly payload: unknown;
  /** Whether it is yes or no, which only some questions ask for. */
  readonly isApproval: boolean;
  /** Whether it is a no, which a question for the fields of a form takes too. */
  readonly isNo?: boolean;
  /** Whether it has another input for a call, which only some questions take. */
  readonly hasInput?: boolean;
  /** Whether the exact call becomes a rule, which not every call can. */
  readonly keepsRule?: boolean;
  /** "approved": stands before the question. */
  readonly said: string;
  /** The oldest open one by default. */
  readonly question?: number;
}

export async function answerQuestion(
  args: Arguments,
  io: Io,
  { id, payload, isApproval, isNo = false, hasInput = false, keepsRule = false, said, question }: Answering,
): Promise<number> {
  return sendSignal(args, io, {
    id,
    choose: async (session, pending, reader) => {
      const found = findQuestion(session, pending, question);
      if (found === undefined) throw await noSuchQuestion(session, reader, question, io);
      const isOther = isApproval && found.answer === "any";
      const details = hasInput || keepsRule || isOther ? await detailsOf(session, found, reader) : {};
      if (isOther && !(details["takesInput"] === true && (hasInput || isNo)))
        throw takesAnotherAnswer(session, found, io);
      if (hasInput && details["takesInput"] !== true) throw takesNoInput(session, found, io);
      if (keepsRule && details["lastingRule"] === undefined) throw keepsNoRule(session, found, io);
      const { name, prompt } = found;
      const repeated = `the question already has an answer, which is kept: ${plainLine(prompt, TEXT_CHARS)}`;
      return {
        name,
        send: (requests, sessionId, signalId) =>
          requests.answer(sessionId, payload, { question: found.id, signalId }),
        said: `${said}: ${plainLine(prompt, TEXT_CHARS)}`,
        repeated,
        compare: (recorded) => {
          const given = encodeJson(payload, "the answer");
          if (recorded === given) return;
          throw new CommandError("answered_otherwise", repeated, {
            got: given ?? "no answer",
            expected: recorded ?? "no answer, like the first time",
            fix: "cancel the session if the first answer was wrong",
          });
        },
      };
    },
  });
}

/** The details of a question, such as the call that it is for. */
async function detailsOf(
  session: Session,
  found: QuestionWait,
  reader: StorageReader,
): Promise<Readonly<Record<string, unknown>>> {
  const asked = (await questionRecords(session, [found], reader)).get(found.id);
  const details = asked?.question.details;
  return typeof details === "object" && details !== null
    ? (details as Readonly<Record<string, unknown>>)
    : {};
}

function keepsNoRule({ sessionId }: Session, { prompt }: QuestionWait, io: Io): UsageError {
  return new UsageError(`no rule can be kept of this call: ${plainLine(prompt, TEXT_CHARS)}`, {
    got: "--for without --pattern",
    expected:
      "a question whose call names its rule in the inbox; a line of several commands or with a redirection has none",
    fix: `answer it for once: ${io.call(`approve ${sessionId}`)}, or name the rule by --pattern`,
  });
}

function takesNoInput({ sessionId }: Session, { prompt }: QuestionWait, io: Io): UsageError {
  return new UsageError(`the question takes no input for a call: ${plainLine(prompt, TEXT_CHARS)}`, {
    got: "--input",
    expected: "a question with `takesInput`, which is for a call of Claude Code or for a form",
    fix: `answer without it: ${io.call(`approve ${sessionId}`)}, or ${io.call(`approve ${sessionId} --no --reason "…"`)} with the input that you want`,
  });
}

/**
 * The question that the command names, else the oldest unanswered one. If all are answered, the oldest, so
 * that the answer is reported as a duplicate.
 */
function findQuestion(
  session: Session,
  pending: PendingSignals,
  number: number | undefined,
): QuestionWait | undefined {
  const open = openQuestions(session);
  if (number !== undefined) return open.find(({ id }) => id === number);
  return open.find(({ name }) => !pending.has(name)) ?? open[0];
}

async function noSuchQuestion(
  session: Session,
  reader: StorageReader,
  number: number | undefined,
  io: Io,
): Promise<HoldfastError> {
  const { sessionId } = session;
  const now = session.status === "paused" ? "asks nothing while it is paused" : "asks nothing";
  const what = number === undefined ? now : `has no open question ${number}`;
  const known = openQuestions(session)
    .map(({ id, prompt }) => `${id}: ${plainLine(prompt, 200)}`)
    .join("\n");
  const last = await lastAnswer(sessionId, reader);
  return new HoldfastError(
    "question_not_found",
    `session ${sessionId} ${what}; it is ${statusText(session)}`,
    {
      ...(last === undefined ? {} : { got: last }),
      ...(known === "" ? {} : { expected: `one of\n${known}` }),
      fix: `run ${io.call(`show ${sessionId}`)} to see what it waits for`,
    },
  );
}

/** The last answer in the journal, shown to a person whose own answer comes too late. */
async function lastAnswer(sessionId: string, reader: StorageReader): Promise<string | undefined> {
  let last: string | undefined;
  await new JournalTail(reader, sessionId).advance(({ type, prompt, payload }) => {
    if (type === "signal_received" && prompt !== undefined)
      last = `a late answer: "${plainLine(prompt, 200)}" already has the answer ${plainLine(JSON.stringify(payload) ?? "", 200)}`;
  });
  return last;
}

function takesAnotherAnswer({ sessionId }: Session, question: QuestionWait, io: Io): UsageError {
  return new UsageError(
    `the question needs another answer than yes or no: ${plainLine(question.prompt, TEXT_CHARS)}`,
    {
      expected: "the answer that the agent asks for, as JSON",
      fix: answerCommands(sessionId, question, false, io).join(" or "),
    },
  );
}
