// `serverTexts`: the texts of an MCP server's settings that may have placeholders, the variables and fields
// of the input that these name, and their problems.

import type { JsonSchema } from "@holdfast/core";

import type { McpReference, McpServer } from "./mcp-server.ts";
import { paramsIn, placeholderProblem, variablesIn, type InputFields } from "./placeholders.ts";

/** A text of the settings, with its place in them, such as `headers.Authorization`. */
type PlacedText = readonly [place: string, text: string];

/** An agent, as far as placeholders name fields of its input. `null`: the input is a text. */
interface WithInput {
  readonly inputSchema: JsonSchema | null;
}

export function serverTexts(server: McpServer | McpReference): readonly PlacedText[] {
  const named = (field: string, texts: Readonly<Record<string, string>>): PlacedText[] =>
    Object.entries(texts).map(([name, text]) => [`${field}.${name}`, text]);
  if ("ref" in server) return named("config", server.config);
  return server.type === "http"
    ? [["url", server.url], ...named("headers", server.headers)]
    : [
        ["command", server.command],
        ...server.args.map((text, index): PlacedText => [`args.${index}`, text]),
        ...named("env", server.env),
      ];
}

export function variablesOfServer(server: McpServer): readonly string[] {
  return variablesIn(serverTexts(server).map(([, text]) => text));
}

/**
 * The problem of the first placeholder that can never have a value, with its place. @param agent none for a
 * server of any agent.
 */
export function serverPlaceholderProblem(
  server: McpServer | McpReference,
  agent: WithInput | null,
): readonly [place: string, problem: string] | undefined {
  const fields = agent === null ? null : inputFields(agent);
  for (const [place, text] of serverTexts(server)) {
    const problem = placeholderProblem(text, fields);
    if (problem !== undefined) return [place, problem];
  }
  return undefined;
}

/** A text is the field `prompt`. */
function inputFields({ inputSchema }: WithInput): InputFields {
  if (inputSchema === null) return [{ name: "prompt", isRequired: true }];
  const { properties, required } = inputSchema as { properties?: unknown; required?: unknown };
  if (typeof properties !== "object" || properties === null) return null;
  return Object.keys(properties).map((name) => ({
    name,
    isRequired: Array.isArray(required) && required.includes(name),
  }));
}

/** The fields of a session's input that a server names, as values by `params.NAME`. */
export function paramValues(server: McpServer, input: unknown): Readonly<Record<string, string>> {
  const given = (typeof input === "object" && input !== null ? input : { prompt: input }) as Readonly<
    Record<string, unknown>
  >;
  const fields: Readonly<Record<string, unknown>> = { prompt: given["text"], ...given };
  const values = paramsIn(serverTexts(server).map(([, text]) => text)).flatMap((name) => {
    const value = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (value === undefined || value === null) return [];
    return [[`params.${name}`, typeof value === "string" ? value : JSON.stringify(value)] as const];
  });
  return Object.fromEntries(values);
}
