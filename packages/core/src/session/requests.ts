// `refuseSignalName`, `openQuestion`, `refuseAnswer`: the checks of requests to a session that hold
// everywhere. They concern names and sizes of signals, and the question that an answer is for. Pure.

import { UsageError } from "../errors/errors.ts";
import { isName } from "../ids.ts";
import { isApproval } from "../journal/approval.ts";
import { isReservedName } from "../journal/signal-names.ts";
import type { Session, Wait } from "./session.ts";

/** A question that a session is blocked on. */
export type OpenQuestion = Extract<Wait, { type: "input" }>;

/** @throws UsageError for a name that no caller may send. */
export function refuseSignalName(name: string): void {
  if (isName(name) && !isReservedName(name)) return;
  throw new UsageError(`"${name}" cannot be the name of a signal`, {
    expected:
      '1 to 200 letters, digits, spaces and . _ : / @ + -, not starting with "answer:", "child:", "child-end:", "request:" or "reply:"',
  });
}

export function refuseIfLarge(text: string | undefined, what: string, max: number): void {
  if (text === undefined || text.length <= max) return;
  throw new UsageError(`${what} is ${text.length} characters of JSON`, {
    code: "limit_exceeded",
    expected: `at most ${max} (limit "payloadChars")`,
    fix: "keep large content in a file and pass its path, or raise the limit",
  });
}

/**
 * The question with this number. Without a number it is the oldest open question that has no answer yet, or
 * else the oldest one, whose first answer counts. `undefined` when there is none.
 *
 * @param pending names of signals that are stored and unread.
 */
export function openQuestion(
  { waits }: Pick<Session, "waits">,
  question: number | undefined,
  pending?: ReadonlySet<string>,
): OpenQuestion | undefined {
  const open = waits.filter((wait) => wait.type === "input");
  if (question !== undefined) return open.find(({ id }) => id === question);
  return open.find(({ name }) => pending?.has(name) !== true) ?? open[0];
}

/**
 * The dedup key of an answer, by which only the first answer counts. An answer to an earlier incarnation, of
 * which nothing is left, is no answer to the next incarnation.
 */
export function answerKey({ name, life }: OpenQuestion): string {
  // mutant: repeated-answer-unnamed
  return life === undefined ? name : `${name}:${life}`;
}

/** Why there is no question to answer. */
export function noSuchQuestion(
  { sessionId, status, waits }: Pick<Session, "sessionId" | "status" | "waits">,
  question: number | string | undefined,
): string {
  const open = waits.filter((wait) => wait.type === "input");
  return open.length === 0
    ? `session ${sessionId} asks nothing (it is ${status})`
    : `session ${sessionId} has no open question ${JSON.stringify(question)}; open: ${open.map(({ id }) => id).join(", ")}`;
}

/** @throws UsageError for an answer that does not fit the question. */
export function refuseAnswer({ id, answer: shape }: OpenQuestion, answer: unknown): void {
  if (shape !== "approval" || isApproval(answer)) return;
  throw new UsageError(`question ${id} asks for yes or no`, {
    expected: '{"approved": true} or {"approved": false, "reason": "…"}',
    fix: "`holdfast approve ID`, with --no to refuse; nothing was stored",
  });
}
