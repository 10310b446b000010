// The output of `run` and `resume` while a session runs (`liveView`): for people, or as lines of JSON for
// programs.
//
// There are two sources. Events come from the journal, after their commit, and are numbered. Tokens and
// progress come from running tasks and are provisional: a new attempt replaces them, and only the task's
// output is recorded.

import { isReservedName, type AnswerShape, type Session, type TraceEvent } from "@holdfast/core";
import { subAgentCallOf, viewQuestion, type AskedQuestion } from "@holdfast/proto/view";
import type { Io } from "../frame/command.ts";
import {
  answerCommands,
  askedLines,
  describeWaits,
  isAside,
  isOfAdapter,
  messageCommands,
  NEXT_INPUT,
} from "./describe-session.ts";
import { eventLine } from "./event-line.ts";
import type { JournalEvent } from "./journal-events.ts";
import { plainLine, plainPiece, quoted } from "../frame/plain-text.ts";
import { howToAnswer } from "./typed-answer.ts";

/** Questions of a session by their numbers. */
export type AskedQuestions = ReadonlyMap<number, AskedQuestion>;

export interface LiveView {
  /**
   * @param pending names of the signals that were there before.
   * @param asked the questions since the last checkpoint.
   */
  began(session: Session, resumed: boolean, pending: ReadonlySet<string>, asked: AskedQuestions): void;
  event(event: JournalEvent): void;
  trace(event: TraceEvent): void;
}

export interface LiveViewOptions {
  readonly io: Io;
  readonly sessionId: string;
  /** Whether a person may answer questions by typing. */
  readonly canType: boolean;
  /** Whether other terminals can reach the session. */
  readonly isDurable: boolean;
}

export function liveView(options: LiveViewOptions): LiveView {
  return options.io.isJson ? jsonView(options.io) : textView(options);
}

function jsonView(io: Io): LiveView {
  const line = (value: object): void => io.result(value, "");
  return {
    began: ({ sessionId, agent }, resumed) =>
      line({ type: "session", sessionId, agent: agent.name, version: agent.version, resumed }),
    event: line,
    trace(event) {
      if (event.type === "warned") line({ type: "warning", message: event.message });
      if (event.type === "task_started" && event.attempt > 1) {
        line({ type: "reset", taskId: event.taskId, kind: event.kind, attempt: event.attempt });
      }
      if (event.type !== "task_delta") return;
      const { taskId, kind, attempt, offset, delta } = event;
      line({ ...delta, taskId, kind, attempt, offset });
    },
  };
}

function textView({ io, sessionId, canType, isDurable }: LiveViewOptions): LiveView {
  const look = io.notes;
  const { paint, symbols } = look;
  let streaming: string | undefined;
  let hasStreamed = false;
  let begun: Session | undefined;
  /** Signals whose command was told: a daemon waits for the same one again and again. */
  const shown = new Set<string>();

  const note = (line: string): void => {
    streaming = undefined;
    io.note(line);
  };
  /**
   * How a question is answered: here if a person can type, from another terminal if others can reach the
   * session.
   */
  const hintAtAnswers = (shape: AnswerShape | undefined, commands: readonly string[]): void => {
    if (canType) note(paint.dim(`  ${howToAnswer(shape)}`));
    hintAtCommands(commands, canType ? "or from another terminal: " : "");
  };
  const hintAtSignal = (name: string, commands: readonly string[]): void => {
    if (shown.has(name)) return;
    shown.add(name);
    if (name === "input" && canType) note(paint.dim("  type a line"));
    hintAtCommands(commands);
  };
  const hintAtCommands = (commands: readonly string[], before = ""): void => {
    if (isDurable && commands.length > 0) note(paint.dim(`  ${before}${commands.join("   ")}`));
  };

  return {
    began(session, resumed, pending, asked) {
      begun = session;
      const version = session.agent.version === "1" ? "" : ` ${session.agent.version}`;
      note(
        `${paint.bold(session.agent.name)}${version}  ${paint.dim(sessionId)}${resumed ? "  resumes" : ""}`,
      );
      if (!resumed) return;
      const waits = describeWaits(session, { io, now: Date.now(), pending });
      for (const { id, what, until, commands, hasArrived } of waits) {
        if (hasArrived) continue;
        note(`${symbols.wait} waits for ${what}${until}`);
        const wait = session.waits.find((one) => one.id === id);
        if (wait?.type === "input") {
          const question = viewQuestion(asked.get(id) ?? wait, wait.answer);
          for (const line of askedLines(question).slice(1)) note(`  ${line}`);
          hintAtAnswers(wait.answer, commands);
        } else if (wait?.type === "signal") hintAtSignal(wait.name, commands);
      }
    },
    event(event) {
      if (event.type === "complete" || event.type === "fail") return; // The end is told once, with the result.
      if (isReportOfAdapter(event)) return;
      // Streamed text was already shown. The text of a sub-agent is not streamed.
      const isOwn = event.type === "append_entry" && subAgentCallOf(event.content) === undefined;
      if (isOwn && event.role === "assistant" && hasStreamed) {
        hasStreamed = false;
        return;
      }
      const name = event.name ?? "";
      if (event.type === "wait_signal" && isAside(name) && shown.has(NEXT_INPUT)) return;
      if (event.type === "wait_signal" && begun !== undefined && isOfAdapter(begun, name)) return;
      const line = eventLine(event, look, { now: Date.now(), sessionId });
      if (line === undefined) return;
      note(line);
      if (event.type === "request_input") {
        const { id = 0, takes: answer } = event;
        hintAtAnswers(
          answer,
          answerCommands(sessionId, { id, ...(answer === undefined ? {} : { answer }) }, io),
        );
      }
      if (event.type !== "wait_signal" || isReservedName(name)) return;
      hintAtSignal(
        name,
        name === NEXT_INPUT
          ? messageCommands(sessionId, io)
          : [io.call(`signal ${sessionId} ${quoted(plainLine(name, 200))} [JSON]`)],
      );
    },
    trace(event) {
      if (event.type === "warned") note(`${paint.yellow(symbols.warn)} ${plainLine(event.message, 1_000)}`);
      if (event.type !== "task_delta") return;
      const { delta, kind, taskId, attempt } = event;
      if (delta.type === "progress" && !isCommandOutput(delta.data))
        note(paint.dim(`  ${kind}: ${plainLine(progressText(delta.data), 300)}`));
      if (delta.type !== "token") return;
      const stream = `${taskId} ${attempt}`;
      if (streaming !== stream)
        io.note(paint.dim(`  ${kind}${attempt > 1 ? `, attempt ${attempt}, from the start` : ""}:`));
      streaming = stream;
      hasStreamed = true;
      io.write(plainPiece(delta.text));
    },
  };
}

/**
 * Output of a task's command is only for its task and for `--json`. Between the events, its origin would be
 * unclear.
 */
function isCommandOutput(data: unknown): boolean {
  return typeof data === "object" && data !== null && "stream" in data && "text" in data;
}

/** Progress as text: a text as it is, any other value as JSON. */
function progressText(data: unknown): string {
  if (typeof data === "string") return data;
  if (typeof data === "object" && data !== null && "text" in data && typeof data.text === "string")
    return data.text.trimEnd();
  return JSON.stringify(data) ?? "";
}

/** The events of an external agent come as signals of its adapter. Their content is shown by other events. */
function isReportOfAdapter({ type, name, names }: JournalEvent): boolean {
  const all = type === "take_signals" ? (names ?? []) : [name];
  return SIGNAL_EVENTS.has(type) && all.every((one) => one?.startsWith("external_agent.") === true);
}

const SIGNAL_EVENTS = new Set(["wait_signal", "signal_ready", "signal_received", "take_signals"]);
