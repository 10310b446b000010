// `viewQuestion`, `answerLines`, `unnamedAnswer`: the meaning of an open question for a person, and the
// command lines that answer it. An answer that names none of several is refused.
//
// Pure, over plain JSON, so that the command and a page show the same. `viewQuestion` keeps the texts as they
// are: the caller shows them by `visibleText`.

import { type CallView, viewCall } from "./journal/call.ts";
import { visibleText } from "./text/visible-text.ts";
import type { DiffLine } from "./worktree/parse-diff.ts";

/** A question as its session's journal holds it. */
export interface AskedQuestion {
  readonly prompt: string;
  readonly details?: unknown;
}

/** The kind of thing that waits for a person. */
type QuestionKind = "uncertain_effect" | "approval" | "question";

export interface QuestionView {
  readonly kind: QuestionKind;
  readonly prompt: string;
  /** The tool of the call that is to be approved. */
  readonly tool?: string;
  /** The word for the work of that call and its subject, for a place that has one line. An answer is for `action`. */
  readonly work?: Pick<CallView, "verb" | "subject" | "isPath">;
  /** The exact command or the exact arguments of that call, unabridged, as a text for people. */
  readonly action?: string;
  /** The arguments of that call, where an answer may have others in their place. */
  readonly editable?: Readonly<Record<string, unknown>>;
  /** The lines that the call would remove and add. */
  readonly change?: readonly DiffLine[];
  /**
   * The arguments that neither the question nor the change says, as `action` has them. Absent where the change
   * is not all of the edit.
   */
  readonly beside?: string;
  /** The folder in which the call would run. */
  readonly folder?: string;
  /** The rule that an answer can keep, such as `shell(git diff)`. */
  readonly lastingRule?: string;
  /** The rule because of which a person is asked; absent for a call that no rule names. */
  readonly askedBy?: string;
  /** The task whose effect is uncertain. */
  readonly taskId?: string;
  /** Any other details, as they were asked. */
  readonly details?: unknown;
}

/** The shape of an answer: yes or no, or any JSON. Old questions do not say. */
export type AnswerKind = "approval" | "any" | undefined;

export function viewQuestion({ prompt, details }: AskedQuestion, answer: AnswerKind): QuestionView {
  const fields = fieldsOf(details);
  const taskId = fields["taskId"];
  if (typeof taskId === "string" && prompt.includes(UNCERTAIN))
    return { kind: "uncertain_effect", prompt, taskId };
  const kind = answer === "any" ? "question" : "approval";
  const { tool, input, folder, lastingRule, rule, takesInput } = fields;
  const isEditable = takesInput === true && typeof input === "object" && !Array.isArray(input);
  const askedBy = ruleOf(rule);
  if (typeof tool !== "string") return { kind, prompt, ...(details === undefined ? {} : { details }) };
  const where = typeof folder === "string" ? folder : undefined;
  const { change, others, verb, subject, isPath } = viewCall(tool, input, where);
  const [, named] = /^Allow [^:]+: (.*)\?$/s.exec(prompt) ?? [];
  // The question names a path from the folder of the call.
  const isNamed = (value: unknown): boolean =>
    named !== undefined && (value === named || (where !== undefined && value === `${where}/${named}`));
  const unsaid = Object.entries(others ?? {}).filter(([, value]) => !isNamed(value));
  return {
    kind,
    prompt,
    tool,
    work: { verb, subject, ...(isPath && { isPath }) },
    action: actionOf(input),
    ...(isEditable ? { editable: fieldsOf(input) } : {}),
    ...(change === undefined ? {} : { change }),
    ...(others === undefined ? {} : { beside: actionOf(Object.fromEntries(unsaid)) }),
    ...(typeof folder === "string" ? { folder } : {}),
    ...(typeof lastingRule === "string" ? { lastingRule } : {}),
    ...(askedBy === undefined ? {} : { askedBy }),
  };
}

/** The restriction of an agent that asked, as its file would write it. */
function ruleOf(value: unknown): string | undefined {
  const { decision, tool, pattern } = fieldsOf(value);
  if (typeof tool !== "string" || (decision !== "ask" && decision !== "deny")) return undefined;
  const rule = `${decision} ${typeof pattern === "string" ? `${tool}(${pattern})` : tool}`;
  return decision === "ask" ? rule : `${rule}, which the call may break`;
}

/** The words by which the kernel asks about an effect that happens once (`core/kernel/uncertain-effects.ts`). */
const UNCERTAIN = "its effect may have happened";

/** A command as it is; other arguments by their names, in the form of YAML. */
function actionOf(input: unknown): string {
  if (typeof input === "string") return input;
  if (typeof input !== "object" || input === null || Array.isArray(input))
    return JSON.stringify(input, null, 2) ?? "";
  const { command, ...others } = fieldsOf(input);
  if (typeof command === "string" && Object.keys(others).length === 0) return command;
  return Object.entries(input)
    .map(([name, value]) => argumentText(name, value))
    .join("\n");
}

/** The text keeps each character: `|` ends with a line end, `|-` with none, `|+` with several. */
function argumentText(name: string, value: unknown): string {
  const key = /^[\w.-]+$/.test(name) ? name : JSON.stringify(name);
  if (typeof value !== "string" || !value.includes("\n"))
    return `${key}: ${typeof value === "string" && isPlain(value) ? value : JSON.stringify(value)}`;
  const sign = value.endsWith("\n\n") ? "|+" : value.endsWith("\n") ? "|" : "|-";
  const lines = (sign === "|-" ? value : value.slice(0, -1)).split("\n");
  return [`${key}: ${sign}`, ...lines.map((line) => `  ${line}`)].join("\n");
}

/** Whether nobody takes the text for a number, a list or the beginning of something else. */
function isPlain(text: string): boolean {
  if (text !== text.trim() || /^(["'|>[{&*!%@`#-]|$)/.test(text)) return false;
  try {
    JSON.parse(text);
    return false;
  } catch {
    return true;
  }
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}

/** An answer for people. Anything but yes or no is JSON. */
export function answerText(answer: unknown): string {
  const { approved, reason, remember, input, ...others } = fieldsOf(answer);
  const { scope } = fieldsOf(remember);
  if (typeof approved !== "boolean" || input !== undefined || Object.keys(others).length > 0)
    return JSON.stringify(answer) ?? "";
  const lasting = typeof scope === "string" ? ` (for this ${scope})` : "";
  return `${approved ? "yes" : "no"}${lasting}${typeof reason === "string" ? `: ${reason}` : ""}`;
}

/**
 * The command lines after `holdfast` that answer a question. Each names the question, and so the exact call
 * that a person has read. It never answers a later question in its place.
 */
export function answerLines(
  sessionId: string,
  question: { readonly id: number; readonly life?: number; readonly answer?: AnswerKind },
): readonly string[] {
  const target = `${sessionId} ${questionNumber(question)}`;
  const answer = `answer ${target} JSON`;
  switch (question.answer) {
    case "any":
      return [answer];
    case "approval":
      return [`approve ${target}`, `approve ${target} --no`];
    case undefined:
      return [`approve ${target}`, answer];
  }
}

const PROMPT_CHARS = 200;

/** A question in the list of those that are open. */
export interface ListedQuestion {
  readonly id: number;
  readonly life?: number;
  readonly answer?: AnswerKind;
  readonly prompt: string;
}

/**
 * The refusal of an answer that names none of several open questions. The person has read one of them, and
 * the answer does not say which.
 *
 * @param command the whole of a command line, from the words after `holdfast`.
 */
export function unnamedAnswer(
  sessionId: string,
  questions: readonly ListedQuestion[],
  command: (line: string) => string = (line) => `holdfast ${line}`,
): { readonly message: string; readonly expected: string; readonly fix: string } {
  const lines = questions.map(
    (one) =>
      `${questionNumber(one)}: ${visibleText(one.prompt).replaceAll("\n", " ").slice(0, PROMPT_CHARS)}`,
  );
  const commands = questions.flatMap((one) => answerLines(sessionId, one).slice(0, 1));
  return {
    message: `session ${sessionId} has ${questions.length} open questions, and the answer names none of them`,
    expected: `the number of one:\n${lines.join("\n")}`,
    fix: commands.map((line) => command(line)).join(" or "),
  };
}

/**
 * The number by which a command names a question: its position in the journal. Each incarnation of a session
 * that keeps no journal counts from the beginning, so the number of the incarnation follows there.
 */
export function questionNumber({ id, life }: { readonly id: number; readonly life?: number }): string {
  return life === undefined ? String(id) : `${id}.${life}`;
}
