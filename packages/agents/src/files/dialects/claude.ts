// The dialects of Claude Code (`.claude/agents/*.md`) and of Holdfast (`.holdfast/agents/*.md`), which adds
// names of its own tools and is otherwise the same.

import { z } from "zod";
import { addRule } from "../../format/agent-draft.ts";
import { field, HONOURED, mapped, refused, type FieldRule } from "../../format/fields.ts";
import { claudeHooks } from "../../hooks/claude-hooks.ts";
import { mcpServerValue, takeServers } from "../../format/mcp-servers.ts";
import { CLAUDE_TOOLS, type ToolNames } from "../../record/tool-names.ts";
import { offerTools, ruleTools, toolTexts } from "../../format/tool-rules.ts";
import {
  descriptionRule,
  DISPLAY_ONLY,
  denyChanges,
  MODEL_TUNING,
  modelRule,
  nameRule,
  textOrTexts,
  turnsRule,
  unused,
  type Dialect,
  listSkills,
} from "./dialect.ts";
import { ALL_TOOL_NAMES, holdfastKey } from "./holdfast-key.ts";

function rulesWith(names: ToolNames): Readonly<Record<string, FieldRule>> {
  return {
    name: nameRule,
    description: descriptionRule,
    tools: field(
      textOrTexts
        .nullable()
        .describe("the tools that the agent gets: Read, Grep, Bash(git diff:*); without it all"),
      // An empty field could mean all or none, and none permits less.
      (value, draft) => offerTools(toolTexts(value ?? []), names, draft),
    ),
    disallowedTools: field(
      textOrTexts.nullable().describe("tools that the agent does not get"),
      (value, draft) => ruleTools(toolTexts(value ?? []), "deny", names, draft),
    ),
    model: modelRule,
    permissionMode: field(
      z
        .enum(["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"])
        .describe("default, acceptEdits, plan, dontAsk or bypassPermissions"),
      (value, draft) => {
        switch (value) {
          case "default":
            return HONOURED;
          case "acceptEdits":
            addRule(draft, "allow", "write_file");
            addRule(draft, "allow", "edit_file");
            return mapped("write_file and edit_file are allowed");
          case "plan":
            draft.planFirst = true;
            return mapped("only tools that read run until a person has approved a plan");
          case "dontAsk":
            return mapped(denyChanges(draft));
          case "bypassPermissions":
            return refused(
              "it would run every tool without asking; name the calls that may run in holdfast.approvals.allow instead",
            );
        }
      },
    ),
    maxTurns: turnsRule,
    skills: field(textOrTexts.describe("names of skills"), (value, draft) =>
      listSkills(toolTexts(value), draft),
    ),
    mcpServers: field(
      z
        .union([mcpServerValue, z.array(z.union([z.string(), mcpServerValue]))])
        .describe("MCP servers: names of configured ones, or servers by name"),
      (value, draft, report) => takeServers(serversOf(value), "mcpServers", draft, report),
    ),
    hooks: field(mcpServerValue.describe("hooks by event"), (value, draft, report) => {
      draft.hooks = [...draft.hooks, ...claudeHooks(value, ["hooks"], report)];
      return HONOURED;
    }),
    memory: unused("Holdfast has no memory folders; the session itself keeps its conversation"),
    background: unused("the agent that delegates decides whether it waits"),
    isolation: field(z.enum(["worktree"]).describe("worktree"), (_value, draft) => {
      draft.workspace = "worktree";
      return mapped("workspace: worktree");
    }),
    color: unused(DISPLAY_ONLY),
    effort: unused(MODEL_TUNING),
    initialPrompt: unused("a session begins with its input"),
    holdfast: holdfastKey,
  };
}

const RESTRICTING = [
  "tools",
  "disallowedTools",
  "permissionMode",
  "maxTurns",
  "isolation",
  "hooks",
  "holdfast",
];

export const claude: Dialect = {
  name: "claude",
  table: { rules: rulesWith(CLAUDE_TOOLS), restricting: RESTRICTING, owner: "of Claude Code" },
  promptField: null,
};

export const holdfast: Dialect = {
  name: "holdfast",
  table: { rules: rulesWith(ALL_TOOL_NAMES), restricting: RESTRICTING, owner: "of an agent file" },
  promptField: null,
};

/** A list of names and of servers by name, or servers by name alone. */
function serversOf(
  value: Readonly<Record<string, unknown>> | readonly (string | Readonly<Record<string, unknown>>)[],
): (readonly [string, Readonly<Record<string, unknown>> | string])[] {
  const items = Array.isArray(value)
    ? (value as readonly (string | Readonly<Record<string, unknown>>)[])
    : [value as Readonly<Record<string, unknown>>];
  return items.flatMap((item) =>
    typeof item === "string"
      ? [[item, item] as const]
      : Object.entries(item).map(
          ([name, given]) =>
            [name, typeof given === "string" ? given : (given as Readonly<Record<string, unknown>>)] as const,
        ),
  );
}
