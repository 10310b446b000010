// Shows what sessions below the shown one need from a person: an answer to a question, or a command that
// continues a paused session. The session above waits silently meanwhile, and its own journal does not say
// why.
//
// The view does not know when to look: the code that runs the tree calls it. It reports nothing twice.

import { isEnded, type Session, type StorageReader, type TraceEvent } from "@holdfast/core";
import type { Io } from "../frame/command.ts";
import { answerCommands, openQuestions, statusText } from "./describe-session.ts";
import { readBelow, walk } from "./session-tree.ts";
import { pauseAdvice } from "./pause-advice.ts";
import { plainLine } from "../frame/plain-text.ts";

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
    for (const question of openQuestions(session))
      this.#say(
        `${paint.bold(symbols.ask)} ${who} asks: ${plainLine(question.prompt, TEXT_CHARS)}`,
        answerCommands(session.sessionId, question, io),
        question.id,
      );
  }

  /** @param question the same words may be asked again. */
  #say(line: string, commands: readonly string[], question?: number): void {
    const { io, isDurable } = this.#parts;
    const key = `${line} ${question}`;
    if (this.#shown.has(key)) return;
    this.#shown.add(key);
    io.note(line);
    if (isDurable) io.note(io.notes.paint.dim(`  ${commands.join("   ")}`));
  }
}
