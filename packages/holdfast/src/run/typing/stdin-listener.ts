// Standard input while a session runs: lines are signals, and on a terminal also answers to questions.
//
// A line answers the question that this terminal has shown last (`ShownQuestions`), which may be one of a
// child. It never answers another one, and a line that was typed before the question stood there answers none.
//
// The end of the input ends nothing: the terminal may be gone, the session is not.

import {
  isAwaited,
  toError,
  type AgentStorage,
  type IncomingSignal,
  type Session,
  type SignalReceipt,
} from "@holdfast/core";
import type { Runtime } from "@holdfast/runtime";
import type { Io } from "@holdfast/terminal/frame/command";
import { isConversation, openQuestions, questionLine } from "@holdfast/terminal/view/describe-session";
import { stdinSignals, type LineMeaning } from "@holdfast/runtime";
import { questionOf, readTypedLine } from "@holdfast/terminal/view/typed-answer";
import type { ShownQuestion, ShownQuestions } from "./shown-questions.ts";
import { TYPED_AHEAD, TypedAhead } from "@holdfast/terminal/frame/screen/typed-ahead";

const TEXT_CHARS = 200;

/** The target of typed signals, which changes when the storage is opened again. */
export interface SignalTarget {
  readonly runtime: Runtime;
  readonly storage: AgentStorage;
}

export class StdinListener {
  readonly #sessionId: string;
  readonly #io: Io;
  readonly #questions: ShownQuestions | undefined;
  readonly #typedAhead: TypedAhead<ShownQuestion>;
  /** The session of the question that the last line answers. */
  #asker: string;
  #target = Promise.withResolvers<SignalTarget>();
  #reading: { close(): Promise<void> } | undefined;

  /** @param questions those that a person who types has seen; `undefined` where no person types. */
  constructor(sessionId: string, io: Io, questions?: ShownQuestions) {
    this.#sessionId = sessionId;
    this.#asker = sessionId;
    this.#io = io;
    this.#questions = questions;
    this.#typedAhead = new TypedAhead(io.stdin);
  }

  /** The session is there. From the first time on lines are read. */
  async attach(target: SignalTarget): Promise<void> {
    this.#target.resolve(target);
    if (this.#reading !== undefined) return;
    const opening = this.#open();
    const questions = this.#questions;
    if (questions !== undefined) {
      this.#typedAhead.open();
      questions.onLast = (question) => this.#typedAhead.shown(question);
      void this.#typedAhead.shown(questions.last);
    }
    this.#reading = await opening;
  }

  /** The session is not there for a while; what arrives waits. */
  detach(): void {
    this.#target = Promise.withResolvers<SignalTarget>();
  }

  async close(): Promise<void> {
    this.#typedAhead.close();
    await this.#reading?.close();
  }

  #open(): Promise<{ close(): Promise<void> }> {
    return stdinSignals({
      input: this.#io.stdin,
      sessionId: this.#sessionId,
      interpret: (line) => this.#meaning(line),
      onRefused: (reason) => this.#warn(reason),
      onReceipt: ({ name }, receipt) => {
        if (receipt.status === "refused") this.#warn(`signal "${name}" was refused: ${receipt.reason}`);
        if (receipt.status === "duplicate") this.#warn("that question already has an answer");
        const question = questionOf(name);
        if (question !== undefined && receipt.status !== "refused")
          this.#questions?.end(this.#asker, question);
        else if (receipt.status === "stored") void this.#sayIfUnawaited(name).catch(() => {});
      },
    }).open((signal) => this.#send(signal));
  }

  async #meaning(line: string): Promise<LineMeaning> {
    const shown = this.#questions?.last;
    const meaning = readTypedLine(line, shown?.wait);
    if (this.#questions === undefined || meaning.type !== "signal") return meaning;
    const { name } = meaning.signal;
    if (shown !== undefined && questionOf(name) !== undefined) {
      this.#asker = shown.sessionId;
      if (!this.#typedAhead.isAfter(shown)) return { type: "refused", reason: TYPED_AHEAD };
      if (await this.#isOpen(shown)) return meaning;
      this.#questions.end(shown.sessionId, shown.wait.id);
      const prompt = questionLine(shown.wait.prompt, TEXT_CHARS);
      return { type: "refused", reason: `nobody waits for an answer any more: ${prompt}` };
    }
    const isText = shown === undefined && name === "input" && !line.trimStart().startsWith("{");
    return isText ? ((await this.#refusalOfText()) ?? meaning) : meaning;
  }

  /** For a text while nothing is asked here. An agent of code may take lines, and a conversation has messages. */
  async #refusalOfText(): Promise<LineMeaning | undefined> {
    const session = await this.#session();
    if (session === undefined) return undefined;
    if (openQuestions(session).length > 0)
      return { type: "refused", reason: "the session has just asked a question: read it, and type again" };
    const takesLines = session.waits.some((wait) => wait.type === "signal" && wait.name === "input");
    if (isConversation(session) !== true || takesLines) return undefined;
    const command = this.#io.call(`message ${session.sessionId} TEXT`);
    return {
      type: "refused",
      reason: `nothing is asked now, so this line went nowhere. A message: ${command}`,
    };
  }

  async #isOpen({ sessionId, wait }: ShownQuestion): Promise<boolean> {
    const session = await this.#session(sessionId);
    return session !== undefined && openQuestions(session).some(({ id }) => id === wait.id);
  }

  async #session(sessionId = this.#sessionId): Promise<Session | undefined> {
    const { storage } = await this.#target.promise;
    return storage.reader.session(sessionId).catch(() => undefined);
  }

  /** A note for a person who types a line: the session does not wait for it. */
  async #sayIfUnawaited(name: string): Promise<void> {
    const { storage } = await this.#target.promise;
    const session = await this.#session();
    const isWaiting = session?.status === "waiting" || session?.status === "input_required";
    if (!isWaiting || isAwaited(session, name)) return;
    const pending = await storage.reader.pendingSignals(this.#sessionId);
    if (!pending.some((signal) => signal.name === name)) return;
    const names = session.waits.flatMap((wait) => (wait.type === "signal" ? [wait.name] : []));
    const awaited =
      names[0] === undefined
        ? ""
        : `; it waits for ${names.map((awaitedName) => `"${awaitedName}"`).join(", ")}: type {"name": "${names[0]}", "payload": …}`;
    this.#warn(
      `the session does not wait for signal "${name}" now; the signal is kept until it does${awaited}`,
    );
  }

  async #send({ sessionId, name, payload, dedupKey }: IncomingSignal): Promise<SignalReceipt> {
    const { runtime } = await this.#target.promise;
    try {
      const question = questionOf(name);
      if (question !== undefined) return await runtime.answer(this.#asker, payload, { question });
      return await runtime.signal(sessionId, name, payload, dedupKey === undefined ? {} : { dedupKey });
    } catch (error) {
      return { status: "refused", reason: toError(error).message };
    }
  }

  #warn(text: string): void {
    this.#io.note(this.#io.notes.paint.yellow(`${this.#io.notes.symbols.warn} ${text}`));
  }
}
