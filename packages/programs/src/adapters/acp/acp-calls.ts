// Calls of tools of the Agent Client Protocol in the words of our permission rules (`acpCall`). Pure.

import type { PermissionRequest, RuledCall } from "../../session/external-agent-protocol.ts";
import { shellCall } from "../lines/named-call.ts";

/** The kinds of calls of the protocol, in the words of our rules. */
const RULED_KINDS: Readonly<Record<string, string>> = {
  execute: "shell",
  edit: "edit_file",
  read: "read_file",
  search: "search",
  fetch: "web_fetch",
};

export function acpCall(
  { tool, input }: Pick<PermissionRequest, "tool" | "input">,
  folder: string,
): RuledCall {
  const path = ["filePath", "file_path", "path"]
    .map((field) => input[field])
    .find((one) => typeof one === "string");
  return shellCall(RULED_KINDS[tool] ?? tool, { command: input["command"], path }, folder);
}
