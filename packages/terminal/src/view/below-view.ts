// Shows what sessions below the shown one need from a person: an answer to a question, or a command that
// continues a paused session. The session above waits silently meanwhile, and its own journal does not say
// why.
//
// The view does not know when to look: the code that runs the tree calls it. It reports nothing twice.

import { isEnded, type Session, type StorageReader, type TraceEvent } from "@holdfast/core";
import type { Io } from "../frame/command.ts";
import {
  answerCommands,
  commandLines,
  openQuestions,
  statusText,
  type QuestionWait,
  questionLine,
} from "./describe-session.ts";
import { readBelow, walk } from "./session-tree.ts";
import { pauseAdvice } from "./pause-advice.ts";
import { plainLine } from "../frame/plain-text.ts";
import { howToAnswer } from "./typed-answer.ts";

const TEXT_CHARS = 200;

/** Whether a session may need somebody from here on. */
export function mayNeedSomebody(event: TraceEvent): boolean {
  return event.type === "waiting"
    ? event.waits.some(({ type }) => type === "input")
    : event.type === "session_ended" && event.status === "paused";
}

interface BelowViewParts {
  readonly reader: StorageReader;
  readonly io: Io;
  /** Whether other processes can reach these sessions. */
  readonly isDurable: boolean;
  /** They are a coordinator's. */
  readonly isElsewhere: boolean;
  /** Receives each question that was shown to a person who types. */
  readonly questions?: {
    /** Shows how the question that is shown next is answered, as soon as a line answers it. */
    hint(show: () => void): void;
    show(question: { readonly sessionId: string; readonly wait: QuestionWait }): void;
  };
}

export class BelowView {
  readonly #parts: BelowViewParts;
  readonly #shown = new Set<string>();

  constructor(parts: BelowViewParts) {
    this.#parts = parts;
  }

  /** Looks at the sessions below a resumed session, which may still need a person. */
  async lookBelow(session: Session): Promise<void> {
    for (const node of walk(await readBelow(this.#parts.reader, session))) this.#show(node.session);
  }

  async look(sessionId: string): Promise<void> {
    const session = await this.#parts.reader.session(sessionId);
    if (session !== undefined) this.#show(session);
  }

  #show(session: Session): void {
    if (isEnded(session.status)) return;
    const { io, isElsewhere } = this.#parts;
    const { paint, symbols } = io.notes;
    const who = `child ${session.sessionId} (${plainLine(session.agent.name, TEXT_CHARS)})`;
    const paused = pauseAdvice(session, io, isElsewhere);
    if (paused !== undefined)
      this.#say(
        paint.yellow(`${symbols.warn} ${who} is ${statusText(session)}: ${paused.why}`),
        paused.commands,
      );
    for (const wait of openQuestions(session)) {
      const line = `${paint.bold(symbols.ask)} ${who} asks: ${questionLine(wait.prompt, TEXT_CHARS)}`;
      if (!this.#say(line, answerCommands(session.sessionId, wait, io), wait)) continue;
      this.#parts.questions?.show({ sessionId: session.sessionId, wait });
    }
  }

  /**
   * @param question the same words may be asked again.
   * @returns whether it was shown now.
   */
  #say(line: string, commands: readonly string[], question?: QuestionWait): boolean {
    const { io, isDurable, questions } = this.#parts;
    const { paint } = io.notes;
    const key = `${line} ${question?.id}`;
    if (this.#shown.has(key)) return false;
    this.#shown.add(key);
    io.note(line);
    const advise = (before: string): void => {
      if (isDurable) io.note(paint.dim(commandLines(commands, before, io.notes)));
    };
    if (question === undefined || questions === undefined) advise("");
    else
      questions.hint(() => {
        io.note(paint.dim(`  ${howToAnswer(question)}`));
        advise("or from another terminal: ");
      });
    return true;
  }
}
