// The calls of Claude Code's tools in the words of our permission rules (`claudeCall`). Pure.

import { CLAUDE_TOOLS, ruledPath } from "@holdfast/agents";
import type { PermissionRequest, RuledCall } from "../../session/external-agent-protocol.ts";

/** The input fields that hold the main argument, the first one that is there counts. */
const PATHS = ["file_path", "notebook_path", "path"];
const TEXTS = ["url", "query", "pattern", "skill"];

export function claudeCall(
  { tool, input }: Pick<PermissionRequest, "tool" | "input">,
  folder: string,
): RuledCall {
  const name = CLAUDE_TOOLS[tool]?.[0] ?? tool;
  const command = input["command"];
  // No rule for commands permits one that leaves the program's own sandbox.
  if (input["dangerouslyDisableSandbox"] === true)
    return { tool: "shell_without_sandbox", subjectKind: "text", subject: null };
  if (name === "shell" && typeof command === "string")
    return { tool: name, subjectKind: "command", subject: command };
  const path = firstText(input, PATHS);
  if (path !== undefined) return { tool: name, subjectKind: "path", subject: ruledPath(path, folder) };
  return { tool: name, subjectKind: "text", subject: firstText(input, TEXTS) ?? null };
}

function firstText(input: PermissionRequest["input"], fields: readonly string[]): string | undefined {
  return fields.map((field) => input[field]).find((value) => typeof value === "string");
}
