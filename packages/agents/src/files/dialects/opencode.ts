// The dialect of OpenCode (`.opencode/agents/*.md`).
//
// OpenCode applies the last rule that matches, and Holdfast the strictest. A rule that a later rule for all
// calls overrides is dropped. Each other rule is mapped alone. For a call that several rules match, the
// strictest permits no more than the last.

import { z } from "zod";
import type { PermissionDecision } from "../../record/agent-record.ts";
import { addRule, denyTools, type AgentDraft } from "../../format/agent-draft.ts";
import { field, HONOURED, ignored, mapped, refused, type Ruling } from "../../format/fields.ts";
import { TOOLS, type ToolNames } from "../../record/tool-names.ts";
import { ruleTool } from "../../format/tool-rules.ts";
import {
  descriptionRule,
  DISPLAY_ONLY,
  MODEL_TUNING,
  modelRule,
  nameRule,
  turnsRule,
  unused,
  type Dialect,
} from "./dialect.ts";
import { holdfastKey } from "./holdfast-key.ts";

/** The keys of `permission` and `tools`. */
const OPENCODE_TOOLS: ToolNames = {
  bash: ["shell"],
  read: ["read_file"],
  grep: ["search"],
  glob: ["list_files"],
  list: ["list_files"],
  edit: ["edit_file", "write_file"],
  write: ["write_file"],
  patch: ["edit_file"],
  multiedit: ["edit_file"],
  webfetch: ["web_fetch"],
  task: ["delegate"],
  todowrite: ["todo"],
  todoread: ["todo"],
  question: ["ask_user"],
  skill: ["read_skill"],
  websearch: null,
  codesearch: null,
  lsp: null,
  external_directory: null,
  doom_loop: null,
};

const action = z.enum(["allow", "ask", "deny"]);
export const permission = z
  .union([action, z.record(z.string(), z.union([action, z.record(z.string(), action)]))])
  .describe("allow, ask or deny, or these by tool and by pattern");

export const opencode: Dialect = {
  name: "opencode",
  promptField: null,
  mayLackPrompt: true,
  table: {
    restricting: ["permission", "tools", "steps", "maxSteps", "mode", "disable", "disabled", "holdfast"],
    owner: "of OpenCode",
    rules: {
      name: nameRule,
      description: descriptionRule,
      mode: field(z.enum(["primary", "subagent", "all"]).describe("primary, subagent or all"), (value) =>
        value === "primary" ? ignored("another agent starts it only if its own `agents` names it") : HONOURED,
      ),
      model: modelRule,
      variant: unused(MODEL_TUNING),
      temperature: unused(MODEL_TUNING),
      top_p: unused(MODEL_TUNING),
      reasoningEffort: unused(MODEL_TUNING),
      prompt: field(z.string(), (value, draft) => {
        if (draft.prompt !== "") return refused("there is a prompt below the front matter, too");
        if (value.includes("{file:"))
          return refused("files in a prompt are not read; write the text below the front matter");
        draft.prompt = value;
        return HONOURED;
      }),
      steps: turnsRule,
      maxSteps: turnsRule,
      tools: field(z.record(z.string(), z.boolean()).describe("true or false by tool"), (value, draft) => {
        const denied = Object.entries(value).filter(([, isOffered]) => !isOffered);
        return applyPermission(
          denied.map(([tool]) => [tool, "deny"]),
          draft,
        );
      }),
      permission: field(permission, (value, draft) => applyPermission(permissionEntries(value), draft)),
      disable: field(z.boolean(), rulingOfDisabled),
      disabled: field(z.boolean(), rulingOfDisabled),
      hidden: unused(DISPLAY_ONLY),
      color: unused(DISPLAY_ONLY),
      options: unused(MODEL_TUNING),
      holdfast: holdfastKey,
    },
  },
};

function rulingOfDisabled(value: boolean): Ruling {
  return value ? refused("the agent is switched off") : HONOURED;
}

type Action = z.output<typeof action>;
/** Rules by tool, in their order. A tool may stand there more than once. */
export type Permissions = readonly (readonly [
  tool: string,
  value: Action | Readonly<Record<string, Action>>,
])[];

export function permissionEntries(value: z.output<typeof permission>): Permissions {
  return typeof value === "string" ? [["*", value]] : Object.entries(value);
}

export function applyPermission(permissions: Permissions, draft: AgentDraft): Ruling {
  // The rules for each of Holdfast's tools in their order. A rule for all tools is one for each.
  const rules = new Map<string, (readonly [pattern: string, action: Action])[]>();
  const said: string[] = [];
  for (const [key, value] of permissions) {
    const tools = toolsOf(key);
    if (tools === undefined) return refused(`${key} is no tool of OpenCode, and its rule cannot be mapped`);
    if (tools.length === 0) {
      said.push(key === "external_directory" ? "no tool leaves the workspace" : `${key} is not available`);
      continue;
    }
    for (const tool of tools) {
      // To allow everything is mapped to the default: only tools that read run without asking.
      const given = key === "*" && value === "allow" && !isReading(tool) ? "ask" : value;
      const own = typeof given === "string" ? [["*", given] as const] : Object.entries(given);
      rules.set(tool, [...(rules.get(tool) ?? []), ...own]);
    }
  }
  for (const [tool, own] of rules) said.push(...applyRules(tool, own, draft));
  return mapped(said.join("; ") || "no rule");
}

/** The rules of one tool, of which the last that matches counts. */
function applyRules(tool: string, own: readonly (readonly [string, Action])[], draft: AgentDraft): string[] {
  const last = own.findLastIndex(([pattern]) => pattern === "*");
  const patterned = own.slice(last + 1);
  const base: PermissionDecision | undefined = own[last]?.[1];
  if (tool === "delegate") return applyToAgents(base, patterned, draft);
  // Among rules that permit what is otherwise denied, none may match more than it does. An `ask` there would
  // have to match no less, to go before an `allow`, so both ask.
  const permits = base === "deny";
  const asks = permits && patterned.some(([, decision]) => decision === "ask");
  const said = patterned.map(([pattern, decision]) =>
    decision === "deny"
      ? ruleTool(tool, pattern, decision, draft)
      : ruleTool(tool, pattern, asks ? "ask" : decision, draft, permits ? "less" : undefined),
  );
  if (base === undefined) return said;
  if (base === "deny" && patterned.every(([, decision]) => decision === "deny")) denyTools(draft, [tool]);
  else if (base === "deny" || base === "allow" || !isAskedByDefault(tool)) addRule(draft, base, tool);
  return [`${base} ${tool}`, ...said];
}

const isReading = (tool: string): boolean =>
  /^(read_file|list_files|search|git_diff|todo|ask_user|read_skill)$/.test(tool);
/** A tool of an MCP server may only read, and then runs without asking where there is no rule. */
const isAskedByDefault = (tool: string): boolean => /^(shell|write_file|edit_file)$/.test(tool);

/** Names of agents instead of patterns. */
function applyToAgents(
  base: PermissionDecision | undefined,
  named: readonly (readonly [string, Action])[],
  draft: AgentDraft,
): string[] {
  if (base === undefined && named.length === 0) return [];
  const isNamed = named.every(([pattern, decision]) => !/[*?]/.test(pattern) && decision === "allow");
  if (base === "deny" && named.length > 0 && isNamed) {
    draft.agents = named.map(([name]) => name);
    addRule(draft, "ask", "delegate");
    return [`delegate to ${draft.agents.join(", ")}, after asking`];
  }
  if (base === "deny" || named.some(([, decision]) => decision === "deny")) {
    denyTools(draft, ["delegate"]);
    return ["deny delegate"];
  }
  addRule(draft, "ask", "delegate");
  draft.agents = ["*"];
  return ["ask delegate"];
}

/** @returns no tools for one that Holdfast lacks, `undefined` for a key that cannot be mapped. */
function toolsOf(key: string): readonly string[] | undefined {
  if (key === "*") return [...TOOLS, "mcp__*"];
  if (Object.hasOwn(OPENCODE_TOOLS, key)) return OPENCODE_TOOLS[key] ?? [];
  const server = /^([A-Za-z0-9-]+)_\*$/.exec(key)?.[1];
  return server === undefined ? undefined : [`mcp__${server}__*`];
}
