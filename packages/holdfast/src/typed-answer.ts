// What a line typed at a terminal means while a session runs.

import { answerSignalName, isName, isReservedName, type Approval } from "@holdfast/core";
import type { QuestionWait } from "./describe-session.ts";
import { plainLine } from "./plain-text.ts";
import { readSignalLine, type LineMeaning } from "@holdfast/runtime";

/**
 * With an open question a line answers it: y or n (a reason may follow), or any JSON. Otherwise it is a signal.
 *
 * @param question the oldest that is open.
 */
export function readTypedLine(line: string, question: QuestionWait | undefined): LineMeaning {
  const meaning = readSignalLine(line);
  if (meaning.type === "signal" && !isSignalName(meaning.signal.name)) {
    return {
      type: "refused",
      reason: `"${plainLine(meaning.signal.name, 80)}" cannot be the name of a signal`,
    };
  }
  if (question === undefined || meaning.type === "nothing") return meaning;
  // A signal can be typed at any time; but an object with a name may well be the answer, so it must have a payload too.
  if (meaning.type === "signal" && meaning.signal.name !== "input" && meaning.signal.payload !== undefined)
    return meaning;
  const approval = readApproval(line);
  if (approval !== undefined) return answer(question.id, approval);
  try {
    return answer(question.id, JSON.parse(line));
  } catch {
    const reason = `the question is still open: type y or n, or an answer as JSON (a text in quotes: ${JSON.stringify(line.trim())})`;
    return { type: "refused", reason };
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

function readApproval(line: string): Approval | undefined {
  const [, word, reason] = /^\s*(y|yes|n|no)\b[\s,:;.-]*(.*?)\s*$/i.exec(line) ?? [];
  if (word === undefined) return undefined;
  return { approved: /^y/i.test(word), ...(reason === undefined || reason === "" ? {} : { reason }) };
}
