// `ChatTalk`: what a person and a session say to each other in a terminal.
//
// The talk stands in one of three ways. It *works* from a request to its answer. It is *asked* while a
// question is open. It is *idle* while the session waits for the next request. Lines that come before the
// session is shown wait. Events of the journal alone
// change that, apart from a line that was sent: the talk then works, until an event says otherwise.
//
//   - A line is an answer while the talk is asked, and the next request while it is idle. While it works, a
//     typed line steers the model, and a piped line waits for its turn.
//   - Nothing is answered but by a line. A line that is no answer to the open question is refused. One
//     question is shown at a time, so a line is for the one that the person has read. A line that was typed
//     before that question stood there answers nothing.
//   - A line `/name arguments` that names a command of a file is the text of this file (`ChatCommands`). It is
//     never an answer. A program with commands of its own gets such a line as a command, once it has answered.
//   - Each line has a key of its own. A line whose receipt was lost is sent again under it, and is stored
//     once.
//   - Ctrl-C interrupts the turn; a second one leaves. The session stays either way.

import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import {
  defined,
  NEXT_INPUT,
  TITLE_CHARS,
  toError,
  UnavailableError,
  type Session,
  type SignalReceipt,
  type TraceEvent,
} from "@holdfast/core";
import { viewQuestion } from "@holdfast/proto/view";
import type { Io, StopSignal } from "@holdfast/terminal/frame/command";
import { plainLine } from "@holdfast/terminal/frame/plain-text";
import type { DriveChat } from "../run/drive/drive.ts";
import type { SignalTarget } from "../run/typing/stdin-listener.ts";
import { TYPED_AHEAD } from "@holdfast/terminal/frame/screen/typed-ahead";
import { askedLines, openQuestions } from "@holdfast/terminal/view/describe-session";
import type { JournalEvent } from "@holdfast/terminal/view/journal-events";
import { liveView, type AskedQuestions, type LiveView } from "@holdfast/terminal/view/work/live-view";
import type { DraftPiece } from "@holdfast/terminal/view/work/shown-text";
import {
  howToAnswer,
  questionOf,
  readTypedLine,
  type TypedQuestion,
} from "@holdfast/terminal/view/typed-answer";
import { withFiles } from "./attached-files.ts";
import type { LineCommands, TypedLine } from "./chat-commands.ts";
import { ChatTerminal } from "./chat-terminal.ts";
import { ChatView } from "./chat-view.ts";

/** An external agent takes a message for after its answer while it works. Its program then needs no new process for it. */
const FOLLOW_UP = "follow_up";
const RETRIES = 100;
const RETRY_MS = 100;
const STEERS = "stored: it reaches the agent before its next call";
const GIVEN = "stored: the agent is given it now, and the receipt follows";
const QUEUED = "stored: it is the next message, after this answer";
const HELP = [
  "a line is your next message; while the agent works, it steers the agent",
  "/queue TEXT keeps a message until the agent has answered; without it a message reaches the agent before its next call",
  `@path sends a text file of this project with the message; "@path" in quotes does not`,
  "the arrow keys bring back what you typed, also in earlier conversations",
  "a line that ends with a backslash goes on in the next one, and pasted lines are one message",
  "/exit leaves, and the session stays; /help shows this; //text sends a text that begins with a slash",
  "Ctrl-C interrupts the agent; twice leaves",
];

type Question = Omit<TypedQuestion, "type"> & {
  /** The question in full. */
  readonly lines: readonly string[];
};

type Stand = "new" | "opening" | "working" | "idle" | "left";

/** A line that waits for its turn. */
interface HeldLine {
  readonly text: string;
  /** The question that stood there when it was typed. */
  readonly question?: Question | undefined;
}

export class ChatTalk implements DriveChat {
  readonly #io: Io;
  readonly #sessionId: string;
  readonly #commands: LineCommands;
  readonly #terminal: ChatTerminal;
  readonly #shown: Pick<LiveView, "event" | "trace" | "draft">;
  readonly #left = Promise.withResolvers<Awaited<DriveChat["left"]>>();
  readonly #first = Promise.withResolvers<string | undefined>();
  #target = Promise.withResolvers<SignalTarget>();
  #questions: Question[] = [];
  #stand: Stand = "new";
  readonly #held: HeldLine[] = [];
  #isOver = false;
  #interrupts = 0;
  /** An interruption was sent, and the turn has not ended yet. Lines wait meanwhile. */
  #isInterrupting = false;
  #sending: Promise<void> = Promise.resolve();

  /**
   * @param begun the lines for a session that is there, or whose first message is known; `undefined` to begin
   *   one with the first line.
   */
  constructor(io: Io, sessionId: string, begun: readonly string[] | undefined, commands: LineCommands) {
    this.#io = io;
    this.#commands = commands;
    this.#stand = begun === undefined ? "new" : "opening";
    this.#sessionId = sessionId;
    this.#held = (begun ?? []).map((text) => ({ text }));
    this.#terminal = new ChatTerminal(io, {
      line: (text) => this.#line(text),
      end: () => this.#end(),
      interrupt: () => this.onStop("SIGINT"),
    });
    this.#shown = io.isJson
      ? liveView({ io, sessionId, agent: undefined, questions: undefined, isDurable: true, isVerbose: false })
      : new ChatView(io, this.#terminal, sessionId);
  }

  get command(): string {
    return `chat --session ${this.#sessionId}`;
  }

  get isLeft(): boolean {
    return this.#stand === "left";
  }

  get left(): DriveChat["left"] {
    return this.#left.promise;
  }

  /** The first line of a new conversation; `undefined` when the person leaves without one. */
  first(): Promise<string | undefined> {
    this.#next();
    return this.#first.promise;
  }

  began(
    { sessionId, title, agent, waits, status }: Session,
    resumed: boolean,
    pending: ReadonlySet<string>,
    asked: AskedQuestions,
  ): void {
    const { paint } = this.#io.notes;
    if (this.#io.isJson) this.#io.result({ type: "session", sessionId, agent: agent.name, resumed }, "");
    const help = this.#terminal.isTyped ? "  /help, /exit" : "";
    const about = title === undefined || !resumed ? "" : `  ${plainLine(title, TITLE_CHARS)}`;
    this.#terminal.say(
      `${paint.bold(agent.name)}${about}  ${paint.dim(sessionId + (resumed ? "  continues" : "") + help)}`,
    );
    if (this.#stand === "left") return;
    if (!resumed) return void (this.#stand = "working");
    for (const question of openQuestions({ waits }))
      if (!pending.has(question.name)) this.#ask(question, asked.get(question.id)?.details);
    const isIdle = waits.some((wait) => wait.type === "signal" && wait.name === NEXT_INPUT);
    this.#stand = status === "waiting" && isIdle && !pending.has(NEXT_INPUT) ? "idle" : "working";
    this.#next();
  }

  event(event: JournalEvent): void {
    this.#shown.event(event);
    const { type, id, name, prompt, details, takes } = event;
    if (type === "checkpoint") this.#questions = [];
    if (type === "request_input" && id !== undefined) {
      const shape = takes === undefined ? {} : { answer: takes };
      this.#ask({ id, name: "", prompt: prompt ?? "", ...shape }, details);
    }
    if (type === "signal_received" || type === "wait_timed_out" || type === "wait_cancelled")
      this.#keep(this.#questions.filter((question) => question.id !== event["wait"]));
    if (this.#stand === "left") return;
    const isRequest = type === "append_entry" && event.role === "user";
    if (isRequest || (name === NEXT_INPUT && type === "signal_received")) this.#stand = "working";
    if (name === NEXT_INPUT && type === "wait_signal") {
      if (this.#isInterrupting) this.#terminal.say(this.#io.notes.paint.dim("interrupted"));
      this.#isInterrupting = false;
      this.#stand = "idle";
      this.#interrupts = 0;
    }
    this.#next();
  }

  trace(event: TraceEvent): void {
    this.#shown.trace(event);
  }

  draft(piece: DraftPiece): void {
    this.#shown.draft(piece);
  }

  attach(target: SignalTarget): Promise<void> {
    this.#target.resolve(target);
    return Promise.resolve();
  }

  detach(): void {
    this.#target = Promise.withResolvers<SignalTarget>();
  }

  async close(): Promise<void> {
    this.#terminal.close();
  }

  onStop(signal: StopSignal): void {
    if (signal !== "SIGINT" || this.#interrupts > 0) return this.#leave({ type: "stopped", signal });
    this.#interrupts++;
    const isBusy = this.#stand === "working" && !this.#isInterrupting;
    const what = isBusy ? "interrupting" : "nothing is under way";
    this.#terminal.say(this.#io.notes.paint.dim(`${what}; Ctrl-C again leaves`));
    if (!isBusy) return this.#next();
    this.#isInterrupting = true;
    this.#questions = [];
    this.#send({ type: "signal", name: "interrupt", payload: undefined });
  }

  #leave(outcome: Awaited<DriveChat["left"]>): void {
    this.#stand = "left";
    this.#terminal.close(); // Ctrl-C is a signal again.
    this.#first.resolve(undefined);
    this.#left.resolve(outcome);
  }

  #line(text: string): void {
    const typed = text.trim();
    if (typed === "") return this.#next();
    if (this.#stand === "left") return;
    this.#interrupts = 0;
    // An answer is for its question alone.
    if (this.#questions.length === 0) this.#terminal.remember(typed);
    const isMessage = this.#questions.length === 0 && (!isCommand(typed) || queuedText(typed) !== undefined);
    const sendsFiles = this.#terminal.isTyped && isMessage;
    const line = sendsFiles ? this.#textOf(withFiles(typed, this.#io)) : typed;
    if (line === undefined) return this.#next();
    const isSteering =
      this.#terminal.isTyped &&
      this.#stand === "working" &&
      this.#questions.length === 0 &&
      !this.#isInterrupting;
    const queued = queuedText(line);
    if (queued !== undefined && this.#terminal.isTyped && this.#stand === "working") {
      if (this.#isExternal) this.#send({ type: "signal", name: FOLLOW_UP, payload: queued, receipt: QUEUED });
      else {
        const payload = { text: queued, delivery: "queue" };
        this.#send({ type: "signal", name: NEXT_INPUT, payload, receipt: QUEUED });
      }
      return this.#next();
    }
    const command = this.#commands.read(line);
    const isForAgent = command === undefined ? !isCommand(line) : !("isCommand" in command);
    if (isSteering && isForAgent) {
      const payload = command === undefined ? said(line) : this.#textOf(command);
      const receipt = this.#isExternal ? GIVEN : STEERS;
      return payload === undefined
        ? this.#next()
        : this.#send({ type: "signal", name: "steer", payload, receipt });
    }
    const question = this.#questions.find((one) => this.#terminal.typedAhead.isAfter(one));
    this.#held.push({ text: queued?.replace(/^\//, "//") ?? line, question });
    this.#next();
  }

  #end(): void {
    this.#isOver = true;
    this.#next();
  }

  /** Takes the next line as far as the talk has a place for it, else invites one. */
  #next(): void {
    const question = this.#questions[0];
    for (;;) {
      const [held] = this.#held;
      const isBusy = isAtWork(this.#stand) && question === undefined;
      if (this.#stand === "left") return; // The rest of the input is not sent.
      if (held === undefined) break;
      const line = held.text;
      const command = this.#commands.read(line);
      // A piped command is for the place where it stands. The text of a file, and a command of the program, are
      // messages.
      const isForUs = isCommand(line) && command === undefined;
      const isAtOnce = isForUs && this.#terminal.isTyped;
      if (isBusy && !isAtOnce) break;
      this.#held.shift();
      if (command !== undefined && question !== undefined)
        this.#warn(`the question is still open, and a command is no answer: ${howToAnswer(question)}`);
      else if (isForUs) this.#obey(line);
      else if (question !== undefined) {
        if (this.#terminal.isTyped && held.question !== question) this.#warn(TYPED_AHEAD);
        else if (this.#answer(line, question)) return;
      } else {
        const isForProgram = command !== undefined && "isCommand" in command;
        const isFirst = this.#stand === "new";
        if (isForProgram && isFirst) {
          this.#warn(
            `a conversation begins with a message; ${line.split(/\s/)[0]} works after its first answer`,
          );
          continue;
        }
        const text = isCommand(line) ? this.#textOf(command) : said(line);
        if (text === undefined) continue;
        this.#stand = "working";
        if (isFirst) return this.#first.resolve(text);
        if (isForProgram) return this.#send({ type: "signal", name: FOLLOW_UP, payload: { command: text } });
        return this.#send({ type: "signal", name: NEXT_INPUT, payload: text });
      }
    }
    const isBlocked = question !== undefined || !isAtWork(this.#stand);
    if (this.#isOver && this.#held.length === 0 && isBlocked)
      void this.#sending.then(() => this.#leave({ type: "left" }));
    else if (question === undefined && isBlocked) this.#terminal.prompt("> ");
    else if (question !== undefined && this.#terminal.typedAhead.isReady(question))
      this.#terminal.prompt("answer> ");
  }

  get #isExternal(): boolean {
    return this.#commands.isExternal;
  }

  /** The message of a command, with what a person has to know of it. @returns nothing for one that cannot be sent. */
  #textOf(command: TypedLine | undefined): string | undefined {
    if (command === undefined) return undefined;
    if ("problem" in command) {
      this.#warn(command.problem);
      return undefined;
    }
    for (const note of command.notes) this.#terminal.say(this.#io.notes.paint.dim(`  ${note}`));
    return command.text;
  }

  #obey(line: string): void {
    if (line === "/exit" || line === "/quit") return this.#leave({ type: "left" });
    if (line === "/queue") this.#warn("/queue needs a text");
    else if (line !== "/help")
      this.#warn(`there is no command ${line.split(/\s/)[0]}${this.#commands.guess(line)}`);
    for (const text of [...HELP, ...this.#commands.help()])
      this.#terminal.say(this.#io.notes.paint.dim(`  ${text}`));
  }

  #ask(question: Omit<Question, "lines">, details: unknown): void {
    if (this.#questions.some(({ id }) => id === question.id)) return;
    const view = viewQuestion({ prompt: question.prompt, details }, question.answer);
    const { lastingRule, ...call } = view;
    const { paint, symbols } = this.#io.notes;
    const asked = askedLines(call).map((line, at) =>
      at === 0 ? paint.bold(`${symbols.ask} ${line}`) : `    ${line}`,
    );
    const shown = { ...question, ...defined({ lastingRule }) };
    this.#keep([...this.#questions, { ...shown, lines: asked }]);
  }

  #keep(questions: Question[]): void {
    const [before] = this.#questions;
    this.#questions = questions;
    const [first] = questions;
    if (first === undefined || first.id === before?.id || this.#io.isJson) return;
    for (const line of first.lines) this.#terminal.say(line);
    const hint = this.#io.notes.paint.dim(`  ${howToAnswer(first)}`);
    if (!this.#terminal.isTyped) return this.#terminal.say(hint);
    void this.#terminal.typedAhead.shown(first).then(() => {
      if (this.#questions[0] !== first) return;
      this.#terminal.say(hint);
      this.#next();
    });
  }

  /** @returns whether it was one. */
  #answer(line: string, question: Question): boolean {
    const isText = question.answer === "any" && !/^["{[\d]/.test(line);
    const text = isText ? JSON.stringify(said(line)) : line;
    const meaning = readTypedLine(text, { ...question, type: "input" });
    if (meaning.type === "signal" && questionOf(meaning.signal.name) === question.id) {
      this.#keep(this.#questions.filter(({ id }) => id !== question.id));
      this.#send({ type: "answer", question: question.id, payload: meaning.signal.payload });
      return true;
    }
    this.#warn(
      meaning.type === "refused" ? meaning.reason : `the question is still open: ${howToAnswer(question)}`,
    );
    return false;
  }

  /** Lines are sent one after another. */
  #send(message: Message): void {
    const dedupKey = randomUUID();
    this.#sending = this.#sending.then(async () => {
      const receipt = await this.#tryToSend(message, dedupKey);
      if (receipt.status === "refused") this.#warn(`it was not sent: ${receipt.reason}`);
      else if (message.type === "signal" && message.receipt !== undefined)
        this.#terminal.say(this.#io.notes.paint.dim(`  ${message.receipt}`));
      if (receipt.status === "duplicate" && message.type === "answer")
        this.#warn("that question already has an answer, which is kept");
    });
  }

  async #tryToSend(message: Message, dedupKey: string): Promise<SignalReceipt> {
    for (let n = 1; ; n++) {
      const { runtime } = await this.#target.promise;
      try {
        if (message.type === "signal")
          return await runtime.signal(this.#sessionId, message.name, message.payload, { dedupKey });
        return await runtime.answer(this.#sessionId, message.payload, { question: message.question });
      } catch (error) {
        if (!(error instanceof UnavailableError) || n === RETRIES)
          return { status: "refused", reason: toError(error).message };
        await delay(RETRY_MS);
      }
    }
  }

  #warn(text: string): void {
    this.#terminal.say(this.#io.notes.paint.yellow(`${this.#io.notes.symbols.warn} ${text}`));
  }
}

type Message =
  | {
      readonly type: "signal";
      readonly name: string;
      readonly payload: unknown;
      /** Shown once the message is stored. */
      readonly receipt?: string;
    }
  | { readonly type: "answer"; readonly question: number; readonly payload: unknown };

function isAtWork(stand: Stand): boolean {
  return stand === "working" || stand === "opening";
}

/** The text of `/queue TEXT`. */
function queuedText(line: string): string | undefined {
  return /^\/queue\s+(\S[^]*)$/.exec(line)?.[1];
}

function isCommand(line: string): boolean {
  return /^\/(?!\/)/.test(line);
}

/** `//x` says `/x`. */
function said(line: string): string {
  return line.startsWith("//") ? line.slice(1) : line;
}
