// Reads lists of tools (`Read, Bash(git diff:*)`) into the tools and the permission rules of a draft.

import { didYouMean } from "@holdfast/core";
import type { PermissionDecision, PermissionRule } from "../record/agent-record.ts";
import { addRule, denyTools, type AgentDraft } from "./agent-draft.ts";
import { HONOURED, mapped, refused, type Ruling } from "./fields.ts";
import type { ToolNames } from "../record/tool-names.ts";
import { commandPattern, hostPattern, pathPattern, type MappedPattern } from "./tool-patterns.ts";

/** One item of a list of tools. */
type ToolItem =
  | { readonly type: "tools"; readonly tools: readonly string[]; readonly pattern: string | null }
  | { readonly type: "not_offered"; readonly text: string }
  | { readonly type: "unknown"; readonly text: string };

const NO_TOOL = "there is no tool";

/**
 * A text with commas or spaces, with or without brackets around it, or a list of texts. Those inside
 * parentheses belong to a pattern.
 */
export function toolTexts(value: string | readonly string[]): readonly string[] {
  const texts = typeof value === "string" ? splitText(value.replace(/^\s*\[([^]*)\]\s*$/, "$1")) : value;
  return texts.map((text) => text.trim()).filter((text) => text !== "");
}

/**
 * A comma or a space before a closing parenthesis does not split, nor does a space before an opening one:
 * `Bash (git diff)` must not become `Bash`. From the end, so that no comma looks for its parenthesis.
 */
function splitText(value: string): readonly string[] {
  const texts: string[] = [];
  let next = "";
  let following = "";
  let end = value.length;
  for (let at = value.length - 1; at >= 0; at -= 1) {
    const char = value.charAt(at);
    if (char === "(" || char === ")") next = char;
    const isSpace = /\s/.test(char);
    const isBetween = char === "," || (isSpace && following !== "(");
    if (!isSpace) following = char;
    if (!isBetween || next === ")") continue;
    texts.push(value.slice(at + 1, end));
    end = at;
  }
  return [...texts, value.slice(0, end)].toReversed();
}

/** `tools`: the agent gets these tools only. */
export function offerTools(texts: readonly string[], names: ToolNames, draft: AgentDraft): Ruling {
  const items = texts.map((text) => readItem(text, names));
  if (items.some((item) => item.type === "tools" && item.tools.includes("*"))) return HONOURED;
  const offered = new Set<string>();
  const limited = new Map<string, string[]>();
  for (const item of items) {
    if (item.type !== "tools") continue;
    for (const tool of item.tools) {
      offered.add(tool);
      if (tool === "delegate") draft.agents = agentsOf(item.pattern, draft.agents);
      else if (item.pattern !== null) limited.set(tool, [...(limited.get(tool) ?? []), item.pattern]);
    }
  }
  // A tool that also stands there without a pattern is not limited.
  for (const item of items)
    if (item.type === "tools" && item.pattern === null) for (const tool of item.tools) limited.delete(tool);
  for (const [tool, patterns] of limited) limitTool(tool, patterns, draft);
  draft.tools = [...offered];
  const unknown = items.flatMap((item) => (item.type === "not_offered" ? [item.text] : []));
  const misspelt = items.flatMap((item) =>
    item.type === "unknown" ? [`; ${NO_TOOL} ${textOf(item, names)}`] : [],
  );
  const shown = draft.tools.map((tool) =>
    limited.has(tool) ? `${tool}(${limited.get(tool)?.join(" | ")})` : tool,
  );
  const none = texts.length === 0 ? "no tool; without the field the agent gets all" : "no tool";
  const list = shown.length === 0 ? none : shown.join(", ");
  const absent = unknown.length === 0 ? "" : `; not available: ${unknown.join(", ")}`;
  return mapped(`${list}${absent}${misspelt.join("")}`);
}

/** `disallowedTools` and `approvals`: rules for calls. A tool that is denied as a whole is not offered. */
export function ruleTools(
  texts: readonly string[],
  decision: PermissionDecision,
  names: ToolNames,
  draft: AgentDraft,
): Ruling {
  const said: string[] = [];
  for (const text of texts) {
    const item = readItem(text, names);
    if (item.type === "unknown") return refused(`${NO_TOOL} ${textOf(item, names)}`);
    if (item.type === "not_offered") said.push(`${item.text} is not available`);
    else for (const tool of item.tools) said.push(ruleTool(tool, item.pattern, decision, draft));
  }
  return said.length === 0 ? HONOURED : mapped(said.join("; "));
}

/**
 * Adds the rules for one tool.
 *
 * @param fit `less` for patterns that match no more than the given one, `more` for patterns that match no
 *   less.
 * @returns the rules in text.
 */
export function ruleTool(
  tool: string,
  pattern: string | null,
  decision: PermissionDecision,
  draft: AgentDraft,
  fit: "less" | "more" = decision === "allow" ? "less" : "more",
): string {
  const given = pattern === null ? tool : `${tool}(${pattern})`;
  if (decision !== "deny" && isLimited(tool, draft)) return ruleWithinLimit(tool, pattern, decision, draft);
  // An `ask` for any call by a pattern goes before each `allow` with one.
  if (pattern === null || (pattern === "*" && decision !== "ask")) {
    if (decision === "deny") denyTools(draft, [tool]);
    else addRule(draft, decision, tool);
    return `${decision} ${tool}`;
  }
  const patterns = mapPattern(tool, pattern, fit === "less");
  // A rule for any call that comes from a pattern still goes before rules without one.
  const ruled = patterns === "whole tool" ? ["*"] : patterns;
  for (const one of ruled) addRule(draft, decision, tool, one);
  return ruled.length === 0
    ? `${given} cannot be mapped, so such calls are not ${decision === "allow" ? "allowed" : "permitted"}`
    : `${decision} ${ruled.map((one) => `${tool}(${one})`).join(", ")}`;
}

/** Whether only calls with certain patterns are not denied. */
function isLimited(tool: string, draft: AgentDraft): boolean {
  return draft.permissions.some(
    (rule) => rule.decision === "deny" && rule.tool === tool && rule.pattern === null,
  );
}

/** Changes the decision about calls within the limit. No rule adds calls to it. */
function ruleWithinLimit(
  tool: string,
  pattern: string | null,
  decision: PermissionDecision,
  draft: AgentDraft,
): string {
  const patterns = pattern === null ? "whole tool" : mapPattern(tool, pattern, true);
  const isRuled = (rule: PermissionRule): boolean =>
    rule.tool === tool &&
    rule.decision !== "deny" &&
    rule.pattern !== null &&
    (patterns === "whole tool" || patterns.includes(rule.pattern));
  const ruled = draft.permissions.filter(isRuled).map((rule) => `${tool}(${rule.pattern})`);
  draft.permissions = draft.permissions.map((rule) => (isRuled(rule) ? { ...rule, decision } : rule));
  return ruled.length === 0
    ? `${tool}(${pattern}) is not among its tools`
    : `${decision} ${ruled.join(", ")}`;
}

/** Calls that match no pattern are denied. Calls that match one are decided as if there were no rule. */
function limitTool(tool: string, patterns: readonly string[], draft: AgentDraft): void {
  const allowed = patterns.map((pattern) => mapPattern(tool, pattern, true));
  if (allowed.includes("whole tool")) return;
  addRule(draft, "deny", tool);
  const decision = /^(read_file|list_files|search)$/.test(tool) ? "allow" : "ask";
  for (const pattern of allowed.flat()) addRule(draft, decision, tool, pattern);
}

function mapPattern(tool: string, pattern: string, isAllow: boolean): MappedPattern {
  if (pattern === "*") return "whole tool";
  switch (tool) {
    case "shell":
      return commandPattern(pattern, isAllow);
    case "web_fetch":
      return hostPattern(pattern, isAllow);
    case "read_file":
    case "list_files":
    case "search":
    case "write_file":
    case "edit_file":
    case "git_diff":
      return pathPattern(pattern, isAllow);
    default:
      return isAllow ? [] : "whole tool";
  }
}

function readItem(text: string, names: ToolNames): ToolItem {
  const [, name = text, pattern = null] = /^([^()]+)\((.*)\)$/s.exec(text) ?? [];
  if (name === "*") return { type: "tools", tools: ["*"], pattern };
  if (/^mcp__[\w.-]+?(__[\w.-]*\*?)?$|^mcp__\*$/.test(name))
    return { type: "tools", tools: [/^mcp__(\*|.+__.+)$/.test(name) ? name : `${name}__*`], pattern };
  if (/^(script__[a-z0-9-]+|task__[\w-]+)\*?$|^(script|task)__\*$/.test(name))
    return { type: "tools", tools: [name], pattern };
  const tools = Object.hasOwn(names, name) ? names[name] : undefined;
  if (tools === null) return { type: "not_offered", text: name };
  return tools === undefined ? { type: "unknown", text: name } : { type: "tools", tools, pattern };
}

function textOf(item: Exclude<ToolItem, { type: "tools" }>, names: ToolNames): string {
  return item.type === "unknown" ? `${item.text}${didYouMean(item.text, Object.keys(names))}` : item.text;
}

/** `Task(a, b)` names the agents that may be started; `Task` alone permits all. */
function agentsOf(pattern: string | null, known: readonly string[]): readonly string[] {
  if (pattern === null) return known.length === 0 ? ["*"] : known;
  return [...new Set([...known, ...toolTexts(pattern)])];
}
