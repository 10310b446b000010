// Standard input while a session runs: lines are signals, and on a terminal also answers to questions.
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
import type { Io } from "../frame/command.ts";
import { openQuestions } from "../view/describe-session.ts";
import { stdinSignals } from "@holdfast/runtime";
import { questionOf, readTypedLine } from "../view/typed-answer.ts";

/** The target of typed signals, which changes when the storage is opened again. */
export interface SignalTarget {
  readonly runtime: Runtime;
  readonly storage: AgentStorage;
}

export class StdinListener {
  readonly #sessionId: string;
  readonly #io: Io;
  #target = Promise.withResolvers<SignalTarget>();
  #reading: { close(): Promise<void> } | undefined;

  constructor(sessionId: string, io: Io) {
    this.#sessionId = sessionId;
    this.#io = io;
  }

  /** The session is there. From the first time on lines are read. */
  async attach(target: SignalTarget): Promise<void> {
    this.#target.resolve(target);
    this.#reading ??= await this.#open();
  }

  /** The session is not there for a while; what arrives waits. */
  detach(): void {
    this.#target = Promise.withResolvers<SignalTarget>();
  }

  async close(): Promise<void> {
    await this.#reading?.close();
  }

  #open(): Promise<{ close(): Promise<void> }> {
    const { stdin } = this.#io;
    const isTyped = stdin.isTTY === true;
    return stdinSignals({
      input: stdin,
      sessionId: this.#sessionId,
      interpret: async (line) => readTypedLine(line, isTyped ? await this.#oldestQuestion() : undefined),
      onRefused: (reason) => this.#warn(reason),
      onReceipt: ({ name }, receipt) => {
        if (receipt.status === "refused") this.#warn(`signal "${name}" was refused: ${receipt.reason}`);
        if (receipt.status === "duplicate") this.#warn("that question already has an answer");
        if (receipt.status === "stored") void this.#sayIfUnawaited(name).catch(() => {});
      },
    }).open((signal) => this.#send(signal));
  }

  async #oldestQuestion() {
    const session = await this.#session();
    return session === undefined ? undefined : openQuestions(session)[0];
  }

  async #session(): Promise<Session | undefined> {
    const { storage } = await this.#target.promise;
    return storage.reader.session(this.#sessionId).catch(() => undefined);
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
      if (question !== undefined) return await runtime.answer(sessionId, payload, { question });
      return await runtime.signal(sessionId, name, payload, dedupKey === undefined ? {} : { dedupKey });
    } catch (error) {
      return { status: "refused", reason: toError(error).message };
    }
  }

  #warn(text: string): void {
    this.#io.note(this.#io.notes.paint.yellow(`${this.#io.notes.symbols.warn} ${text}`));
  }
}
