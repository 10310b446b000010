// `Hooks`: runs the hooks of an agent at their points, in the order of its file.
//
//   - A hook only restricts: it blocks, asks, adds a text, or changes the input of a run. The rules of
//     permissions hold as without it.
//   - The first hook that blocks decides, and the later ones do not run.
//   - Each call of a hook is a task or a child of the session, so a replay takes its recorded answer.

import { defined, HoldfastError, type Json } from "@holdfast/core";
import { local } from "@holdfast/runtime";

import type { AgentHook, AgentRecord, HookPoint } from "../../record/agent-record.ts";
import { claudeNames } from "../../record/tool-names.ts";
import { matchesName } from "../../record/tool-names.ts";
import { subjectsOf } from "../../permissions/ask-permission.ts";
import { decide, toolsLike, type PermissionTool } from "../../permissions/permissions.ts";
import type { TurnDraft } from "../turn/turn-draft.ts";
import { addressOf } from "../workspace-facts.ts";
import { failed, readAnswer, readOutput, type HookAnswer } from "./hook-answer.ts";

/** The event of a tool call, for the hooks that see it. */
export interface HookedCall {
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
  readonly tool: PermissionTool;
  /** The main argument, `null` for a call that has none. */
  readonly subject: string | null;
}

export class Hooks {
  readonly #draft: TurnDraft;
  readonly #agent: AgentRecord;

  constructor(draft: TurnDraft, agent: AgentRecord) {
    this.#draft = draft;
    this.#agent = agent;
  }

  /** Before a request is worked on. @returns the request, perhaps changed, or why it is blocked. */
  async onRunStart(request: Json): Promise<{ readonly request: Json } | { readonly blocked: string }> {
    let current = request;
    const contexts: string[] = [];
    for (const hook of this.#at("on_run_start")) {
      const answer = await this.#call(hook, { input: current, prompt: textOf(current) });
      if (answer.action === "block") return { blocked: `Blocked by on_run_start hook: ${answer.reason}` };
      if (answer.input !== undefined) current = answer.input as Json;
      if (answer.context !== "") contexts.push(answer.context);
    }
    return { request: contexts.length === 0 ? current : [textOf(current), ...contexts].join("\n\n") };
  }

  /** After the answer to a request. Nothing that a hook says changes the answer. */
  async onRunFinish(output: Json): Promise<void> {
    for (const hook of this.#at("on_run_finish")) await this.#call(hook, { output });
  }

  /** Before a call of a tool asks for permission. */
  async beforeTool(call: HookedCall): Promise<Pick<HookAnswer, "action" | "reason">> {
    let action: HookAnswer["action"] = "continue";
    for (const hook of this.#at("before_tool", call.name)) {
      if (!(await this.#sees(hook, call))) continue;
      const answer = await this.#call(hook, eventOf(hook, call));
      if (answer.action === "block") return answer;
      if (answer.action === "ask") action = "ask";
    }
    return { action, reason: "" };
  }

  /** After a call of a tool. @returns texts for the model. */
  async afterTool(
    call: HookedCall,
    result: { readonly text: string; readonly isError: boolean },
  ): Promise<readonly string[]> {
    const texts: string[] = [];
    for (const hook of this.#at("after_tool", call.name)) {
      if (!(await this.#sees(hook, call))) continue;
      const { text, isError } = result;
      const event = { ...eventOf(hook, call), tool_result: text, tool_response: { text, isError } };
      const { action, reason, context } = await this.#call(hook, event);
      if (action === "block") texts.push(`A hook says of this call: ${reason}`);
      if (context !== "") texts.push(context);
    }
    return texts;
  }

  #at(point: HookPoint, tool?: string): readonly AgentHook[] {
    return this.#agent.hooks.filter(
      (hook) =>
        hook.point === point &&
        (tool === undefined ||
          hook.tools === null ||
          hook.tools.some((pattern) => matchesName(pattern, tool))),
    );
  }

  /** Whether a call matches the condition of a hook, or may match it. */
  async #sees({ only }: AgentHook, { tool, subject }: HookedCall): Promise<boolean> {
    if (only === undefined) return true;
    const { name } = tool.offered;
    const rules = only
      .filter(
        (rule) =>
          matchesName(rule.tool, name) ||
          (tool.subjectKind === "path" && toolsLike(rule.tool).includes(name)),
      )
      .map((rule) => ({ ...rule, decision: "deny" as const }));
    const { ctx, state } = this.#draft;
    const agent = { permissions: rules };
    const subjects = await subjectsOf(ctx, {
      agent,
      tool,
      subject,
      folder: state.workspace?.root,
      rules: () => [],
    });
    // Without a rule that matches, a tool that only reads is allowed.
    const reading = { ...tool, isReading: true };
    return subjects.some((one) => decide(rules, reading, one).decision !== "allow");
  }

  async #call(hook: AgentHook, said: Readonly<Record<string, unknown>>): Promise<HookAnswer> {
    const { ctx, parts, state } = this.#draft;
    const event = {
      hook: hook.point,
      ...(hook.claudeEvent === null ? {} : { hook_event_name: hook.claudeEvent }),
      session_id: ctx.sessionId,
      agent: this.#agent.name,
      cwd: state.workspace?.root ?? ".",
      ...said,
    };
    try {
      if (hook.run.type === "agent") {
        const child = ctx.spawnAgent(local(hook.run.name), event);
        return readOutput(hook, await ctx.waitForChild(child, { timeoutMs: hook.timeoutMs }));
      }
      const input = { hook, event, workspace: addressOf(state.workspace) };
      return readAnswer(hook, await ctx.scheduleTask(parts.hook, input));
    } catch (error) {
      if (!HoldfastError.is(error) || !GIVEN_UP.includes(error.code)) throw error;
      const cause = error.cause as Error | undefined;
      return failed(hook, cause?.message ?? error.message);
    }
  }
}

/** Errors of a hook. Everything else, such as a cancel, concerns the session. */
const GIVEN_UP: readonly string[] = ["task_failed", "task_timeout", "child_failed", "wait_timed_out"];

/** Programs for Claude Code read its names of tools and paths. */
function eventOf(
  { claudeEvent }: AgentHook,
  { id, name, input }: HookedCall,
): Readonly<Record<string, unknown>> {
  if (claudeEvent === null) return { tool_call_id: id, tool: name, tool_input: input };
  const { path, oldText, newText } = (input ?? {}) as Readonly<Record<string, unknown>>;
  const named = defined({ file_path: path, old_string: oldText, new_string: newText });
  const tool_input = typeof input === "object" && input !== null ? { ...input, ...named } : input;
  return { tool_use_id: id, tool_name: claudeNames(name)[0] ?? name, tool_input };
}

function textOf(input: unknown): string {
  if (typeof input === "string") return input;
  const { text, prompt } = (input ?? {}) as { readonly text?: unknown; readonly prompt?: unknown };
  if (typeof text === "string") return text;
  return typeof prompt === "string" ? prompt : JSON.stringify(input ?? "", null, 2);
}
