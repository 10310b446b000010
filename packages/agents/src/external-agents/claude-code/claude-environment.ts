// The environment of Claude Code (`claudeEnvironment`): an allow-list, as for every process that Holdfast starts. It adds the variables
// that the program reads its key and its settings from. `claudeTraces` says where it keeps its sessions.

import { join } from "node:path";
import { scrubEnvironment, type Environment } from "@holdfast/runtime/internal";

import type { AgentTraces, ChosenProgram, ExternalIntent } from "../external-agent-protocol.ts";
import { chosenVariables } from "../program/find-program.ts";
import { tracedVariables } from "../receipt/traced-variables.ts";

/** Their values are keys: they are replaced in everything that is recorded. */
export const CLAUDE_KEYS = ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"] as const;

export const CLAUDE_SETTINGS = [
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

/** Variables by which the program asks for its models at another vendor. */
const OTHER_VENDORS = [
  "CLAUDE_CODE_USE_BEDROCK",
  "CLAUDE_CODE_USE_VERTEX",
  "CLAUDE_CODE_USE_FOUNDRY",
] as const;

export function claudeEnvironment(own: Environment, chosen?: ChosenProgram): Record<string, string> {
  const names = [...chosenVariables(chosen), ...CLAUDE_KEYS, ...CLAUDE_SETTINGS];
  const passed = Object.fromEntries(names.map((name) => [name, own[name]]));
  return scrubEnvironment(own, passed, { DISABLE_AUTOUPDATER: "1" });
}

/** The keys that the program can read and print. */
export function claudeKeys(own: Environment, { keys = [] }: ChosenProgram = {}): readonly string[] {
  return [...CLAUDE_KEYS, ...keys].flatMap((name) => own[name] ?? []);
}

/** Whether its models are those of Anthropic's own API. @param environment of the program. */
export function isAnthropicApi(environment: Environment): boolean {
  if (OTHER_VENDORS.some((name) => !["", "0", "false"].includes(environment[name] ?? ""))) return false;
  const url = environment["ANTHROPIC_BASE_URL"] ?? "";
  return url === "" || URL.parse(url)?.hostname === "api.anthropic.com";
}

/** The folder of its settings, credentials and sessions. */
export function claudeFolder(own: Environment): string {
  return own["CLAUDE_CONFIG_DIR"] ?? join(own["HOME"] ?? "/", ".claude");
}

export function claudeTraces(
  own: Environment,
  { agentSessionId, folder, profile }: ExternalIntent,
): AgentTraces {
  const base = claudeFolder(own);
  return {
    sessions: { folder: join(base, "projects"), ending: `${agentSessionId}.jsonl` },
    mcpFiles: [join(folder, ".mcp.json"), ...(profile?.mcpFile ? [profile.mcpFile] : [])],
    environment: tracedVariables(
      own,
      [...CLAUDE_SETTINGS, ...(profile?.variables ?? [])],
      [...CLAUDE_KEYS, ...(profile?.keys ?? [])],
    ),
  };
}
