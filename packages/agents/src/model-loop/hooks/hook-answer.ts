// `readAnswer`: the decision of a hook, from the exit code and the output of its program or the output of its agent. Pure.
//
//   hook-answer-1. An answer never permits more: what is no `block` lets the usual rules decide.

import type { AgentHook } from "../../agent-files/agent-record.ts";

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
/** Longer texts of hooks are cut. */
const TEXT_CHARS_MAX = 8_000;

const CONTINUE: HookAnswer = { action: "continue", reason: "", context: "" };

export function readAnswer(hook: AgentHook, { exitCode, stdout, stderr, ended }: HookEnd): HookAnswer {
  if (exitCode === BLOCK)
    return {
      ...CONTINUE,
      action: "block",
      reason: cut(stderr.trim() || stdout.trim() || "it gave no reason"),
    };
  if (exitCode !== 0) return failed(hook, `${ended}${stderr.trim() === "" ? "" : `: ${stderr.trim()}`}`);
  const text = stdout.trim();
  if (!text.startsWith("{")) {
    // Claude Code adds the text of these hooks to the conversation.
    const isContext = hook.point === "on_run_start" && hook.claudeEvent !== null;
    return isContext ? { ...CONTINUE, context: cut(text) } : CONTINUE;
  }
  try {
    return answerOf(hook, JSON.parse(text) as Record<string, unknown>);
  } catch {
    return failed(hook, "its output is no JSON");
  }
}

/** The answer of an agent: an object, or a text with one. */
export function readOutput(hook: AgentHook, output: unknown): HookAnswer {
  if (typeof output === "string")
    return readAnswer(hook, { exitCode: 0, stdout: output, stderr: "", ended: "" });
  return typeof output === "object" && output !== null
    ? answerOf(hook, output as Record<string, unknown>)
    : failed(hook, "its output is no object");
}

/** A hook that gave no answer. */
export function failed({ onError }: AgentHook, why: string): HookAnswer {
  const failure = cut(why);
  return onError === "block"
    ? { ...CONTINUE, action: "block", reason: cut(`the hook failed: ${why}`), failure }
    : { ...CONTINUE, failure };
}

function answerOf(hook: AgentHook, given: Readonly<Record<string, unknown>>): HookAnswer {
  const own = (given["hookSpecificOutput"] ?? {}) as Readonly<Record<string, unknown>>;
  const decision = given["action"] ?? own["permissionDecision"] ?? given["decision"];
  const reason = textOf(
    given["reason"] ?? given["block_reason"] ?? own["permissionDecisionReason"] ?? given["stopReason"],
  );
  const context = textOf(given["context"] ?? own["additionalContext"]);
  if (decision === "block" || decision === "deny" || given["continue"] === false)
    return { action: "block", reason: reason || "it gave no reason", context };
  const changed = own["updatedInput"];
  if (changed !== undefined)
    return {
      action: "block",
      reason: cut(
        `make the call with this input instead: ${JSON.stringify(changed)}${reason === "" ? "" : ` (${reason})`}`,
      ),
      context,
    };
  if (decision === "ask") return { action: "ask", reason, context };
  if (![undefined, "continue", "allow", "approve"].includes(decision as string | undefined))
    return failed(hook, `it answered ${JSON.stringify(decision)}`);
  const input = given["input"] ?? given["parameters"];
  return { action: "continue", reason, context, ...(input === undefined ? {} : { input }) };
}

function textOf(value: unknown): string {
  return cut(
    value === undefined || value === null ? "" : typeof value === "string" ? value : JSON.stringify(value),
  );
}

function cut(text: string): string {
  return text.length <= TEXT_CHARS_MAX ? text : `${text.slice(0, TEXT_CHARS_MAX)} …`;
}
