// `readAnswer`: the decision of a hook, from the exit code and the output of its program or the output of its
// agent. Pure.
//
//   - An answer never permits more: what is no `block` lets the usual rules decide.
//   - A guard fails closed: an output that is not exactly one answer is a failure and never `continue`. No
//     output means `continue`. A guard of Claude Code may write plain text, as there. An output of it that
//     looks like an answer and is none blocks.

import { defined } from "@holdfast/core";
import { parseDocument } from "yaml";
import { z } from "zod";
import type { AgentHook } from "../../record/agent-record.ts";

/** The end of a hook's program. */
export interface HookEnd {
  /** `null` for a program that ended without one. */
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** How it ended, for people: `exit 1`, `ended after 60000 ms`. */
  readonly ended: string;
  /** The failure of a hook that gave no answer, for people. */
  readonly failure?: { readonly reason: string; readonly onError: AgentHook["onError"] };
}

export interface HookAnswer {
  readonly action: "continue" | "block" | "ask";
  readonly reason: string;
  /** The input in the place of the given one, for a hook at the start of a run. */
  readonly input?: unknown;
  /** A text for the model. */
  readonly context: string;
  /** Why the hook gave no answer. */
  readonly failure?: string;
}

/** The exit code that blocks, as in Claude Code. */
const BLOCK = 2;
/** POSIX. The shell found no such program, or may not run it. A guard that did not run has permitted nothing. */
const NOT_RUN: ReadonlySet<number | null> = new Set([126, 127]);
/** Longer texts of hooks are cut. */
const TEXT_CHARS_MAX = 8_000;

/** A field by which an answer decides. */
const DECIDING = /"(?:action|decision|permissionDecision|continue|hookSpecificOutput)"\s*:/;

const words = z.string().nullish();
const fields = {
  action: z.enum(["continue", "allow", "approve", "ask"]).optional(),
  decision: z.enum(["continue", "allow", "approve", "ask"]).nullish(),
  reason: words,
  block_reason: words,
  context: words,
  input: z.unknown().optional(),
  parameters: z.unknown().optional(),
  continue: z.literal(true).optional(),
  stopReason: words,
  systemMessage: words,
  suppressOutput: z.boolean().optional(),
};
const specific = {
  hookEventName: words,
  permissionDecision: z.enum(["allow", "ask"]).optional(),
  permissionDecisionReason: words,
  additionalContext: words,
  updatedInput: z.unknown().optional(),
};
/** The answers that do not block. */
const ownAnswer = z.strictObject({ ...fields, hookSpecificOutput: z.strictObject(specific).optional() });
const claudeAnswer = z.looseObject({ ...fields, hookSpecificOutput: z.looseObject(specific).optional() });

const CONTINUE: HookAnswer = { action: "continue", reason: "", context: "" };

export function readAnswer(hook: AgentHook, { exitCode, stdout, stderr, ended }: HookEnd): HookAnswer {
  if (exitCode === BLOCK)
    return {
      ...CONTINUE,
      action: "block",
      reason: cut(stderr.trim() || stdout.trim() || "it gave no reason"),
    };
  if (exitCode !== 0) {
    const onError = isGuard(hook) && NOT_RUN.has(exitCode) ? "block" : hook.onError;
    return failed({ ...hook, onError }, `${ended}${stderr.trim() === "" ? "" : `: ${stderr.trim()}`}`);
  }
  const text = stdout.trim();
  if (text === "" || hook.point === "on_run_finish") return CONTINUE;
  if (hook.claudeEvent !== null && !looksLikeAnswer(hook, text))
    // Claude Code adds the text of these hooks to the conversation.
    return hook.point === "on_run_start" ? { ...CONTINUE, context: cut(text) } : CONTINUE;
  return answerIn(hook, text);
}

/** The answer of an agent: an object, or a text that is one. */
export function readOutput(hook: AgentHook, output: unknown): HookAnswer {
  if (hook.point === "on_run_finish") return CONTINUE;
  return typeof output === "string" ? answerIn(hook, output.trim()) : answerOf(hook, output);
}

/** A hook that gave no answer. */
export function failed({ onError }: AgentHook, why: string): HookAnswer {
  const failure = cut(why);
  return onError === "block"
    ? { ...CONTINUE, action: "block", reason: cut(`the hook failed: ${why}`), failure }
    : { ...CONTINUE, failure };
}

/** Claude Code takes every other text as plain. */
function looksLikeAnswer(hook: AgentHook, text: string): boolean {
  if (!isGuard(hook)) return text.startsWith("{");
  return /^\[?\s*\{/.test(text) || DECIDING.test(text);
}

/** Whether the answer may forbid something. */
export function isGuard({ point, claudeEvent }: Pick<AgentHook, "point" | "claudeEvent">): boolean {
  return (point === "before_tool" || point === "on_run_start") && claudeEvent !== "SessionStart";
}

function answerIn(hook: AgentHook, text: string): HookAnswer {
  try {
    const value = JSON.parse(text) as unknown;
    return hasFieldTwice(text) ? noAnswer(hook, "its output has a field twice") : answerOf(hook, value);
  } catch {
    return noAnswer(hook, "its output is no JSON");
  }
}

/** `JSON.parse` takes the last of two fields with one name, and the first may be the block. */
function hasFieldTwice(text: string): boolean {
  return parseDocument(text, { uniqueKeys: true }).errors.some(({ code }) => code === "DUPLICATE_KEY");
}

/** A guard of Claude Code has no `on_error`, and one that answers must be understood. */
function noAnswer(hook: AgentHook, why: string): HookAnswer {
  const onError = hook.claudeEvent !== null && isGuard(hook) ? "block" : hook.onError;
  return failed(
    { ...hook, onError },
    `${why}; it must write one answer such as {"action":"continue"} and nothing beside it, or nothing at all`,
  );
}

function answerOf(hook: AgentHook, value: unknown): HookAnswer {
  if (!isObject(value)) return noAnswer(hook, "its output is no object");
  const own = isObject(value["hookSpecificOutput"]) ? value["hookSpecificOutput"] : {};
  const decisions = [value["action"], own["permissionDecision"], value["decision"]];
  const reason = textOf(
    value["reason"] ?? value["block_reason"] ?? own["permissionDecisionReason"] ?? value["stopReason"],
  );
  const context = textOf(value["context"] ?? own["additionalContext"]);
  if (decisions.some((one) => one === "block" || one === "deny") || value["continue"] === false)
    return { action: "block", reason: reason || "it gave no reason", context };
  const problem = problemOf(hook, value);
  if (problem !== undefined) return noAnswer(hook, problem);
  const changed = own["updatedInput"];
  if (changed !== undefined)
    return {
      action: "block",
      reason: cut(
        `make the call with this input instead: ${JSON.stringify(changed)}${reason === "" ? "" : ` (${reason})`}`,
      ),
      context,
    };
  if (decisions.includes("ask")) return { action: "ask", reason, context };
  const input = value["input"] ?? value["parameters"];
  return { action: "continue", reason, context, ...defined({ input }) };
}

/**
 * Why an object is not exactly an answer of its point. Programs for Claude Code may write fields that
 * Holdfast does not know.
 */
function problemOf(hook: AgentHook, value: Readonly<Record<string, unknown>>): string | undefined {
  const isOwn = hook.claudeEvent === null;
  const [issue] = (isOwn ? ownAnswer : claudeAnswer).safeParse(value).error?.issues ?? [];
  if (issue !== undefined) {
    const given = issue.path.reduce<unknown>(
      (at, key) => (isObject(at) ? at[String(key)] : undefined),
      value,
    );
    if (issue.code === "invalid_value") return `it answered ${JSON.stringify(given)}`;
    return `${["its output", ...issue.path].join(".")}: ${issue.message}`;
  }
  const { point } = hook;
  const asks = [value["action"], value["decision"]].includes("ask");
  if (asks && point !== "before_tool") return `it answered "ask", which is for before_tool`;
  if (!isOwn) return undefined;
  if (Object.keys(value).length === 0) return "its output is an object without an answer";
  const changes = value["input"] !== undefined || value["parameters"] !== undefined;
  if (changes && point !== "on_run_start") return "its output has an input, which is for on_run_start";
  return value["context"] !== undefined && point === "before_tool"
    ? "its output has a context, which before_tool does not take"
    : undefined;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function textOf(value: unknown): string {
  return cut(
    value === undefined || value === null ? "" : typeof value === "string" ? value : JSON.stringify(value),
  );
}

function cut(text: string): string {
  return text.length <= TEXT_CHARS_MAX ? text : `${text.slice(0, TEXT_CHARS_MAX)} …`;
}
