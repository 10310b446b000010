// `readTools`: the tools of an MCP server, as a session keeps them.
//
//   - The facts of one server have limits of number and size. A tool that exceeds one is left out by name.
//   - A hint of the server chooses the effect class. Without a hint a call may happen once only.

import type { EffectClass } from "@holdfast/core";
import type { Tool } from "@modelcontextprotocol/client";

import { MCP_LIMITS } from "./limits.ts";

export type McpToolFact = {
  /** The name that the model reads: `mcp__SERVER__TOOL`. */
  readonly offered: string;
  /** The name that the server knows. */
  readonly tool: string;
  readonly description: string;
  readonly inputSchema: Readonly<Record<string, unknown>>;
  readonly effect: EffectClass;
};

export interface ReadTools {
  readonly tools: readonly McpToolFact[];
  readonly leftOut: readonly string[];
}

/** The longest name of a tool that providers of models accept. */
const NAME_CHARS_MAX = 64;

/** @param enabled the names of the tools to offer, all by default. */
export function readTools(
  server: string,
  listed: readonly Tool[],
  enabled: readonly string[] | undefined,
): ReadTools {
  const tools: McpToolFact[] = [];
  const leftOut: string[] = [];
  let chars = 0;
  for (const { name, description = "", inputSchema, annotations } of listed) {
    if (enabled !== undefined && !enabled.includes(name)) continue;
    const offered = `mcp__${plain(server)}__${plain(name)}`;
    const size = JSON.stringify(inputSchema).length;
    chars += size + Math.min(description.length, MCP_LIMITS.toolDescriptionChars);
    const why = whyLeftOut(offered, size, chars, tools.length);
    if (why !== undefined) {
      if (leftOut.length < 20) leftOut.push(`${name.slice(0, 100)} (${why})`);
      continue;
    }
    const effect =
      annotations?.readOnlyHint === true
        ? "read"
        : annotations?.idempotentHint === true
          ? "repeatable"
          : "once"; // Without a hint a call may happen once only.
    tools.push({
      offered,
      tool: name,
      description: description.slice(0, MCP_LIMITS.toolDescriptionChars),
      inputSchema,
      effect,
    });
  }
  const names = listed.map(({ name }) => name);
  for (const name of enabled ?? [])
    if (!names.includes(name)) leftOut.push(`${name} (the server has no such tool)`);
  return { tools, leftOut };
}

function whyLeftOut(offered: string, size: number, chars: number, count: number): string | undefined {
  if (offered.length > NAME_CHARS_MAX) return `its name has more than ${NAME_CHARS_MAX} characters`;
  if (size > MCP_LIMITS.toolSchemaChars) return "its schema is too large";
  if (count >= MCP_LIMITS.toolsPerServer) return `a server may have ${MCP_LIMITS.toolsPerServer} tools`;
  if (chars > MCP_LIMITS.factsChars) return "the tools of the server are too large together";
  return undefined;
}

/** Providers of models accept no other characters in names. */
function plain(name: string): string {
  return name.replaceAll(/[^\w-]/g, "_");
}
