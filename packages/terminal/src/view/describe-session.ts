// Describes a session for people: its status, its waits, and the commands that answer them.

import {
  isEnded,
  isReservedName,
  NEXT_INPUT,
  type RecordedError,
  type Session,
  type Wait,
} from "@holdfast/core";
import {
  AGENT_REPORT,
  answerLines,
  isBlameless,
  signalText as plainSignalText,
  visibleText,
  type QuestionView,
} from "@holdfast/proto/view";
import { programOf, readAgentSource } from "@holdfast/machine/agent-source";
import type { Io, Look } from "../frame/command.ts";
import { cutTo, duration, jsonText, localTime, plain, plainLine, quoted } from "../frame/plain-text.ts";

const TEXT_CHARS = 200;
const RULE_CHARS = 2_000;

export interface DescribedWait {
  /** The number of the wait. */
  readonly id: number;
  /** The subject of the wait, completing "waits for". */
  readonly what: string;
  /** How long, completing that; empty when there is no end to it. */
  readonly until: string;
  /** The commands that answer it. */
  readonly commands: readonly string[];
  /** Whether the awaited thing has already arrived; the session takes it when it resumes. */
  readonly hasArrived: boolean;
}

/** The note for a command that needs the journal of a session without one. */
export function noteUnstored({ sessionId, persistence }: Session, io: Pick<Io, "note">): void {
  if (persistence !== undefined)
    io.note(`session ${sessionId} is ${persistence}: only its status is stored, and no journal`);
}

/** @param pending names of the signals that were not taken yet. */
export function describeWaits(
  session: Session,
  {
    io,
    now,
    pending = new Set(),
  }: { readonly io: Pick<Io, "call">; readonly now: number; readonly pending?: ReadonlySet<string> },
): DescribedWait[] {
  if (session.move !== undefined) return [];
  const isIdle = isIdleConversation(session);
  const isProgram = isOfProgram(session);
  return session.waits
    .filter(
      (wait) => wait.type !== "signal" || !isProgram || !isOfAdapter(wait.name) || pending.has(wait.name),
    )
    .filter((wait) => !isIdle || wait.type !== "signal" || !isAside(wait.name) || pending.has(wait.name))
    .map((wait) => {
      const { id } = wait;
      const until = "until" in wait && wait.until !== undefined ? `, until ${moment(wait.until, now)}` : "";
      const hasArrived = wait.type === "timer" ? wait.at <= now : pending.has(wait.name);
      const isMessage = isIdle && wait.type === "signal" && wait.name === NEXT_INPUT;
      const commands = hasArrived ? [] : commandsFor(session.sessionId, wait, io);
      return isMessage && !hasArrived
        ? {
            id,
            what: "your next message",
            until,
            commands: messageCommands(session.sessionId, io),
            hasArrived,
          }
        : { id, what: what(session.sessionId, wait, now), until, commands, hasArrived };
    });
}

/** Whether a conversation takes the signal while it waits for a message. Programs send it, and a person writes a message. */
export function isAside(name: string): boolean {
  return ["ci", "review", "steer", "follow_up"].includes(name);
}

/** Whether an external agent has the session. At a coordinator its agent has no source, but it waits for reports. */
export function isOfProgram({ agent, waits }: Pick<Session, "agent" | "waits">): boolean {
  return (
    programOf(agent.file) !== undefined ||
    waits.some((wait) => wait.type === "signal" && wait.name === AGENT_REPORT)
  );
}

/** Whether a model or a program has the session. Unknown at a coordinator, which stores no source of an agent. */
export function isConversation(session: Session): boolean | undefined {
  const { file } = session.agent;
  if (isOfProgram(session)) return true;
  return file === undefined ? undefined : readAgentSource(file).kind === "file";
}

/**
 * Whether the adapter of an external agent listens for the signal while the agent works. A person has nothing
 * to send for it.
 */
export function isOfAdapter(name: string): boolean {
  return name === AGENT_REPORT || name === "interrupt" || isAside(name);
}

/** Whether the session is a conversation of an agent file or an external agent that waits for its next request. */
export function isIdleConversation({ waits }: Pick<Session, "waits">): boolean {
  const names = new Set(waits.map((wait) => (wait.type === "signal" ? wait.name : "")));
  return names.has(NEXT_INPUT) && (names.has("steer") || names.has("follow_up"));
}

/** The commands by which a person goes on with a conversation. */
export function messageCommands(sessionId: string, io: Pick<Io, "call">): readonly string[] {
  return [io.call(`chat --session ${sessionId}`), io.call(`signal ${sessionId} ${NEXT_INPUT} '"TEXT"'`)];
}

/** The command that resumes a session, if the session needs it to continue. */
export function continuesWith(
  session: Session,
  waits: readonly DescribedWait[],
  io: Pick<Io, "call">,
): string | undefined {
  if (isEnded(session.status) || session.move !== undefined) return undefined;
  const isBlocked = session.status === "waiting" || session.status === "input_required";
  // A timer is due by time alone, but no process looks at the clock for a session that none runs.
  const canContinue =
    waits.some(({ hasArrived }) => hasArrived) ||
    session.waits.some((wait) => wait.type === "timer" || wait.until !== undefined);
  return !isBlocked || canContinue ? io.call(`resume ${session.sessionId}`) : undefined;
}

/** Whether its agent's code has to be corrected first: as it is, it would only stop again. */
export function isAuthorsFault(session: Pick<Session, "status" | "pauseReason" | "error">): boolean {
  const { status, pauseReason } = session;
  if (status !== "paused" || isBlameless(session)) return false;
  return pauseReason === "nondeterminism" || pauseReason === "agent_fault" || pauseReason === "poison";
}

/** The label before the command that resumes a session. */
export function beforeResume(session: Pick<Session, "status" | "pauseReason" | "error">): string {
  return isAuthorsFault(session) ? "correct the code, then" : "continue with";
}

/**
 * A question to a person, or its rule, on one line and cut, with `\n` for a line break. It shows each
 * character that `plainLine` would drop.
 */
export function questionLine(text: string, charsMax: number): string {
  return cutTo(visibleText(text.trim()).replaceAll("\n", "\\n"), charsMax, "...");
}

/**
 * A question in full, with the call that is to be approved: a person approves what is shown. The first line
 * is the question. Only beyond 20,000 characters the text says that there is more, and where.
 *
 * @param isChangeShown whether all lines of its change stand above it.
 */
export function askedLines(
  {
    prompt,
    tool,
    action,
    change,
    beside,
    folder,
    askedBy,
    details,
  }: Omit<QuestionView, "kind" | "taskId" | "lastingRule">,
  isChangeShown = false,
): readonly string[] {
  if (action === undefined) return questionLines(prompt, details);
  const isSaid = action === "" || prompt === `Allow ${tool}: ${action}?`;
  // An edit is read as its lines. Its arguments would say them again.
  const call =
    change !== undefined && beside !== undefined
      ? [beside, ...(isChangeShown ? [] : [changeText(change)])].filter((text) => text !== "")
      : isSaid
        ? []
        : [action];
  return [
    ...questionLines(prompt, undefined),
    ...call.flatMap((text) => questionLines(text, undefined)).map((line) => `  ${line}`),
    ...(folder === undefined ? [] : [`in ${questionLine(folder, Infinity)}`]),
    ...(askedBy === undefined ? [] : [`asked by the rule ${questionLine(askedBy, RULE_CHARS)}`]),
  ];
}

function changeText(change: NonNullable<QuestionView["change"]>): string {
  return change.map(({ type, text }) => `${type === "added" ? "+" : "-"} ${text}`).join("\n");
}

/** The advice beside the command `approve` for a question whose answer can be kept as a rule. */
export function ruleAdvice(lastingRule: string): string {
  return `with --for session or --for project the answer is kept as a rule for ${questionLine(lastingRule, RULE_CHARS)}`;
}

/** A question in full: a person must see all of what is asked. Lines of text, the first without indentation. */
function questionLines(prompt: string, details: unknown): string[] {
  const lines = visibleText(bounded(prompt)).trimEnd().split("\n");
  if (details !== undefined)
    lines.push(
      ...visibleText(bounded(typeof details === "string" ? details : jsonText(details))).split("\n"),
    );
  return lines;
}

const QUESTION_CHARS = 20_000;

function bounded(text: string): string {
  if (text.length <= QUESTION_CHARS) return text;
  return `${text.slice(0, QUESTION_CHARS)}... (${text.length} characters; \`show --json\` has all)`;
}

export type QuestionWait = Extract<Wait, { type: "input" }>;

/**
 * Questions that wait for a person, the oldest first. A session has them while it is `input_required` or
 * `paused`, and after a pause until its agent blocks again. The row of a moved session keeps its
 * waits, but its new place asks them: lists of questions leave out sessions with `move`.
 * `askedQuestions` of core reads a question as it was asked, with its details and its time.
 */
export function openQuestions(session: Pick<Session, "waits">): QuestionWait[] {
  return session.waits.filter((wait) => wait.type === "input").toSorted((a, b) => a.id - b.id);
}

/**
 * "waiting", "paused (nondeterminism)".
 *
 * @param isRun whether a process may be running it. A session that has work and no process is `interrupted`.
 */
export function statusText(
  { status, pauseReason, move }: Pick<Session, "status" | "pauseReason" | "move">,
  isRun = true,
): string {
  if (move !== undefined)
    return `${move.isDone === true ? "moved" : "moving"} to ${plainLine(move.to, TEXT_CHARS)}`;
  if (status === "working" && !isRun) return "interrupted";
  return status === "paused" && pauseReason !== undefined ? `paused (${pauseReason})` : status;
}

/** One word for a status, where a table has little room. */
const SHORT_STATUS: Readonly<Record<string, string>> = {
  input_required: "asks",
  working: "works",
  waiting: "waits",
  submitted: "queued",
  cancelling: "stopping",
  completed: "done",
};

/** @param status as `statusText` returns it. */
export function shortStatus(status: string): string {
  return SHORT_STATUS[status] ?? status;
}

export function paintStatus(
  session: Pick<Session, "status" | "pauseReason" | "move">,
  { paint }: Look,
  isRun = true,
): string {
  const text = statusText(session, isRun);
  if (session.move !== undefined) return paint.dim(text);
  switch (session.status) {
    case "completed":
      return paint.green(text);
    case "failed":
    case "paused":
      return paint.red(text);
    case "waiting":
    case "input_required":
    case "cancelling":
      return paint.yellow(text);
    case "submitted":
    case "working":
      return isRun ? paint.cyan(text) : paint.yellow(text);
    case "cancelled":
      return paint.dim(text);
  }
}

/** An error as it was recorded, on one line. */
export function errorLine(error: RecordedError | undefined): string {
  if (error === undefined) return "";
  const name = error.name === "Error" ? "" : `${error.name}: `;
  return plainLine(`${name}${error.message}`, TEXT_CHARS * 2);
}

/** An error in full, as it was recorded: what, and below it where, what was there, what was expected and how to mend it. */
export function errorLines(error: RecordedError): string[] {
  const { name, message, at, got, expected, fix, cause } = error;
  const head = plain(name === "Error" ? message : `${name}: ${message}`).trimEnd();
  const details = Object.entries({ at, got, expected, fix }).flatMap(([label, text]) =>
    text === undefined ? [] : indentedLines(`${label}: ${plain(text)}`),
  );
  const behind = cause === undefined ? [] : errorLines(cause);
  return [
    ...head.split("\n"),
    ...details,
    ...behind.flatMap((line, i) => indentedLines(i === 0 ? `because of ${line}` : line)),
  ];
}

function indentedLines(text: string): string[] {
  return text
    .trimEnd()
    .split("\n")
    .map((line) => `  ${line}`);
}

/**
 * Whether the error of the row is current. A session that resumes keeps its row's error until it stops again.
 */
export function currentError({
  status,
  error,
}: Pick<Session, "status" | "error">): RecordedError | undefined {
  return status === "failed" || status === "paused" || status === "cancelled" ? error : undefined;
}

/** Whether its error only says that a cancel ended what its agent waited for. */
export function isByCancel({ status, error }: Pick<Session, "status" | "error">): boolean {
  return status === "cancelled" && error?.code === "cancelled";
}

/** A time, and how far away it is. */
export function moment(at: number, now: number): string {
  const away = at - now;
  return `${localTime(at)} (${away >= 0 ? `in ${duration(away)}` : `${duration(-away)} ago`})`;
}

function what(sessionId: string, wait: Wait, now: number): string {
  switch (wait.type) {
    case "timer":
      return `a timer, due ${moment(wait.at, now)}`;
    case "signal":
      return signalText(wait.name, sessionId);
    case "input":
      return `an answer to question ${wait.id}: ${questionLine(wait.prompt, TEXT_CHARS)}`;
  }
}

/** A signal for people, on one line. */
export function signalText(name: string, sessionId: string): string {
  return plainSignalText(plainLine(name, TEXT_CHARS), sessionId);
}

function commandsFor(id: string, wait: Wait, io: Pick<Io, "call">): string[] {
  switch (wait.type) {
    case "timer":
      return [];
    case "signal":
      if (isReservedName(wait.name)) return [];
      return [io.call(`signal ${id} ${quoted(plainLine(wait.name, TEXT_CHARS))} [JSON]`)];
    case "input":
      return answerCommands(id, wait, io);
  }
}

/** The commands that answer a question, as a person types them. */
export function answerCommands(
  id: string,
  question: Pick<QuestionWait, "id" | "life" | "answer">,
  io: Pick<Io, "call">,
): string[] {
  return answerLines(id, question).map((line) => io.call(line));
}

/** Commands to type: in one line where it fits, and otherwise in one line each, so that none is broken. */
export function commandLines(commands: readonly string[], before: string, { columns }: Look): string {
  const line = `  ${before}${commands.join("   ")}`;
  if (line.length <= columns) return line;
  const head = before === "" ? [] : [`  ${before.trimEnd()}`];
  return [...head, ...commands.map((command) => `    ${command}`)].join("\n");
}
