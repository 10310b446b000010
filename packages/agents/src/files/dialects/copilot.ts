// The dialect of GitHub Copilot (`.github/agents/*.agent.md`).

import { z } from "zod";
import { denyTools } from "../../format/agent-draft.ts";
import { field, HONOURED, ignored, mapped, refused } from "../../format/fields.ts";
import { mcpServerValue, takeServers } from "../../format/mcp-servers.ts";
import type { ToolName, ToolNames } from "../../record/tool-names.ts";
import { offerTools, toolTexts } from "../../format/tool-rules.ts";
import {
  descriptionRule,
  DISPLAY_ONLY,
  modelRule,
  nameProblem,
  textOrTexts,
  unused,
  type Dialect,
} from "./dialect.ts";
import { holdfastKey } from "./holdfast-key.ts";

/** Copilot compares names of tools without regard to case. */
const COPILOT_TOOLS: ToolNames = {
  ...group(["shell"], ["execute", "shell", "bash", "powershell", "runcommands", "runinterminal"]),
  ...group(["read_file"], ["read", "readfile", "notebookread"]),
  ...group(["edit_file", "write_file"], ["edit", "multiedit", "write", "editfiles"]),
  ...group(["search", "list_files"], ["search", "grep", "glob", "codebase", "filesearch", "textsearch"]),
  ...group(["delegate"], ["agent", "custom-agent", "task", "runsubagent"]),
  ...group(["web_fetch"], ["web", "webfetch", "fetch"]),
  ...group(["todo"], ["todo", "todos", "todowrite"]),
  websearch: null,
  notebookedit: null,
  usages: null,
  problems: null,
  changes: null,
  githubrepo: null,
  testfailure: null,
  vscodeapi: null,
  extensions: null,
  new: null,
  opensimplebrowser: null,
};

export const copilot: Dialect = {
  name: "copilot",
  promptField: null,
  table: {
    restricting: ["tools", "disable-model-invocation", "user-invocable", "holdfast"],
    owner: "of GitHub Copilot",
    rules: {
      name: field(z.string().min(1).max(200), (value, draft) => {
        if (nameProblem(value) === undefined) {
          draft.name = value;
          return HONOURED;
        }
        return ignored(`it is a title; the name is the file's: ${draft.name}`);
      }),
      description: descriptionRule,
      target: unused("it names an environment of Copilot"),
      tools: field(textOrTexts.describe("the tools that the agent gets; without it all"), (value, draft) =>
        offerTools(toolTexts(value).map(copilotTool), COPILOT_TOOLS, draft),
      ),
      agents: field(textOrTexts.describe("names of agents that may be started"), (value, draft) => {
        const names = toolTexts(value);
        draft.agents = names;
        if (names.length === 0) denyTools(draft, ["delegate"]);
        return mapped(names.length === 0 ? "delegate is denied" : "holdfast.agents");
      }),
      model: field(textOrTexts.describe("a model, or models in order"), (value, draft, report) => {
        const [first = "inherit", ...others] = typeof value === "string" ? [value] : value;
        draft.fallbackModels = others;
        return modelRule.read(first as never, draft, report);
      }),
      "mcp-servers": field(
        z.record(z.string(), mcpServerValue).describe("MCP servers by name"),
        (value, draft, report) =>
          takeServers(
            Object.entries(value).map(([name, given]) => [name, withoutStar(given)] as const),
            "mcp-servers",
            draft,
            report,
          ),
      ),
      "argument-hint": unused(DISPLAY_ONLY),
      handoffs: unused("Holdfast has no buttons for a next agent"),
      "user-invocable": unused("a person may start every agent by its name"),
      "disable-model-invocation": field(z.boolean(), (value) =>
        value
          ? refused(
              "no other agent may start it, which Holdfast cannot ensure for a file; leave it out of `agents` of others and remove the field",
            )
          : HONOURED,
      ),
      infer: unused("another agent starts it only if its own `agents` names it"),
      metadata: unused("it is for other programs"),
      holdfast: holdfastKey,
    },
  },
};

function group(tools: readonly ToolName[], names: readonly string[]): ToolNames {
  return Object.fromEntries(names.map((name) => [name, tools]));
}

/** `tools: ["*"]` of a server limits nothing, and another list of names is that of the tools that it offers. */
function withoutStar({
  tools,
  ...given
}: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  if (tools === undefined || (Array.isArray(tools) && tools.includes("*"))) return given;
  // A name with a star would be that of no tool.
  const isPlain =
    Array.isArray(tools) && tools.every((tool) => typeof tool === "string" && !tool.includes("*"));
  return isPlain ? { ...given, enabled_tools: tools } : { ...given, tools };
}

/** `SERVER/TOOL` and `SERVER/*` in Holdfast's spelling; a qualified name of a built-in tool without its group. */
function copilotTool(name: string): string {
  const [, server, tool] = /^([\w.-]+)\/([\w.-]+|\*)$/.exec(name) ?? [];
  if (server === undefined) return name.toLowerCase();
  const isBuiltIn = Object.hasOwn(COPILOT_TOOLS, server.toLowerCase());
  if (isBuiltIn) return (tool === "*" ? server : (tool ?? "")).toLowerCase();
  return `mcp__${server}__${tool}`;
}
