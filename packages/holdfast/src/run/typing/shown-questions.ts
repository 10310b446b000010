// `ShownQuestions`: the open questions that a terminal has shown, in that order. A typed line answers the
// last of them.
//
//   - A line never answers a question that this terminal has not shown, nor one that was shown before the
//     last one.
//   - When the last one has ended, the one before it is shown again before a line answers it.

import { answerSignalName, defined, type Session } from "@holdfast/core";
import { type AnswerKind, type AskedQuestion, viewQuestion } from "@holdfast/proto/view";
import type { Io } from "@holdfast/terminal/frame/command";
import { openQuestions, questionLine } from "@holdfast/terminal/view/describe-session";
import type { LiveView } from "@holdfast/terminal/view/work/live-view";
import { howToAnswer, type TypedQuestion } from "@holdfast/terminal/view/typed-answer";

const TEXT_CHARS = 200;

export interface ShownQuestion {
  readonly sessionId: string;
  readonly wait: TypedQuestion;
}

export class ShownQuestions {
  readonly #io: Pick<Io, "note" | "notes">;
  #shown: ShownQuestion[] = [];
  #hint: () => void = () => {};
  /** Called with the question that has become the last one on the screen. Resolves when a line answers it. */
  onLast: (question: ShownQuestion) => Promise<void> = () => Promise.resolve();

  constructor(io: Pick<Io, "note" | "notes">) {
    this.#io = io;
  }

  /** The question that a line answers. */
  get last(): ShownQuestion | undefined {
    return this.#shown.at(-1);
  }

  /** Shows how the question that is shown next is answered, as soon as a line answers it. */
  hint(show: () => void): void {
    this.#hint = show;
  }

  show(question: ShownQuestion): void {
    this.#shown = [...this.#without(question.sessionId, question.wait.id), question];
    const hint = this.#hint;
    this.#hint = () => {};
    this.#hintOnceRead(question, hint);
  }

  /** The question has an answer, or nobody waits for one any more. */
  end(sessionId: string, id: number): void {
    this.#keep(this.#without(sessionId, id));
  }

  /** A checkpoint withdraws all questions of its session. */
  endAll(sessionId: string): void {
    this.#keep(this.#shown.filter((one) => one.sessionId !== sessionId));
  }

  #without(sessionId: string, id: number): ShownQuestion[] {
    return this.#shown.filter((one) => one.sessionId !== sessionId || one.wait.id !== id);
  }

  #keep(left: ShownQuestion[]): void {
    const before = this.last;
    this.#shown = left;
    const { last } = this;
    if (last === undefined || last === before) return;
    const { paint, symbols } = this.#io.notes;
    this.#io.note(
      `${paint.bold(`${symbols.ask} still open:`)} ${questionLine(last.wait.prompt, TEXT_CHARS)}`,
    );
    this.#hintOnceRead(last, () => this.#io.note(paint.dim(`  ${howToAnswer(last.wait)}`)));
  }

  /** Another question that came meanwhile has its own hint. */
  #hintOnceRead(question: ShownQuestion, hint: () => void): void {
    void this.onLast(question).then(() => {
      if (this.last === question) hint();
    });
  }
}

/** A view of a session that keeps the shown questions. */
export function keepingShown(
  view: LiveView,
  sessionId: string,
  questions: ShownQuestions | undefined,
): LiveView {
  if (questions === undefined) return view;
  return {
    began(session: Session, resumed, pending, asked) {
      view.began(session, resumed, pending, asked);
      for (const wait of openQuestions(session))
        if (resumed && !pending.has(wait.name))
          questions.show({
            sessionId,
            wait: { ...wait, ...ruleOf(asked.get(wait.id) ?? wait, wait.answer) },
          });
    },
    event(event) {
      view.event(event);
      const { type, id, prompt = "", details, takes } = event;
      if (type === "request_input" && id !== undefined) {
        const shape = takes === undefined ? {} : { answer: takes };
        questions.show({
          sessionId,
          wait: {
            type: "input",
            id,
            name: answerSignalName(id),
            prompt,
            ...shape,
            ...ruleOf({ prompt, details }, takes),
          },
        });
      }
      if (type === "checkpoint") questions.endAll(sessionId);
      if (ENDS.has(type)) questions.end(sessionId, Number(event["wait"]));
    },
    trace: (event) => view.trace(event),
    draft: (piece) => view.draft(piece),
    hasShown: (text) => view.hasShown?.(text) ?? false,
  };
}

/** The rule that an answer may keep. */
function ruleOf(question: AskedQuestion, answer: AnswerKind): Pick<TypedQuestion, "lastingRule"> {
  return defined({ lastingRule: viewQuestion(question, answer).lastingRule });
}

/** The events that end the wait for an answer. */
const ENDS: ReadonlySet<string> = new Set(["signal_received", "wait_timed_out", "wait_cancelled"]);
