// The dialect of Codex (`.codex/agents/*.toml`).

import { parse, TomlError } from "smol-toml";
import { z } from "zod";
import { denyTools } from "../../format/agent-draft.ts";
import { field, HONOURED, ignored, mapped, refused } from "../../format/fields.ts";
import { FileProblem, readText, type ParsedFile } from "../../format/front-matter.ts";
import { mcpServerValue, takeServers } from "../../format/mcp-servers.ts";
import {
  descriptionRule,
  denyChanges,
  DISPLAY_ONLY,
  MODEL_TUNING,
  modelRule,
  nameRule,
  unused,
  type Dialect,
} from "./dialect.ts";

export const codex: Dialect = {
  name: "codex",
  promptField: "developer_instructions",
  table: {
    restricting: ["sandbox_mode", "sandbox_workspace_write", "approval_policy", "web_search", "tools"],
    owner: "of Codex",
    rules: {
      name: nameRule,
      description: descriptionRule,
      model: modelRule,
      model_reasoning_effort: unused(MODEL_TUNING),
      model_reasoning_summary: unused(MODEL_TUNING),
      model_verbosity: unused(MODEL_TUNING),
      model_provider: field(z.string().min(1), (value, draft) => {
        if (draft.model === null) return ignored("without the field model the configured model is used");
        draft.model = `${value}/${draft.model}`;
        return mapped(`model: ${draft.model}`);
      }),
      nickname_candidates: unused(DISPLAY_ONLY),
      sandbox_mode: field(
        z
          .enum(["read-only", "workspace-write", "danger-full-access"])
          .describe("read-only, workspace-write or danger-full-access"),
        (value, draft) => {
          if (value === "read-only") return mapped(denyChanges(draft));
          if (value === "workspace-write") return mapped("Holdfast asks before each change");
          return refused("it would give every command the rights of the user without asking");
        },
      ),
      sandbox_workspace_write: unused(
        "Holdfast gives no right by it: file tools stay in the workspace, and commands are asked for",
      ),
      approval_policy: unused("Holdfast asks before each call that changes something"),
      web_search: field(
        z.union([z.boolean(), z.string()]).describe("disabled, cached, live, true or false"),
        (value, draft) => {
          if (value !== false && value !== "disabled") return ignored("Holdfast has no web search");
          denyTools(draft, ["web_fetch"]);
          return mapped("web_fetch is denied");
        },
      ),
      mcp_servers: field(
        z.record(z.string(), mcpServerValue).describe("MCP servers by name"),
        (value, draft, report) => takeServers(Object.entries(value), "mcp_servers", draft, report),
      ),
      skills: field(z.record(z.string(), z.unknown()), (value) =>
        Object.keys(value).length === 0
          ? HONOURED
          : ignored("Holdfast lists all skills of the project and the user"),
      ),
    },
  },
};

/** @throws FileProblem */
export function readCodexFile(path: string): ParsedFile {
  const text = readText(path);
  try {
    // Dates become texts; integers that are no safe numbers are refused by the library.
    const { developer_instructions: prompt = "", ...values } = parse(text);
    if (typeof prompt !== "string")
      throw new FileProblem("developer_instructions is not a text", "write it as a text");
    return { values, body: prompt.trim(), lineOf: (names) => lineOf(text, names), repaired: [] };
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const [what = ""] = error.message.replace(/^Invalid TOML document: /, "").split("\n");
    throw new FileProblem(`the file is not TOML: ${what}`, "correct that line", error.line, error.column);
  }
}

/** The line of a top-level field. */
function lineOf(text: string, [name = ""]: readonly string[]): number | null {
  const found = text.split("\n").findIndex((line) => line.replace(/^\s*\[?/, "").startsWith(name));
  return found < 0 ? null : found + 1;
}
