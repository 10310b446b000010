// What sessions below the one that is shown need of a person: a question they ask, or what lets a paused one go on. The one above
// waits in silence meanwhile, and its own journal does not say why.
//
// It does not know when to look: whoever runs the family hears of that, and says so. Nothing is told twice.

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
  readonly #told = new Set<string>();

  constructor(parts: BelowViewParts) {
    this.#parts = parts;
  }

  /** Those below a session that is taken up: who needed somebody before still does. */
  async lookBelow(session: Session): Promise<void> {
    for (const node of walk(await readBelow(this.#parts.reader, session))) this.#tell(node.session);
  }

  async look(sessionId: string): Promise<void> {
    const session = await this.#parts.reader.session(sessionId);
    if (session !== undefined) this.#tell(session);
  }

  #tell(session: Session): void {
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
    const [oldest] = openQuestions(session);
    for (const question of openQuestions(session))
      this.#say(
        `${paint.bold(symbols.ask)} ${who} asks: ${plainLine(question.prompt, TEXT_CHARS)}`,
        answerCommands(session.sessionId, question, question === oldest, io),
        question.id,
      );
  }

  /** @param question the same words may be asked again. */
  #say(line: string, commands: readonly string[], question?: number): void {
    const { io, isDurable } = this.#parts;
    const key = `${line} ${question}`;
    if (this.#told.has(key)) return;
    this.#told.add(key);
    io.note(line);
    if (isDurable) io.note(io.notes.paint.dim(`  ${commands.join("   ")}`));
  }
}
