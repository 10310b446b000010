// The environment of Claude Code (`claudeEnvironment`): an allow-list, as for every process that Holdfast starts. It adds the variables
// that the program reads its key and its settings from. `claudeTraces` says where it keeps its sessions.

import { join } from "node:path";
import { scrubEnvironment, type Environment } from "@holdfast/runtime/internal";

import type { AgentTraces, ExternalIntent } from "../external-agent-protocol.ts";
import { tracedVariables } from "../receipt/traced-variables.ts";

/** Their values are keys: they are replaced in everything that is recorded. */
const KEYS = ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"] as const;

const SETTINGS = [
  "ANTHROPIC_BASE_URL",
  "ANTHROPIC_MODEL",
  "ANTHROPIC_SMALL_FAST_MODEL",
  "ANTHROPIC_CUSTOM_HEADERS",
  "CLAUDE_CONFIG_DIR",
  "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
  "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
  "DISABLE_ERROR_REPORTING",
  "DISABLE_TELEMETRY",
  "MAX_THINKING_TOKENS",
  "HTTPS_PROXY",
  "HTTP_PROXY",
  "NO_PROXY",
  "NODE_EXTRA_CA_CERTS",
  "SSL_CERT_FILE",
  "SHELL",
  "USER",
] as const;

export function claudeEnvironment(own: Environment): Record<string, string> {
  const passed = Object.fromEntries([...KEYS, ...SETTINGS].map((name) => [name, own[name]]));
  return scrubEnvironment(own, passed, { DISABLE_AUTOUPDATER: "1" });
}

/** The keys that the program can read and print. */
export function claudeKeys(own: Environment): readonly string[] {
  return KEYS.flatMap((name) => own[name] ?? []);
}

/** Whether its models are those of Anthropic's own API. */
export function isAnthropicApi(own: Environment): boolean {
  const url = own["ANTHROPIC_BASE_URL"] ?? "";
  return url === "" || URL.parse(url)?.hostname === "api.anthropic.com";
}

export function claudeTraces(
  own: Environment,
  { agentSessionId, folder, profile }: ExternalIntent,
): AgentTraces {
  const base = own["CLAUDE_CONFIG_DIR"] ?? join(own["HOME"] ?? "/", ".claude");
  return {
    sessions: { folder: join(base, "projects"), ending: `${agentSessionId}.jsonl` },
    mcpFiles: [join(folder, ".mcp.json"), ...(profile?.mcpFile ? [profile.mcpFile] : [])],
    environment: tracedVariables(own, SETTINGS, KEYS),
  };
}
