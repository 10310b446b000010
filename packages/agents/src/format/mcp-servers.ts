// MCP servers as other tools write them: in front matter and in `.mcp.json`.

import { defined } from "@holdfast/core";
import { z } from "zod";
import type { McpReference, McpServer } from "@holdfast/mcp";
import type { AgentDraft } from "./agent-draft.ts";
import { HONOURED, type Ruling } from "./fields.ts";
import type { FieldReport } from "./field-report.ts";

const texts = z.record(z.string(), z.string());
const stdio = z.strictObject({
  type: z.enum(["stdio", "local"]).optional(),
  command: z.string().min(1),
  args: z.array(z.string()).default([]),
  env: texts.default({}),
  enabledTools: z.array(z.string()).optional(),
});
const http = z.strictObject({
  type: z.enum(["http", "streamable-http", "remote"]).optional(),
  // A part of it may be a placeholder.
  url: z.union([z.url({ protocol: /^https?$/ }), z.string().regex(/\$\{[^}]+\}/)], {
    error: "it is no URL of http or https",
  }),
  headers: texts.default({}),
  enabledTools: z.array(z.string()).optional(),
});

const docker = z.strictObject({
  type: z.literal("docker").optional(),
  image: z.string().min(1),
  args: z.array(z.string()).default([]),
  env: texts.default({}),
  enabledTools: z.array(z.string()).optional(),
});

const reference = z.strictObject({
  ref: z.string().min(1),
  config: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()]).transform(String)).default({}),
});

/** The fields of one server, which may have fields of its tool that Holdfast does not use. */
export const mcpServerValue = z.record(z.string(), z.unknown());

const REFERENCE_FORM =
  "a reference to a configured server has the fields ref and config, and config has texts, numbers and booleans by the names of headers";

/** Fields of other tools that restrict nothing. */
const UNUSED = new Set(
  "timeout trust description cwd startup_timeout_sec tool_timeout_sec alwaysAllow required".split(" "),
);

/** Reads one server. @returns the server, or the reason why there is none. */
function readMcpServer(given: Readonly<Record<string, unknown>>): McpServer | McpReference | string {
  if ("ref" in given) {
    const { data, error } = reference.safeParse(given);
    return data ?? `${REFERENCE_FORM}: ${z.prettifyError(error).replaceAll("\n", " ")}`;
  }
  const { httpUrl, enabled: _enabled, disabled: _disabled, enabled_tools: enabledTools, ...others } = given;
  const rest = enabledTools === undefined ? others : { ...others, enabledTools };
  const known = Object.entries(rest).filter(([name]) => !UNUSED.has(name));
  const fields = Object.fromEntries(httpUrl === undefined ? known : [...known, ["url", httpUrl]]);
  if (fields["type"] === "sse")
    return "Holdfast does not speak the transport sse, which MCP has deprecated; use http";
  const isProgram = "command" in fields;
  const isImage = "image" in fields || fields["type"] === "docker";
  const read = (isProgram ? stdio : isImage ? docker : http).safeParse(fields);
  if (!read.success) {
    const [issue] = read.error.issues;
    const place = issue === undefined || issue.path.length === 0 ? "" : `${issue.path.join(".")}: `;
    return `${place}${issue?.message ?? "it does not fit"}`;
  }
  if ("image" in read.data) return containerOf(read.data);
  return { ...read.data, type: isProgram ? "stdio" : "http" } as McpServer;
}

/**
 * A container that ends with its input. Docker takes the values of its variables from its own environment,
 * not from its arguments.
 */
function containerOf({ image, args, env, enabledTools }: z.output<typeof docker>): McpServer {
  const variables = Object.keys(env).flatMap((name) => ["-e", name]);
  return {
    type: "stdio",
    command: "docker",
    args: ["run", "-i", "--rm", "--init", ...variables, image, ...args],
    env,
    ...defined({ enabledTools }),
  };
}

/**
 * Reads servers by name, each with verdicts of its own. A text names a configured server, as a reference
 * without a configuration does.
 */
export function takeServers(
  servers: readonly (readonly [name: string, given: Readonly<Record<string, unknown>> | string])[],
  path: string,
  draft: AgentDraft,
  report: FieldReport,
): Ruling {
  for (const [name, given] of servers) {
    if (typeof given !== "string") {
      for (const unused of Object.keys(given).filter((one) => UNUSED.has(one)))
        report.add(
          [path, name, unused],
          "ignored",
          "Holdfast has its own time-outs, folders and questions for MCP servers",
        );
      if (given["disabled"] === true || given["enabled"] === false) {
        report.add([path, name], "ignored", "the server is switched off");
        continue;
      }
    }
    const server = typeof given === "string" ? given : readMcpServer(given);
    if (typeof server === "string" && typeof given !== "string") report.add([path, name], "refused", server);
    else draft.mcpServers = { ...draft.mcpServers, [name]: withoutEmptyConfig(server) };
  }
  return HONOURED;
}

function withoutEmptyConfig(server: McpServer | McpReference | string): McpServer | McpReference | string {
  return typeof server !== "string" && "ref" in server && Object.keys(server.config).length === 0
    ? server.ref
    : server;
}
