// The output of `run` and `resume` while a session runs (`liveView`): for people, or as lines of JSON for
// programs.
//
// A conversation of a model or a program is shown as its work: its texts, its calls of tools, and its
// questions. The steps by which it is run are shown with `--verbose` alone. The steps of an agent of code are
// its author's words, and always shown.
//
// There are two sources. Events come from the journal, after their commit, and are numbered. Tokens and
// progress come from running tasks and are provisional: a new attempt replaces them, and only the task's
// output is recorded. The tokens of one turn of the event loop are written together.

import { setImmediate } from "node:timers";
import { defined, isReservedName, NEXT_INPUT, type Session, type TraceEvent } from "@holdfast/core";
import {
  AGENT_REPORT,
  deliveryOf,
  foldChange,
  replyOf,
  subAgentCallOf,
  viewQuestion,
  type AskedQuestion,
} from "@holdfast/proto/view";
import type { Io } from "../../frame/command.ts";
import {
  answerCommands,
  askedLines,
  commandLines,
  describeWaits,
  isAside,
  isConversation,
  isOfAdapter,
  isOfProgram,
  messageCommands,
  ruleAdvice,
} from "../describe-session.ts";
import { entryText, eventLine, isFailedHook, isMessageReceipt } from "../event-line.ts";
import type { JournalEvent } from "../journal-events.ts";
import { plain, plainLine, plainPiece, quoted } from "../../frame/plain-text.ts";
import { entryLines, requestLine } from "./entry-lines.ts";
import { OpenCalls } from "./shown-path.ts";
import { howToAnswer } from "../typed-answer.ts";
import { type DraftPiece, ShownDraft, ShownText } from "./shown-text.ts";
import { WorkStatus } from "./work-status.ts";

const NAME_CHARS = 100;

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
  draft(piece: DraftPiece): void;
  /** Whether this text is what the session said last, and the view has shown all of it. */
  hasShown?(text: string): boolean;
}

export interface AnswerableQuestions {
  readonly last: unknown;
  /** Shows how the question that is shown next is answered, as soon as a line answers it. */
  hint(show: () => void): void;
}

export interface LiveViewOptions {
  readonly io: Io;
  readonly sessionId: string;
  /** The open questions that a person may answer by typing; `undefined` where no person types. */
  readonly questions: AnswerableQuestions | undefined;
  /** The agent, where this process runs the session. */
  readonly agent: object | undefined;
  /** Whether other terminals can reach the session. */
  readonly isDurable: boolean;
  /** Whether every recorded event is shown. */
  readonly isVerbose: boolean;
}

export function liveView(options: LiveViewOptions): LiveView {
  return options.io.isJson ? jsonView(options.io) : new TextView(options);
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
    draft({ isAnother, text, ...task }) {
      if (isAnother) line({ type: "reset", ...task });
      line({ type: "token", text, ...task });
    },
  };
}

class TextView implements LiveView {
  readonly #io: Io;
  readonly #sessionId: string;
  readonly #options: LiveViewOptions;
  readonly #open = new OpenCalls();
  readonly #status: WorkStatus;
  /** Whether the session is the conversation of a model or a program. Its first entry says so where its agent does not. */
  #isConversation: boolean | undefined;
  /** The attempt whose tokens were written last, and nothing after them. */
  #streaming: string | undefined;
  /** Whether text was streamed since the last entry of the agent. */
  #hasStreamed = false;
  readonly #draft = new ShownDraft();
  /** Streamed text that is not written yet. */
  #unwritten = "";
  readonly #shownText = new ShownText();
  /** The last text of the session, if all of it was shown. */
  #said = "";
  /**
   * Signals whose command was told: a daemon waits for the same one again and again. That of reports needs no
   * command, and says that an external agent has the session.
   */
  readonly #shown = new Set<string>();

  constructor(options: LiveViewOptions) {
    this.#io = options.io;
    this.#sessionId = options.sessionId;
    this.#options = options;
    this.#status = new WorkStatus(this.#open, options.io.notes);
  }

  began(session: Session, resumed: boolean, pending: ReadonlySet<string>, asked: AskedQuestions): void {
    if (isOfProgram(session)) this.#shown.add(AGENT_REPORT);
    this.#isConversation = isConversation(session);
    // A line that a person types to a question is not drawn over.
    const { questions } = this.#options;
    this.#io.status(() =>
      questions?.last === undefined ? this.#status.text(this.#isConversation === true) : "",
    );
    const { paint } = this.#io.notes;
    const { name, version } = session.agent;
    const going = this.#options.agent === undefined ? "goes on" : "resumes";
    const shownVersion = version === "1" ? "" : ` ${version}`;
    this.#note(
      `${paint.bold(name)}${shownVersion}  ${paint.dim(this.#sessionId)}${resumed ? `  ${going}` : ""}`,
    );
    if (resumed) this.#showWaits(session, pending, asked);
  }

  #showWaits(session: Session, pending: ReadonlySet<string>, asked: AskedQuestions): void {
    const { symbols } = this.#io.notes;
    const waits = describeWaits(session, { io: this.#io, now: Date.now(), pending });
    for (const { id, what, until, commands, hasArrived } of waits) {
      if (hasArrived) continue;
      this.#note(`${symbols.wait} waits for ${what}${until}`);
      const wait = session.waits.find((one) => one.id === id);
      if (wait?.type === "input") {
        const question = viewQuestion(asked.get(id) ?? wait, wait.answer);
        for (const line of askedLines(question).slice(1)) this.#note(`  ${line}`);
        this.#hintAtAnswers({ ...defined({ answer: wait.answer }), ...question }, commands);
      } else if (wait?.type === "signal") this.#hintAtSignal(wait.name, commands);
    }
  }

  event(event: JournalEvent): void {
    this.#status.event(event);
    if (event.type === "complete" || event.type === "fail") return; // The end is told once, with the result.
    if (event.type === "append_entry") this.#isConversation ??= true;
    if (this.#isConversation === true && !this.#options.isVerbose && this.#showWork(event)) return;
    if (event.type === "wait_signal" && event.name === AGENT_REPORT) this.#shown.add(AGENT_REPORT);
    if (isReportOfAdapter(event) || this.#isWaitOfProgram(event)) return;
    if (this.#wasStreamed(event)) return this.#sayRest(entryText("assistant", event.content));
    if (event.type === "append_entry") this.#said = wholeTextOf(event);
    const isChangeShown = event.type === "request_input" && this.#showsChangeOf(event);
    const at = { now: Date.now(), sessionId: this.#sessionId, isChangeShown };
    const line = eventLine(event, this.#io.notes, at);
    if (line === undefined) return;
    this.#note(line);
    if (event.type === "request_input") this.#hintAtQuestion(event);
    if (event.type === "wait_signal") this.#hintAtWait(event.name ?? "");
  }

  /** Whether all lines of the change that is asked about stand there, below its call. */
  #showsChangeOf({ prompt = "", details, takes }: JournalEvent): boolean {
    const { change = [] } = viewQuestion({ prompt, details }, takes);
    if (foldChange(change).length < change.length) return false;
    const text = JSON.stringify(change);
    return [...this.#open.values()].some((call) => JSON.stringify(call.change) === text);
  }

  /** Shows an event of a conversation. @returns whether nothing more is to be said of it. */
  #showWork(event: JournalEvent): boolean {
    const { type, role, content } = event;
    if (type !== "append_entry")
      return MACHINERY.has(type) && !isFailedHook(event) && !isMessageReceipt(event);
    if (role === "user" && deliveryOf(content) === undefined)
      this.#note(requestLine(content, this.#io.notes));
    const isOwn = subAgentCallOf(content) === undefined;
    if (role === "assistant" && isOwn) this.#say(event, replyOf(content).text);
    for (const line of entryLines(String(role), content, this.#open, this.#io.notes)) this.#note(line);
    return role !== undefined && SPEAKERS.has(role);
  }

  #say(event: JournalEvent, text: string): void {
    if (this.#wasStreamed(event)) return this.#sayRest(text);
    if (text === "") return;
    this.#said = text;
    this.#shownText.entry(text);
    this.#note(plain(text.trimEnd()));
  }

  /** Streamed text was already shown. The text of a sub-agent is not streamed. */
  #wasStreamed({ type, role, content }: JournalEvent): boolean {
    const isOwn = type === "append_entry" && subAgentCallOf(content) === undefined;
    if (!isOwn || role !== "assistant" || !this.#hasStreamed) return false;
    this.#hasStreamed = false;
    return true;
  }

  /** Shows the end of a text whose beginning was a draft. */
  #sayRest(text: string): void {
    const rest = this.#draft.takeRest(text);
    if (rest.text === "") return;
    if (rest.type === "all") this.#note("");
    this.#said = text;
    this.#unwritten += plainPiece(rest.text);
    this.#flush();
  }

  /** Whether a wait is for a signal that no person sends, or for a message aside that was hinted at already. */
  #isWaitOfProgram({ type, name = "" }: JournalEvent): boolean {
    if (type !== "wait_signal") return false;
    if (isAside(name) && this.#shown.has(NEXT_INPUT)) return true;
    return this.#shown.has(AGENT_REPORT) && isOfAdapter(name);
  }

  trace(event: TraceEvent): void {
    const { paint, symbols } = this.#io.notes;
    this.#status.trace(event);
    if (event.type === "warned")
      this.#note(`${paint.yellow(symbols.warn)} ${plainLine(event.message, 1_000)}`);
    if (event.type !== "task_delta") return;
    const { delta, kind } = event;
    const isShown = this.#options.isVerbose || this.#isConversation !== true;
    if (delta.type === "progress" && isShown && !isCommandOutput(delta.data))
      this.#note(paint.dim(`  ${kind}: ${plainLine(progressText(delta.data), 300)}`));
    // The text of a task of code may have no entry that shows it.
    const isShownByEntry = this.#isConversation === true && this.#status.endedSilent(event.taskId);
    if (delta.type !== "token" || isShownByEntry) return;
    const again = event.attempt > 1 ? `, attempt ${event.attempt}, from the start` : "";
    this.#stream({ id: `${event.taskId} ${event.attempt}`, kind, again }, this.#shownText.token(delta.text));
  }

  draft(piece: DraftPiece): void {
    const { taskId, kind = "text", text, isAnother } = piece;
    if (this.#isConversation === true && this.#status.endedSilent(taskId)) return;
    this.#status.writes(taskId);
    const shown = this.#shownText.token(text);
    const again = isAnother ? ", from the start" : "";
    this.#stream({ id: this.#draft.add(piece, shown), kind, again }, shown);
  }

  #stream({ id, kind, again }: Stream, text: string): void {
    if (text === "") return;
    const isSame = this.#streaming === id;
    if (!isSame && (again !== "" || this.#options.isVerbose || this.#isConversation !== true)) {
      this.#flush();
      this.#io.note(this.#io.notes.paint.dim(`  ${plainLine(kind, NAME_CHARS)}${again}:`));
    }
    this.#said = isSame ? this.#said + text : text;
    this.#streaming = id;
    this.#hasStreamed = true;
    if (this.#unwritten === "") setImmediate(() => this.#flush());
    this.#unwritten += plainPiece(text);
  }

  #flush(): void {
    const text = this.#unwritten;
    this.#unwritten = "";
    if (text !== "") this.#io.write(text);
  }

  hasShown(text: string): boolean {
    return text.trim() !== "" && this.#said.trim() === text.trim();
  }

  #note(line: string): void {
    this.#flush();
    this.#streaming = undefined;
    this.#io.note(line);
  }

  #hintAtQuestion({ id = 0, takes: answer, prompt = "", details }: JournalEvent): void {
    const { lastingRule } = viewQuestion({ prompt, details }, answer);
    const question = { id, ...defined({ answer, lastingRule }) };
    const show = (): void =>
      this.#hintAtAnswers(question, answerCommands(this.#sessionId, question, this.#io));
    if (this.#options.questions === undefined) show();
    else this.#options.questions.hint(show);
  }

  /**
   * How a question is answered: here if a person can type, from another terminal if others can reach the
   * session.
   */
  #hintAtAnswers(question: Parameters<typeof howToAnswer>[0], commands: readonly string[]): void {
    if (this.#options.questions !== undefined)
      this.#note(this.#io.notes.paint.dim(`  ${howToAnswer(question)}`));
    this.#hintAtCommands(commands, this.#options.questions !== undefined ? "or from another terminal: " : "");
    // A person who types here keeps the answer with `a`.
    const { lastingRule } = question;
    const isAdvised = this.#options.questions === undefined && this.#options.isDurable && commands.length > 0;
    if (isAdvised && lastingRule !== undefined)
      this.#note(this.#io.notes.paint.dim(`  ${ruleAdvice(lastingRule)}`));
  }

  #hintAtWait(name: string): void {
    if (isReservedName(name)) return;
    const commands =
      name === NEXT_INPUT
        ? messageCommands(this.#sessionId, this.#io)
        : [this.#io.call(`signal ${this.#sessionId} ${quoted(plainLine(name, 200))} [JSON]`)];
    this.#hintAtSignal(name, commands);
  }

  #hintAtSignal(name: string, commands: readonly string[]): void {
    if (this.#shown.has(name)) return;
    this.#shown.add(name);
    if (name === "input" && this.#options.questions !== undefined)
      this.#note(this.#io.notes.paint.dim("  type a line"));
    this.#hintAtCommands(commands);
  }

  #hintAtCommands(commands: readonly string[], before = ""): void {
    const { notes } = this.#io;
    if (this.#options.isDurable && commands.length > 0)
      this.#note(notes.paint.dim(commandLines(commands, before, notes)));
  }
}

/** The roles of entries whose lines `entryLines` has, or that are records of a call whose lines it has. */
const SPEAKERS: ReadonlySet<string> = new Set(["user", "assistant", "tool", "plan", "thinking", "event"]);
/** The events of a conversation that say how it is run, and not what is done. */
const MACHINERY: ReadonlySet<string> = new Set([
  "schedule_task",
  "task_completed",
  "outcome_kept",
  "withdraw",
  "checkpoint",
  "signal_ready",
  "take_signals",
]);

/** The text of the agent that the line of an entry shows as it is. Empty for a longer one. */
function wholeTextOf({ role, content }: JournalEvent): string {
  const text = role === "assistant" ? entryText(role, content) : "";
  const said = typeof content === "object" && content !== null && "text" in content ? content.text : content;
  return said === text ? text : "";
}

/** A text that comes in pieces. */
interface Stream {
  readonly id: string;
  /** The task that writes it. */
  readonly kind: string;
  /** The words for a text that takes the place of one that was shown before. */
  readonly again: string;
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
