// `serverTexts`, `variablesOfServer`: the texts of an MCP server's settings that may have placeholders, and the variables that these name.

import type { McpServer } from "../agent-files/agent-record.ts";
import { variablesIn } from "./placeholders.ts";

export function serverTexts(server: McpServer): readonly string[] {
  return server.type === "http"
    ? [server.url, ...Object.values(server.headers)]
    : [server.command, ...server.args, ...Object.values(server.env)];
}

export function variablesOfServer(server: McpServer): readonly string[] {
  return variablesIn(serverTexts(server));
}
