// The meaning of a line typed at a terminal while a session runs.

import {
  answerSignalName,
  isApproval,
  isName,
  isReservedName,
  readApproval,
  type Approval,
} from "@holdfast/core";
import { questionLine, type QuestionWait } from "./describe-session.ts";
import { plainLine } from "../frame/plain-text.ts";
import { readSignalLine, type LineMeaning } from "@holdfast/runtime";

/** An open question as a person who types has read it. */
export interface TypedQuestion extends QuestionWait {
  /** The rule that the answer `a` keeps for the session. */
  readonly lastingRule?: string;
}

const RULE_CHARS = 2_000;
const ALWAYS: Approval = { approved: true, remember: { scope: "session" } };

/**
 * With an open question a line answers it: y or n (a reason may follow), or JSON where it takes that. A
 * question with a lasting rule takes `a`, too. Without an open question the line is a signal.
 *
 * @param question the one that was shown last.
 */
export function readTypedLine(line: string, question: TypedQuestion | undefined): LineMeaning {
  const meaning = readSignalLine(line);
  if (meaning.type === "signal" && !isSignalName(meaning.signal.name)) {
    return {
      type: "refused",
      reason: `"${plainLine(meaning.signal.name, 80)}" cannot be the name of a signal`,
    };
  }
  if (question === undefined || meaning.type === "nothing") return meaning;
  // A signal can be typed at any time. An object with a name may also be the answer, so a signal must have a
  // payload too.
  if (meaning.type === "signal" && meaning.signal.name !== "input" && meaning.signal.payload !== undefined)
    return meaning;
  const shape = question.answer;
  if (question.lastingRule !== undefined && /^\s*(a|always)\s*$/i.test(line))
    return answer(question.id, ALWAYS);
  const approval = shape === "any" ? undefined : readApproval(line);
  if (approval !== undefined) return answer(question.id, approval);
  const value = parsed(line);
  if (value !== undefined && (shape !== "approval" || isApproval(value))) return answer(question.id, value);
  return { type: "refused", reason: `the question is still open: ${howToAnswer(question)}` };
}

/** The text to type, completing "…: type". */
export function howToAnswer({
  answer: shape,
  lastingRule,
}: Pick<TypedQuestion, "answer" | "lastingRule">): string {
  if (lastingRule !== undefined)
    return `type y or n (a reason may follow), or a to allow ${questionLine(lastingRule, RULE_CHARS)} in this session`;
  if (shape === "approval") return "type y or n (a reason may follow)";
  const json = `JSON: a text in quotes, such as "blue"`;
  return shape === "any" ? `type an answer as ${json}` : `type y or n, or an answer as ${json}`;
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

/** Answers have names of their own, and are given by question. */
export function isSignalName(name: string): boolean {
  return isName(name) && !isReservedName(name);
}

function answer(seq: number, payload: unknown): LineMeaning {
  return { type: "signal", signal: { name: answerSignalName(seq), payload } };
}

/** The question that a meaning of `readTypedLine` answers, if it does. */
export function questionOf(signalName: string): number | undefined {
  const [, digits] = /^answer:(\d+)$/.exec(signalName) ?? [];
  return digits === undefined ? undefined : Number(digits);
}
