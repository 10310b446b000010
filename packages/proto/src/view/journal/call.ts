// `viewCall`: a call of a tool as a terminal and a page show it. People read "Edit src/app.ts" with the lines
// that change, and not the name of a program's tool with its JSON.
//
// Pure, over plain JSON. Coding agents give the same work other names. The table below has those of the tools
// of Holdfast, Claude Code, Codex, Pi, OpenCode, Gemini and the kinds of the Agent Client Protocol. A tool
// that it does not have is shown by its own name. Texts are those of agents: the caller makes them visible.

import type { DiffLine } from "../worktree/parse-diff.ts";
import { isStep, type PlanStepView } from "./entry.ts";

export interface CallView {
  /** A word for the work, such as `Run` or `Edit`, or the name of a tool that has none. */
  readonly verb: string;
  /** The command, path, pattern or address of the call. Empty where the call does not say. */
  readonly subject: string;
  /** The subject is the path of a file or a folder, whose end says most. */
  readonly isPath?: true;
  /** The lines that an edit removes and adds, in their order. */
  readonly change?: readonly DiffLine[];
  /** The arguments that the change does not say. Absent where the change is not all of the edit. */
  readonly others?: Readonly<Record<string, unknown>>;
  /** The steps of a plan of the model loop. The plans of coding agents are entries of their own. */
  readonly steps?: readonly PlanStepView[];
}

const VERBS: readonly (readonly [verb: string, names: RegExp])[] = [
  ["Run", /^(shell|bash|execute|exec|exec_command|run_command|run_shell_command|local_shell|terminal)$/],
  ["Edit", /^(edit_file|edit|multiedit|multi_edit|replace|str_replace|apply_patch|patch|file_change)$/],
  ["Write", /^(write_file|write|create_file|create)$/],
  ["Delete", /^(delete_file|delete)$/],
  ["Read", /^(read_file|read|view|read_many_files|notebookread)$/],
  ["Search", /^(search|grep|search_file_content|codesearch)$/],
  ["List", /^(list_files|list_directory|list|ls|glob|find)$/],
  ["Fetch", /^(web_fetch|webfetch|fetch)$/],
  ["Search the web for", /^(web_search|websearch|google_web_search)$/],
  ["Delegate", /^(delegate|task|agent)$/],
  ["Plan", /^(todo|todowrite|todo_write|todoread|update_plan)$/],
  ["Propose a plan", /^(propose_plan|exitplanmode|exit_plan_mode)$/],
  ["Read the skill", /^(read_skill|skill)$/],
  ["Ask", /^(ask_user|askuserquestion)$/],
];

const PATH_ARGUMENTS = ["path", "file_path", "filePath", "absolute_path", "paths", "filename"] as const;
/** The arguments that say what a call is about, the most telling first. */
const SUBJECTS = [
  "command",
  "cmd",
  "pattern",
  "query",
  ...PATH_ARGUMENTS,
  "url",
  "description",
  "prompt",
  "title",
  "name",
  "skill",
] as const;
const PATHS: ReadonlySet<string> = new Set(PATH_ARGUMENTS);

/** The work whose content is shown beside its call: the steps of a plan, or the question of a proposal. */
const SHOWN_APART: ReadonlySet<string> = new Set(["Plan", "Propose a plan"]);

const BEFORE = ["oldText", "old_string", "oldString", "old_str", "old_text"] as const;
const AFTER = ["newText", "new_string", "newString", "new_str", "new_text"] as const;
const PATCHES = ["patch", "diff", "unified_diff"] as const;

/** @param folder the folder that the work is in, where that is known. A path below it is shown from there. */
export function viewCall(name: string, input: unknown, folder?: string): CallView {
  const fields = fieldsOf(input);
  const verb = VERBS.find(([, names]) => names.test(name.toLowerCase()))?.[0];
  const change = changeOf(verb, fields);
  const others = change === undefined ? undefined : besideChange(verb, fields);
  const isShownApart = verb !== undefined && SHOWN_APART.has(verb);
  return {
    verb: verb ?? toolName(name),
    ...(isShownApart ? { subject: "" } : subjectOf(fields, input, folder)),
    ...(change !== undefined && { change }),
    ...(others !== undefined && { others }),
    ...(verb === "Plan" && Array.isArray(fields["todos"]) && { steps: fields["todos"].filter(isStep) }),
  };
}

/** The command, path or address of a call of a tool that the table has. Only what a call names so, and cheap. */
export function subjectOfTool(name: string, input: unknown): string | undefined {
  if (!VERBS.some(([, names]) => names.test(name.toLowerCase()))) return undefined;
  return namedSubject(fieldsOf(input))?.subject;
}

/** `mcp__github__create_issue` is the tool `create_issue` of the server `github`. */
function toolName(name: string): string {
  const [, server, tool] = /^mcp__(.+?)__(.+)$/.exec(name) ?? [];
  return server === undefined ? name : `${server}: ${tool}`;
}

type Subject = Pick<CallView, "subject" | "isPath">;

function namedSubject(fields: Fields, folder?: string): Subject | undefined {
  for (const name of SUBJECTS) {
    const value = fields[name];
    const texts = isTexts(value) ? value : typeof value === "string" && value !== "" ? [value] : [];
    if (texts.length === 0) continue;
    if (!PATHS.has(name)) return { subject: texts.join(" ") };
    return { subject: texts.map((path) => fromFolder(path, folder)).join(" "), isPath: true };
  }
  return undefined;
}

function fromFolder(path: string, folder: string | undefined): string {
  const begin = folder === undefined ? "" : folder.replace(/\/*$/, "/");
  return begin !== "" && path.startsWith(begin) && path.length > begin.length
    ? path.slice(begin.length)
    : path;
}

function subjectOf(fields: Fields, input: unknown, folder: string | undefined): Subject {
  const named = namedSubject(fields, folder);
  if (named !== undefined) return named;
  if (typeof input === "string") return { subject: input };
  const texts = Object.values(fields).filter((value) => typeof value === "string");
  if (texts.length === 1) return { subject: texts[0]! };
  const isEmpty = input === undefined || Object.keys(fields).length === 0;
  return { subject: isEmpty ? "" : (JSON.stringify(input) ?? "") };
}

function changeOf(verb: string | undefined, fields: Fields): readonly DiffLine[] | undefined {
  if (verb === "Write" && typeof fields["content"] === "string") return linesOf(fields["content"]).map(added);
  const edits = Array.isArray(fields["edits"]) ? fields["edits"].map(fieldsOf) : [fields];
  const lines = edits.flatMap((edit) => {
    const [before, after] = [textOf(edit, BEFORE), textOf(edit, AFTER)];
    if (before !== undefined || after !== undefined) return editLines(before ?? "", after ?? "");
    return [];
  });
  const patch = textOf(fields, PATCHES);
  if (lines.length === 0 && patch !== undefined) return patchedLines(patch);
  return lines.length === 0 ? undefined : lines;
}

/** A patch also has lines that do not change, and an edit among several may have arguments of its own. */
function besideChange(verb: string | undefined, fields: Fields): Fields | undefined {
  const { edits } = fields;
  const isOf = (names: readonly string[], [name]: readonly [string, unknown]): boolean =>
    names.includes(name);
  const texts = [...BEFORE, ...AFTER];
  const isWhole = (edit: unknown): boolean =>
    Object.entries(fieldsOf(edit)).every((field) => isOf(texts, field));
  if (Array.isArray(edits) && !edits.every(isWhole)) return undefined;
  if (textOf(fields, PATCHES) !== undefined) return undefined;
  const said = verb === "Write" ? ["content"] : Array.isArray(edits) ? ["edits"] : texts;
  return Object.fromEntries(Object.entries(fields).filter((field) => !isOf(said, field)));
}

/** The lines that differ, without the lines with which both texts begin and end. */
function editLines(before: string, after: string): readonly DiffLine[] {
  const [old, young] = [linesOf(before), linesOf(after)];
  const least = Math.min(old.length, young.length);
  let head = 0;
  while (head < least && old[head] === young[head]) head++;
  let tail = 0;
  while (tail < least - head && old.at(-1 - tail) === young.at(-1 - tail)) tail++;
  return [
    ...old.slice(head, old.length - tail).map(deleted),
    ...young.slice(head, young.length - tail).map(added),
  ];
}

/**
 * The changed lines of a patch, as `git diff` and Codex write them. The names of a file are two lines, one below
 * the other, outside of a hunk: `--- x` elsewhere is a deleted line `-- x` (parse-diff-1).
 */
export function patchedLines(patch: string): readonly DiffLine[] {
  const lines = patch.split("\n");
  let [oldLeft, newLeft] = [0, 0];
  return lines.flatMap((line, at) => {
    const [isOld, isNew] = [line.startsWith("-"), line.startsWith("+")];
    if (oldLeft > 0 || newLeft > 0) {
      if (!isNew) oldLeft--;
      if (!isOld) newLeft--;
    } else {
      const hunk = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/.exec(line);
      if (hunk !== null) [oldLeft, newLeft] = [Number(hunk[1] ?? 1), Number(hunk[2] ?? 1)];
      if (areNames(line, lines[at + 1]) || areNames(lines[at - 1], line)) return [];
    }
    if (isNew) return added(line.slice(1));
    return isOld ? deleted(line.slice(1)) : [];
  });
}

function areNames(line = "", next = ""): boolean {
  return line.startsWith("--- ") && next.startsWith("+++ ");
}

function linesOf(text: string): readonly string[] {
  if (text === "") return [];
  return text.replace(/\n$/, "").split("\n");
}

function added(text: string): DiffLine {
  return { type: "added", text };
}

function deleted(text: string): DiffLine {
  return { type: "deleted", text };
}

function textOf(fields: Fields, names: readonly string[]): string | undefined {
  const value = names.map((name) => fields[name]).find((one) => typeof one === "string");
  return typeof value === "string" ? value : undefined;
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}

type Fields = Readonly<Record<string, unknown>>;

function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null ? (value as Fields) : {};
}
