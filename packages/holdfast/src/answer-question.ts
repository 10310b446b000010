// An answer to a question that a session asks a person.

import type { Session } from "@holdfast/core";
import type { Arguments, Io } from "./command.ts";
import { CommandError } from "./command-error.ts";
import { openQuestions, statusText, type QuestionWait } from "./describe-session.ts";
import { plainLine } from "./plain-text.ts";
import { sendSignal } from "./send-signal.ts";

export interface Answering {
  readonly id: string;
  readonly payload: unknown;
  /** "approved": stands before the question. */
  readonly said: string;
  /** The oldest open one by default. */
  readonly question?: number;
}

export async function answerQuestion(
  args: Arguments,
  io: Io,
  { id, payload, said, question }: Answering,
): Promise<number> {
  return sendSignal(args, io, {
    id,
    choose: (session, pending) => {
      const { id: number, name, prompt } = findQuestion(session, pending, question, io);
      return {
        name,
        send: (runtime, sessionId) => runtime.answer(sessionId, payload, { question: number }),
        said: `${said}: ${plainLine(prompt, 500)}`,
        repeated: `the question was answered before, and the first answer stands: ${plainLine(prompt, 500)}`,
      };
    },
  });
}

/** The one that is meant; or the oldest that nobody has answered; or, when all are, the oldest, to say just that. */
function findQuestion(
  session: Session,
  pending: ReadonlySet<string>,
  number: number | undefined,
  io: Io,
): QuestionWait {
  const open = openQuestions(session);
  const oldest = open.find(({ name }) => !pending.has(name)) ?? open[0];
  const found = number === undefined ? oldest : open.find(({ id }) => id === number);
  if (found !== undefined) return found;
  const { sessionId } = session;
  const what = number === undefined ? "asks nothing" : `has no open question ${number}`;
  const known = open.map(({ id, prompt }) => `${id}: ${plainLine(prompt, 200)}`).join("\n");
  throw new CommandError("question_not_found", `session ${sessionId} ${what}; it is ${statusText(session)}`, {
    ...(known === "" ? {} : { expected: `one of\n${known}` }),
    fix: `${io.call(`show ${sessionId}`)} tells what it waits for`,
  });
}
