// The results and files of a session that its model cannot see any more, collected over all boundaries
// (`joinWork`). Pure.
//
//   - A call keeps the place of its whole result. A shortened copy of the result never replaces it.
//   - A call has an id that no call in the list has. Some servers number the calls of each conversation from
//     the beginning.
//   - The lists are bounded. The oldest files and results are forgotten first.

import type { ModelToolCall, ToolContent } from "../../models/model-provider.ts";
import type { EarlierCall, EarlierWork } from "./boundary-state.ts";

const FILES_MAX = 50;
const CALLS_MAX = 60;
const ABOUT_CHARS = 80;

/** The work that one conversation shows, as the task `conversationTail` finds it. */
export interface ShownWork {
  readonly files: readonly string[];
  readonly calls: readonly ShownCall[];
}

export interface ShownCall extends Omit<EarlierCall, "entry"> {
  /** The conversation has a part of the result only. */
  readonly isPart: boolean;
}

/**
 * @param shown the work in the conversation that a boundary ends.
 * @param leaf the last entry of that conversation.
 */
export function joinWork(before: EarlierWork, shown: ShownWork, leaf: string): EarlierWork {
  const files = [...new Set([...before.files, ...shown.files])].slice(-FILES_MAX);
  let { calls } = before;
  for (const { isPart, ...call } of shown.calls) {
    const known = calls.find(({ id }) => id === call.id);
    if (known === undefined && isPart) continue; // The place of the whole result is forgotten.
    calls = addCall(calls, known ?? { ...call, entry: leaf });
  }
  return { files, calls };
}

export function addCall(calls: readonly EarlierCall[], call: EarlierCall): readonly EarlierCall[] {
  return [...calls.filter(({ id }) => id !== call.id), call].slice(-CALLS_MAX);
}

/** @param boundary the number of the last boundary. */
export function withOwnIds(
  calls: readonly ModelToolCall[],
  earlier: EarlierWork,
  boundary: number,
): readonly ModelToolCall[] {
  const taken = new Set(earlier.calls.map(({ id }) => id));
  return calls.map((call) => (taken.has(call.id) ? { ...call, id: `${call.id}_b${boundary}` } : call));
}

/** The first text among the arguments of a call, as far as a list shows it. */
export function aboutOf(input: Readonly<Record<string, unknown>>): string {
  const text = Object.values(input).find((value) => typeof value === "string") ?? "";
  return (text.split("\n", 1)[0] ?? "").slice(0, ABOUT_CHARS);
}

/** A result whose middle is left out, with the size of the whole. */
export function cutResult(content: ToolContent, charsMax: number): ToolContent {
  const { text, toolCallId } = content;
  if (text.length <= charsMax) return content;
  const half = Math.floor(charsMax / 2);
  const mark = `\n[${text.length - 2 * half} characters left out; read_result with call_id ${toolCallId} reads them]\n`;
  const total = content.total ?? text.length;
  return { ...content, text: `${text.slice(0, half)}${mark}${text.slice(-half)}`, total };
}
