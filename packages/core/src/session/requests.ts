// What nobody may ask of a session, whoever is asked: names and sizes of signals, and which question an answer is for. Pure.

import { UsageError } from "../errors/errors.ts";
import { isName } from "../ids.ts";
import { isApproval } from "../journal/approval.ts";
import { isReservedName } from "../journal/signal-names.ts";
import type { Session, Wait } from "./session.ts";

/** A question a session stands on. */
export type OpenQuestion = Extract<Wait, { type: "input" }>;

/** @throws UsageError for what nobody may send by name. */
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
 * The question that is meant; when none is named the oldest open one that nobody has answered, or, when all are, the oldest: the first
 * answer stands. `undefined` when there is no such.
 *
 * @param pending names of signals that are stored and not read.
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

/** By which a second answer is known: the first counts. What a life of which nothing is left was answered is no answer to the next. */
export function answerKey({ name, life }: OpenQuestion): string {
  return life === undefined ? name : `${name}:${life}`;
}

/** Why there is nothing to answer. */
export function noSuchQuestion(
  { sessionId, status, waits }: Pick<Session, "sessionId" | "status" | "waits">,
  question: number | string | undefined,
): string {
  const open = waits.filter((wait) => wait.type === "input");
  return open.length === 0
    ? `session ${sessionId} asks nothing (it is ${status})`
    : `session ${sessionId} has no open question ${JSON.stringify(question)}; open: ${open.map(({ id }) => id).join(", ")}`;
}

/** @throws UsageError for an answer that the question does not take. */
export function refuseAnswer({ id, answer: shape }: OpenQuestion, answer: unknown): void {
  if (shape !== "approval" || isApproval(answer)) return;
  throw new UsageError(`question ${id} asks for yes or no`, {
    expected: '{"approved": true} or {"approved": false, "reason": "…"}',
    fix: "`holdfast approve ID`, with --no to refuse; nothing was stored",
  });
}
