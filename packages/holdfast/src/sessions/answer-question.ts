// An answer to a question that a session asks a person.

import {
  askedQuestions,
  ConflictError,
  defined,
  encodeJson,
  findAnswerer,
  HoldfastError,
  UsageError,
  type Session,
  type StorageReader,
} from "@holdfast/core";
import { refuse } from "@holdfast/terminal/frame/arguments";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import {
  answerCommands,
  openQuestions,
  statusText,
  type QuestionWait,
  questionLine,
} from "@holdfast/terminal/view/describe-session";
import { questionNumber, unnamedAnswer } from "@holdfast/proto/view";
import { JournalTail } from "@holdfast/terminal/view/journal-events";
import { plainLine } from "@holdfast/terminal/frame/plain-text";
import { sendSignal, type PendingSignals } from "./send-signal.ts";

const TEXT_CHARS = 500;
const PROMPT_CHARS = 200;

export interface Answering {
  readonly id: string;
  readonly payload: unknown;
  /** Whether it is yes or no, which only some questions ask for. */
  readonly isApproval: boolean;
  /** Whether it is a no, which a question for the fields of a form takes too. */
  readonly isNo?: boolean;
  /** Whether it has another input for a call, which only some questions take. */
  readonly hasInput?: boolean;
  /** Whether the answer becomes a rule. The session keeps it, because only its tool knows whether it can. */
  readonly isRule?: boolean;
  /** Whether the exact call becomes a rule, which not every call can. */
  readonly keepsRule?: boolean;
  /** "approved": stands before the question. */
  readonly said: string;
  /** The only open one by default. */
  readonly question?: QuestionNumber;
}

/** A question that a person has read. */
export interface QuestionNumber {
  readonly id: number;
  /** The incarnation of a session that keeps no journal; any by default. */
  readonly life?: number;
}

/** The question that an argument names. @throws UsageError */
export function questionIn(
  text: string | undefined,
  { usage }: Pick<Arguments, "usage">,
): { readonly question?: QuestionNumber } {
  if (text === undefined) return {};
  const [, id, life] = /^(\d{1,15})(?:\.(\d{1,9}))?$/.exec(text) ?? [];
  if (id === undefined)
    throw refuse(`"${text}" is not the number of a question`, usage, {
      fix: "run `holdfast show ID` to see the open questions",
    });
  return { question: { id: Number(id), ...(life === undefined ? {} : { life: Number(life) }) } };
}

export async function answerQuestion(
  args: Arguments,
  io: Io,
  {
    id,
    payload,
    isApproval,
    isNo = false,
    hasInput = false,
    isRule = false,
    keepsRule = false,
    said,
    question,
  }: Answering,
): Promise<number> {
  return sendSignal(args, io, {
    id,
    choose: async (session, pending, reader) => {
      const found = findQuestion(session, pending, question, io);
      if (found === undefined) throw await noSuchQuestion(session, reader, question, io);
      const isOther = isApproval && found.answer === "any";
      const details = hasInput || keepsRule || isOther ? await detailsOf(session, found, reader) : {};
      if (isOther && !(details["takesInput"] === true && (hasInput || isNo)))
        throw takesAnotherAnswer(session, found, io);
      if (hasInput && details["takesInput"] !== true) throw takesNoInput(session, found, io);
      if (keepsRule && details["lastingRule"] === undefined) throw keepsNoRule(session, found, io);
      const { name, prompt } = found;
      const repeated = `the question already has an answer, which is kept: ${questionLine(prompt, TEXT_CHARS)}`;
      return {
        name,
        send: (requests, sessionId, signalId) =>
          requests.answer(sessionId, payload, { question: found.id, signalId }),
        said: `${said}: ${questionLine(prompt, TEXT_CHARS)}`,
        repeated,
        ...(isRule ? { undone: ", so the rule is not kept yet" } : {}),
        compare: async (recorded) => {
          const given = encodeJson(payload, "the answer");
          if (recorded === given) return;
          const by = await answererOf(reader, session, found.id);
          throw new ConflictError("answered_otherwise", `${repeated}${by}`, {
            got: given ?? "no answer",
            expected: recorded ?? "no answer, like the first time",
            fix: "cancel the session if the first answer was wrong",
          });
        },
      };
    },
  });
}

/** " (answered by user:ada)"; empty where no row of the audit says it, or this caller may not read the audit. */
async function answererOf(reader: StorageReader, { sessionId }: Session, id: number): Promise<string> {
  const by = await findAnswerer(reader, sessionId, id).catch(() => undefined);
  return by === undefined ? "" : ` (answered by ${by})`;
}

/** The details of a question, such as the call that it is for. */
async function detailsOf(
  session: Session,
  found: QuestionWait,
  reader: StorageReader,
): Promise<Readonly<Record<string, unknown>>> {
  const asked = (await askedQuestions(reader, session, [found.id])).get(found.id);
  const details = asked?.question.details;
  return typeof details === "object" && details !== null
    ? (details as Readonly<Record<string, unknown>>)
    : {};
}

function keepsNoRule({ sessionId }: Session, question: QuestionWait, io: Io): UsageError {
  return new UsageError(`no rule can be kept of this call: ${questionLine(question.prompt, TEXT_CHARS)}`, {
    got: "--for without --pattern",
    expected:
      "a question whose call names its rule in the inbox; a line of several commands or with a redirection has none",
    fix: `answer it for once: ${io.call(`approve ${sessionId} ${questionNumber(question)}`)}, or name the rule by --pattern`,
  });
}

function takesNoInput({ sessionId }: Session, question: QuestionWait, io: Io): UsageError {
  const target = `${sessionId} ${questionNumber(question)}`;
  return new UsageError(
    `the question takes no input for a call: ${questionLine(question.prompt, TEXT_CHARS)}`,
    {
      got: "--input",
      expected: "a question with `takesInput`, which is for a call of Claude Code or for a form",
      fix: `answer without it: ${io.call(`approve ${target}`)}, or ${io.call(`approve ${target} --no --reason "…"`)} with the input that you want`,
    },
  );
}

/**
 * The question that the command names, else the only one that has no answer. If all are answered, the oldest,
 * so that the answer is reported as a duplicate.
 *
 * @throws UsageError when the command names none of several: the person has read one of them, and the command
 *   does not say which.
 */
function findQuestion(
  session: Session,
  pending: PendingSignals,
  wanted: QuestionNumber | undefined,
  io: Io,
): QuestionWait | undefined {
  const open = openQuestions(session);
  if (wanted !== undefined)
    return open.find(
      ({ id, life }) => id === wanted.id && (wanted.life === undefined || life === wanted.life),
    );
  const unanswered = open.filter(({ name }) => !pending.has(name));
  if (unanswered.length > 1) throw whichQuestion(session, unanswered, io);
  return unanswered[0] ?? open[0];
}

function whichQuestion({ sessionId }: Session, open: readonly QuestionWait[], io: Io): UsageError {
  const shown = open.map((one) => ({ ...one, prompt: questionLine(one.prompt, PROMPT_CHARS) }));
  const { message, ...details } = unnamedAnswer(sessionId, shown, (line) => io.call(line));
  return new UsageError(message, details);
}

function listOf(open: readonly QuestionWait[]): string {
  return open.map((one) => `${questionNumber(one)}: ${questionLine(one.prompt, PROMPT_CHARS)}`).join("\n");
}

async function noSuchQuestion(
  session: Session,
  reader: StorageReader,
  wanted: QuestionNumber | undefined,
  io: Io,
): Promise<HoldfastError> {
  const { sessionId } = session;
  const now = session.status === "paused" ? "asks nothing while it is paused" : "asks nothing";
  const what = wanted === undefined ? now : `has no open question ${questionNumber(wanted)}`;
  const known = listOf(openQuestions(session));
  const last = await lastAnswer(session, reader);
  return new HoldfastError(
    "question_not_found",
    `session ${sessionId} ${what}; it is ${statusText(session)}`,
    {
      ...defined({ got: last }),
      ...(known === "" ? {} : { expected: `one of\n${known}` }),
      fix: `run ${io.call(`show ${sessionId}`)} to see what it waits for`,
    },
  );
}

/** The last answer in the journal, shown to a person whose own answer comes too late. */
async function lastAnswer(session: Session, reader: StorageReader): Promise<string | undefined> {
  let last: string | undefined;
  let id: number | undefined;
  await new JournalTail(reader, session.sessionId).advance(({ type, prompt, payload, wait }) => {
    if (type !== "signal_received" || prompt === undefined) return;
    id = Number(wait);
    last = `a late answer: "${questionLine(prompt, 200)}" already has the answer ${plainLine(JSON.stringify(payload) ?? "", 200)}`;
  });
  return id === undefined ? last : `${last}${await answererOf(reader, session, id)}`;
}

function takesAnotherAnswer({ sessionId }: Session, question: QuestionWait, io: Io): UsageError {
  return new UsageError(
    `the question needs another answer than yes or no: ${questionLine(question.prompt, TEXT_CHARS)}`,
    {
      expected: "the answer that the agent asks for, as JSON",
      fix: answerCommands(sessionId, question, io).join(" or "),
    },
  );
}
