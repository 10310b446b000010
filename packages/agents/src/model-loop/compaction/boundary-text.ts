// The texts of a boundary (`boundaryText`): the request for a summary, and the first message after the boundary. Pure.
//
//   boundary-text-1. The request, the approved plan, the list of steps, the written files and the ids of results come from the session's state.

import type { ModelState } from "../model-state.ts";
import type { EarlierWork } from "./boundary-state.ts";

export const SUMMARY_REQUEST = [
  "(The conversation is about to become longer than you can read. Write a summary of it for yourself: it replaces all but the newest messages.",
  "Use these headings, and leave out what does not matter any more: Goal, Decided, Done, Open, Facts, Files. Name paths, commands, numbers and error texts",
  "exactly. Say what is done, so that it is not done again. Answer with the summary alone, and call no tool.)",
].join("\n");

const NO_SUMMARY = "(There is no summary: the conversation could not be read by the model any more.)";

export function boundaryText(
  { request, plan, todos }: Pick<ModelState, "request" | "plan" | "todos">,
  summary: string | undefined,
  { files, calls }: EarlierWork,
): string {
  const steps = todos.map(({ text, status }) => `- [${status}] ${text}`).join("\n");
  const results = calls
    .map(({ id, name, about, chars }) => `- ${id}: ${[name, about].join(" ").trim()}, ${chars} characters`)
    .join("\n");
  return [
    section("The request", request),
    section("The plan, which a person has approved", plan ?? ""),
    section("Your list of steps", steps),
    section("Your summary of the conversation until here", summary ?? NO_SUMMARY),
    section("Files that you have written", files.map((file) => `- ${file}`).join("\n")),
    section("Earlier results that read_result can read again, by call_id", results),
    "The newest messages follow. Continue the work.",
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

function section(title: string, text: string): string {
  return text.trim() === "" ? "" : `# ${title}\n\n${text}`;
}
