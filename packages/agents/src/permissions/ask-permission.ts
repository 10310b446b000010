// `askPermission`: decides whether a tool call may run, and asks a person where no rule decides. An answer
// can become a rule.
//
//   - A rule that an answer makes names one tool, and the exact main argument of the call or the pattern that
//     the person gave. The question shows the exact rule before anybody answers. A pattern that cannot be
//     used becomes no rule, and the session's progress says so.
//   - A rule for the project is stored by a task, outside of the project, on the machine where the session
//     runs. If that fails, the rule counts for the session, and its progress says so.
//   - A person may give the call another input where its agent takes one. The call never runs with its own
//     input then.
//   - A question that a hook wants is asked for each call, whatever the rules allow, and its answer counts
//     once. A `deny` still refuses.

import { toError, type Remember } from "@holdfast/core";
import type { AgentContext } from "@holdfast/runtime";

import type { AgentRecord, PermissionRule } from "../record/agent-record.ts";
import {
  decidePlaces,
  exactPattern,
  hasPattern,
  patternProblem,
  type PermissionTool,
} from "./permissions.ts";
import { followLinks, ruledPath } from "./ruled-path.ts";

/** The rules that a user keeps for a project. */
export interface ProjectRules {
  readonly read: () => readonly PermissionRule[];
  /** Does nothing for a rule that is there already. */
  readonly add: (rule: PermissionRule, sessionId: string) => void;
}

export interface AskedCall {
  readonly agent: Pick<AgentRecord, "name" | "permissions">;
  readonly tool: PermissionTool;
  /** The main argument, `null` for a call that has none. */
  readonly subject: string | null;
  readonly input: unknown;
  readonly folder: string | undefined;
  /** The rules that people gave, at the time of the call. */
  readonly rules: () => readonly PermissionRule[];
  readonly keep: (rule: PermissionRule) => void;
  /** A hook wants a person to be asked for this call. */
  readonly isAskedByHook?: boolean;
  readonly projectRules: ProjectRules | undefined;
  /** Takes the input that a person gave in place of that of the call. Without it such an answer refuses the call. */
  readonly takeInput?: (input: Readonly<Record<string, unknown>>) => void;
}

type Context = Pick<AgentContext, "requestInput" | "run" | "reportProgress">;

/** @returns why the call is refused, for the model to read. */
export async function askPermission(ctx: Context, call: AskedCall): Promise<string | undefined> {
  const { agent, tool, subject } = call;
  const { name } = tool.offered;
  const subjects = await subjectsOf(ctx, call);
  const { decision, rule } = decidePlaces(agent.permissions, call.rules(), tool, subjects);
  const isAskedByHook = call.isAskedByHook === true;
  if (decision === "allow" && !isAskedByHook) return undefined;
  const what = subject === null ? name : `${name}: ${subject}`;
  if (decision === "deny") return `Not permitted: ${what}. A rule forbids it.`;
  const pattern = isAskedByHook ? undefined : exactPatternOf(tool, subjects);
  const { approved, reason, remember, input } = await ctx.requestInput({
    prompt: `Allow ${what.slice(0, 200)}?`,
    details: {
      agent: agent.name,
      tool: name,
      input: call.input,
      rule: isAskedByHook ? null : rule,
      folder: call.folder,
      ...(call.takeInput === undefined ? {} : { takesInput: true }),
      ...(pattern === undefined ? {} : { lastingRule: ruleText({ tool: name, pattern }) }),
    },
  });
  if (remember !== undefined && !isAskedByHook) {
    const lasting = lastingRule(name, pattern, remember, approved);
    const problem = lasting?.pattern == null ? undefined : patternProblem(tool, lasting.pattern);
    if (lasting !== undefined && problem !== undefined) {
      ctx.reportProgress({
        warning: `${ruleText(lasting)} is not kept, because its pattern cannot be used: ${problem}. The answer counts once.`,
      });
    } else if (lasting !== undefined) {
      call.keep(lasting);
      const { projectRules } = call;
      if (remember.scope === "project" && projectRules !== undefined)
        await keepForProject(ctx, projectRules, lasting);
    }
  }
  if (approved && input !== undefined) {
    if (call.takeInput === undefined)
      return "The person allowed it with another input, and this agent cannot change the input of a call.";
    call.takeInput(input);
  }
  if (approved) return undefined;
  return `The person did not allow it.${reason === undefined ? "" : ` The reason: ${reason}`}`;
}

/**
 * The subjects that the rules compare: the main argument, and for a path also the place that it leads to
 * (permissions-8). Links are read only where a rule compares paths.
 */
export async function subjectsOf(
  ctx: Pick<Context, "run">,
  {
    agent,
    tool,
    subject,
    folder,
    rules,
  }: Pick<AskedCall, "tool" | "subject" | "folder" | "rules"> & {
    readonly agent: Pick<AgentRecord, "permissions">;
  },
): Promise<readonly (string | null)[]> {
  if (tool.subjectKind !== "path" || subject === null || folder === undefined) return [subject];
  const given = ruledPath(subject, folder);
  if (!hasPattern([...agent.permissions, ...rules()], tool)) return [given];
  return [given, await ctx.run("resolve_path", () => followLinks(subject, folder))];
}

/** @returns nothing for a path that leads to another place: no rule for one of them permits the other. */
function exactPatternOf(
  tool: PermissionTool,
  [given = null, ...others]: readonly (string | null)[],
): string | null | undefined {
  const exact = exactPattern(tool, given);
  return others.every((other) => exactPattern(tool, other) === exact) ? exact : undefined;
}

async function keepForProject(ctx: Context, { add }: ProjectRules, rule: PermissionRule): Promise<void> {
  const problem = await ctx.run("keep_rule", ({ sessionId }) => {
    try {
      add(rule, sessionId);
      return null;
    } catch (error) {
      return toError(error).message;
    }
  });
  if (problem === null) return;
  ctx.reportProgress({ warning: `${ruleText(rule)} is kept for this session alone: ${problem}` });
}

/** @returns nothing for a call that no rule can match. */
function lastingRule(
  tool: string,
  exact: string | null | undefined,
  { pattern: given }: Remember,
  approved: boolean,
): PermissionRule | undefined {
  const pattern = given ?? exact;
  return pattern === undefined ? undefined : { decision: approved ? "allow" : "deny", tool, pattern };
}

/** A rule as an agent file writes it: `shell(git diff:*)`. */
export function ruleText({ tool, pattern }: Pick<PermissionRule, "tool" | "pattern">): string {
  return pattern === null ? tool : `${tool}(${pattern})`;
}
