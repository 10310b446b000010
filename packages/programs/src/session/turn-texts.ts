// The texts about a turn that was cut off, for the prompt of the next one (`continuePrompt`, `unreadText`,
// `answerText`). Pure.

import { describeProcessEnd, type StopMeans } from "@holdfast/system";

import type { OpenCall } from "./event-entries.ts";
import type { ExternalEnd } from "./external-agent-protocol.ts";
import type { LateAnswer } from "./questions/permission-questions.ts";

const CALL_CHARS = 500;

/** @param unread as `unreadText` returns it. */
export function continuePrompt(why: string, unread: readonly string[], request: string): string {
  return [
    `${why} ${unread.join("\n")}`,
    `Verify what has already been done before you repeat anything, and then continue. The request was:\n\n${request}`,
  ].join("\n");
}

/**
 * The parts of a prompt that a turn which was cut off may not have read.
 *
 * @param news answers and messages that the turn did not take.
 * @param earlier the same of the turns before. A record of the session is the last of it (record-text-3).
 */
export function unreadText(
  cutOff: readonly OpenCall[],
  news: readonly string[],
  earlier: readonly string[],
): readonly string[] {
  return [...(earlier.length > 0 && cutOff.length === 0 ? [] : [cutOffText(cutOff)]), ...news, ...earlier];
}

/** The calls of a turn that was cut off. */
function cutOffText(calls: readonly OpenCall[]): string {
  const named = calls.map(
    ({ name, input, parentCallId }) =>
      `- ${callText(name, input)}${parentCallId === undefined ? "" : " (of a sub-agent)"}`,
  );
  if (named.length === 0) return "No tool call was under way as far as is known.";
  return `These tool calls were under way, and whether they took effect is unknown:\n${named.join("\n")}`;
}

/** An answer of a person that may not have reached the program. */
export function answerText({ request: { tool, input, form }, answer }: LateAnswer): string {
  if (form !== undefined) {
    const said = answer.allowed ? `The answer: ${JSON.stringify(answer.filled ?? {})}` : answer.message;
    return `You asked a person, and may not have received the answer: ${form.message}\n${said}`;
  }
  const call = callText(tool, input);
  if (!answer.allowed)
    return `You asked for this call, which was not carried out: ${call}\n${answer.message}`;
  return answer.input === undefined
    ? `You asked for this call, which was not carried out. A person has allowed it, once: ${call}`
    : `You asked for this call, which was not carried out: ${call}\nA person has allowed this one in its place, once: ${callText(tool, answer.input)}`;
}

const MEANS: Readonly<Record<StopMeans, string>> = {
  request: "a request",
  SIGTERM: "SIGTERM",
  SIGKILL: "SIGKILL",
};

/** How the program of an aborted turn ended, as a sentence behind another. Empty without a process of ours. */
export function stopText(
  name: string,
  { process }: Extract<ExternalEnd, { readonly type: "aborted" }>,
): string {
  if (process === undefined) return "";
  if (process.type !== "stopped")
    return ` ${name} ended before it was stopped: ${describeProcessEnd(process)}.`;
  const { means, exit } = process;
  return ` ${name} was stopped by ${MEANS[means]}: ${exit === undefined ? "its exit was not seen" : describeProcessEnd(exit)}.`;
}

function callText(name: string, input: OpenCall["input"]): string {
  return `${name} ${JSON.stringify(input).slice(0, CALL_CHARS)}`;
}
