// The calls of Claude Code's tools in the words of our permission rules (`claudeCall`). Pure.

import { CLAUDE_TOOLS } from "@holdfast/agents";
import type { PermissionRequest, RuledCall } from "../../session/external-agent-protocol.ts";
import { shellCall } from "../lines/named-call.ts";

/** The input fields that hold the main argument, the first one that is there counts. */
const PATHS = ["file_path", "notebook_path", "path"];
const TEXTS = ["url", "query", "pattern", "skill"];

export function claudeCall(
  { tool, input }: Pick<PermissionRequest, "tool" | "input">,
  folder: string,
): RuledCall {
  const name = CLAUDE_TOOLS[tool]?.[0] ?? tool;
  // No rule for commands permits one that leaves the program's own sandbox.
  if (input["dangerouslyDisableSandbox"] === true)
    return { tool: "shell_without_sandbox", subjectKind: "text", subject: null };
  const call = shellCall(name, { command: input["command"], path: firstText(input, PATHS) }, folder);
  return { ...call, subject: call.subject ?? firstText(input, TEXTS) ?? null };
}

function firstText(input: PermissionRequest["input"], fields: readonly string[]): string | undefined {
  return fields.map((field) => input[field]).find((value) => typeof value === "string");
}
