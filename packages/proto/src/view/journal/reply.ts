// `replyOf`, `viewResult`, `foldOutput`: what an agent says in one entry, and what came of a call, as a terminal
// and a page show it. Pure, over plain JSON. Texts are those of agents: the caller makes them visible.

import type { DiffLine } from "../worktree/parse-diff.ts";
import { type CallView, patchedLines } from "./call.ts";

export interface ReplyParts {
  readonly text: string;
  readonly toolCalls: readonly { readonly id?: string; readonly name: string; readonly input: unknown }[];
}

/** The text and the calls of an entry of an agent. */
export function replyOf(content: unknown): ReplyParts {
  const { text, toolCalls, type, toolCallId, toolName, input } = fieldsOf(content);
  // One call, as an agent of code appends it (`appendToolCall`).
  const isCall = type === "tool-call" && typeof toolCallId === "string" && typeof toolName === "string";
  if (isCall) return { text: "", toolCalls: [{ id: toolCallId, name: toolName, input }] };
  return {
    text: typeof content === "string" ? content : typeof text === "string" ? text : "",
    toolCalls: Array.isArray(toolCalls) ? toolCalls.filter((call) => typeof call?.name === "string") : [],
  };
}

/** The call of a result, and the name of its tool. */
export function resultOf(content: unknown): { readonly callId: string; readonly name: string } {
  const { toolCallId, name, toolName } = fieldsOf(content);
  const tool = name ?? toolName;
  return { callId: String(toolCallId), name: typeof tool === "string" ? tool : "tool" };
}

export interface ResultView {
  readonly hasFailed: boolean;
  /** The lines that an edit has removed and added, where only its result says them. */
  readonly change?: readonly DiffLine[];
  /** The lines of its text. The heads that the tool `shell` gives to a command that worked say nothing. */
  readonly output: readonly string[];
}

/** How the tool `shell` begins the result of a command that failed (`describeEnd`). It is no error of the tool. */
const FAILED_RUN =
  /^(?:exit code [1-9]\d*|ended by SIG\w+|ended after its time of \d+ ms|not started: .*)(?:\n|$)/;

/** @param call the call that it is the result of, where that is known. */
export function viewResult(call: CallView | undefined, content: unknown): ResultView {
  const { text: given, output: value, isError } = fieldsOf(content);
  const whole = given ?? value;
  const text = typeof whole === "string" ? whole : (JSON.stringify(whole) ?? "");
  const isRun = call?.verb === "Run";
  const hasFailed = isError === true || (isRun && FAILED_RUN.test(text));
  const isUnshownEdit = call?.verb === "Edit" && call.change === undefined && !hasFailed;
  const change = isUnshownEdit ? patchedLines(text) : [];
  const lines = text === "" ? [] : text.trimEnd().split("\n");
  return {
    hasFailed,
    ...(change.length > 0 && { change }),
    output: isRun ? lines.filter((one, at) => at > 1 || !/^(exit code 0|stdout:)$/.test(one)) : lines,
  };
}

/** Lines of a change that are shown at once. The rest is counted. */
const CHANGE_LINES = 12;
const OUTPUT_LINES = 3;
const ERROR_LINES = 8;

/** The lines that are shown before somebody asks for all. */
export function foldChange(change: readonly DiffLine[]): readonly DiffLine[] {
  return change.slice(0, change.length > CHANGE_LINES + 1 ? CHANGE_LINES : change.length);
}

/**
 * The lines that are shown before somebody asks for all. The end of an output says why it failed. The contents
 * of a file were asked for by the agent, and not by the person.
 */
export function foldOutput(call: CallView | undefined, { output, hasFailed }: ResultView): readonly string[] {
  const most = hasFailed ? ERROR_LINES : call?.verb === "Run" ? OUTPUT_LINES : 1;
  if (output.length <= most + 1 && most > 1) return output;
  return hasFailed ? output.slice(-most) : output.slice(0, most);
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}
