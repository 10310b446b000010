// `describeServer`: connects to one MCP server without a session, and lists its tools for a person.

import { toError } from "@holdfast/core";

import type { McpServer } from "../agent-files/agent-record.ts";
import type { McpServers } from "../mcp/mcp-servers.ts";
import { readTools, type McpToolFact } from "../mcp/server-tools.ts";

export type DescribedServer =
  | {
      readonly status: "reached";
      /** The version of MCP. */
      readonly version: string;
      readonly tools: readonly McpToolFact[];
      readonly leftOut: readonly string[];
    }
  | { readonly status: "failed"; readonly reason: string };

/** Starts the server, and leaves its end to `servers.close()`. Never rejects. */
export async function describeServer(
  servers: McpServers,
  { name, server, folder }: { readonly name: string; readonly server: McpServer; readonly folder: string },
): Promise<DescribedServer> {
  try {
    return await servers.with(
      { sessionId: `check-${process.pid}`, name, server, folder },
      async ({ connection }) => ({
        status: "reached",
        version: connection.version,
        ...readTools(name, await connection.tools(), server.enabledTools),
      }),
    );
  } catch (error) {
    return { status: "failed", reason: toError(error).message };
  }
}
