// The dialect of Gemini CLI (`.gemini/agents/*.md`).

import { MINUTE_MS } from "@holdfast/core";
import { z } from "zod";
import { field, HONOURED, ignored, mapped, refused } from "../../format/fields.ts";
import { mcpServerValue, takeServers } from "../../format/mcp-servers.ts";
import type { ToolNames } from "../../record/tool-names.ts";
import { offerTools } from "../../format/tool-rules.ts";
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

export const GEMINI_TOOLS: ToolNames = {
  read_file: ["read_file"],
  read_many_files: ["read_file"],
  list_directory: ["list_files"],
  glob: ["list_files"],
  grep_search: ["search"],
  search_file_content: ["search"],
  run_shell_command: ["shell"],
  write_file: ["write_file"],
  replace: ["edit_file"],
  web_fetch: ["web_fetch"],
  write_todos: ["todo"],
  ask_user: ["ask_user"],
  activate_skill: ["read_skill"],
  google_web_search: null,
  save_memory: null,
  get_internal_docs: null,
  enter_plan_mode: null,
  exit_plan_mode: null,
};

export const gemini: Dialect = {
  name: "gemini",
  promptField: null,
  table: {
    restricting: ["tools", "max_turns", "timeout_mins", "kind", "holdfast"],
    owner: "of Gemini CLI",
    rules: {
      name: nameRule,
      description: descriptionRule,
      display_name: unused(DISPLAY_ONLY),
      kind: field(z.enum(["local", "remote"]).describe("local or remote"), (value) =>
        value === "local"
          ? HONOURED
          : refused(
              "an agent of another server (A2A) has no file; write a profile with a2a for it (~/.holdfast/profiles/NAME.yaml)",
            ),
      ),
      agent_card_url: unused("only an agent of the kind remote has one"),
      tools: field(
        z.array(z.string()).describe("the tools that the agent gets; without it all"),
        (value, draft) => offerTools(value.map(serverTools), GEMINI_TOOLS, draft),
      ),
      mcpServers: field(
        z.record(z.string(), mcpServerValue).describe("MCP servers by name"),
        (value, draft, report) => takeServers(Object.entries(value), "mcpServers", draft, report),
      ),
      model: modelRule,
      temperature: unused(MODEL_TUNING),
      max_turns: turnsRule,
      timeout_mins: field(z.number().positive().max(100_000).describe("minutes"), (value, draft) => {
        draft.ttlMs = Math.round(value * MINUTE_MS);
        return mapped(`holdfast.ttl: ${value}m`);
      }),
      hooks: field(z.record(z.string(), z.unknown()), (value) =>
        Object.keys(value).some((event) => event.startsWith("Before"))
          ? refused(
              "Holdfast does not run hooks of Gemini CLI, and a hook that runs before a call may be there to forbid it; write it under holdfast.hooks",
            )
          : ignored("Holdfast does not run hooks of Gemini CLI; write them under holdfast.hooks"),
      ),
      holdfast: holdfastKey,
    },
  },
};

/** `mcp_*` and `mcp_SERVER_*` in Holdfast's spelling. */
function serverTools(name: string): string {
  if (name === "mcp_*") return "mcp__*";
  const server = /^mcp_([^_]+)_\*$/.exec(name)?.[1];
  return server === undefined ? name : `mcp__${server}__*`;
}
