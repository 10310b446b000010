// `callbackText`: the prompt that tells an executor how its children ended.
//
//   callback-text-1. The words of a child stay inside its own part of the text. They can neither close the
//       element around it nor look like the part of another child.
//   callback-text-2. The text of one child has a limit. The rest is in the session of the child.

import type { Callback, ChildEvent } from "@holdfast/core";

/** callback-text-2. */
const CONTENT_CHARS = 50_000;

/** The prompt for one callback, or for several that came while the parent was busy. */
export function callbackText(callbacks: readonly [Callback, ...(readonly Callback[])]): string {
  const [{ child, event }, ...others] = callbacks;
  if (others.length > 0) return aggregatedText(callbacks);
  const isDone = event.type === "completed";
  const attributes = `session="${attributeText(child)}" status="${statusOf(event)}"`;
  const advice = isDone
    ? "Please continue with the orchestration based on this result."
    : "Please handle this failure and continue with the orchestration.";
  return element(attributes, `## ${isDone ? "Child Result" : "Error"}\n\n${contentOf(child, event)}`, advice);
}

function aggregatedText(callbacks: readonly Callback[]): string {
  const parts = callbacks.map(
    ({ child, event }) =>
      `### Child: ${attributeText(child)} (status: ${statusOf(event)})\n\n${contentOf(child, event)}`,
  );
  const advice = "Please continue with the orchestration based on these results.";
  return element(`type="aggregated" count="${callbacks.length}"`, parts.join("\n\n---\n\n"), advice);
}

function element(attributes: string, content: string, advice: string): string {
  return `<agent-callback ${attributes}>\n${content}\n</agent-callback>\n\n${advice}`;
}

function statusOf({ type }: ChildEvent): "completed" | "failed" {
  return type === "completed" ? type : "failed";
}

function contentOf(child: string, event: ChildEvent): string {
  const text = event.type === "completed" ? resultText(event.output) : errorText(event);
  if (text.length <= CONTENT_CHARS) return enclosed(text);
  const cut = text.slice(0, CONTENT_CHARS).toWellFormed(); // The cut may divide a surrogate pair.
  return `${enclosed(cut)}\n\n(The first ${CONTENT_CHARS} of ${text.length} characters. GET /sessions/${attributeText(child)}/result has all of them.)`;
}

/** The output of an executor has its result in two fields; the output of another agent is the result itself. */
function resultText(output: unknown): string {
  const { text, data } = resultOf(output);
  if (data !== null) return JSON.stringify(data, null, 2);
  return text === null || text === "" ? "(No result available)" : text;
}

/** The result of a child, as the routes of executors name it. */
export function resultOf(output: unknown): { readonly text: string | null; readonly data: unknown } {
  if (typeof output === "string") return { text: output, data: null };
  if (typeof output !== "object" || output === null) return { text: null, data: output ?? null };
  const { result_text: text, result_data: data } = output as Readonly<Record<string, unknown>>;
  if (text === undefined && data === undefined) return { text: null, data: output };
  return { text: typeof text === "string" ? text : null, data: data ?? null };
}

/** Why a child ended without a result. */
export function errorText(event: ChildEvent): string {
  switch (event.type) {
    case "failed": {
      const { message } = (event.error ?? {}) as { readonly message?: unknown };
      return typeof message === "string" && message !== "" ? message : "The session failed without an error.";
    }
    case "cancelled":
      return event.reason === null
        ? "The session was cancelled."
        : `The session was cancelled: ${event.reason}`;
    case "timed_out":
      return "The session did not end before its deadline.";
    default:
      return `The session ended (${event.type}).`;
  }
}

/** callback-text-1. A text without elements, and whose lines are neither headings nor separators. */
function enclosed(text: string): string {
  // mutant: callback-unescaped
  return markupText(text)
    .replaceAll(LINE_END, "\n")
    .replaceAll(/^([^\S\n]*)(?=#|(?:[-*_=][^\S\n]*){3,}$)/gm, "$1\\");
}

/** Everything that some program reads as the end of a line. */
const LINE_END = /\r\n|[\r\v\f\u0085\u2028\u2029]/g;

function attributeText(text: string): string {
  return markupText(text).replaceAll('"', "&quot;").replaceAll(LINE_END, " ").replaceAll("\n", " ");
}

function markupText(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
