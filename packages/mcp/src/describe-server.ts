// `describeServer`: starts or reaches one MCP server outside of any session of Holdfast, for
// `holdfast mcp list --check`. It returns the enabled tools of the server, or why it failed. The caller
// closes it.

import { toError } from "@holdfast/core";

import type { McpServers, SessionServer } from "./mcp-servers.ts";
import { readTools, type McpToolFact } from "./protocol/server-tools.ts";

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
  wanted: Omit<SessionServer, "sessionId">,
): Promise<DescribedServer> {
  try {
    return await servers.with({ ...wanted, sessionId: `check-${process.pid}` }, async ({ connection }) => ({
      status: "reached",
      version: connection.version,
      ...readTools(wanted.name, await connection.tools(), wanted.server.enabledTools),
    }));
  } catch (error) {
    return { status: "failed", reason: toError(error).message };
  }
}
