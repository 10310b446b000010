// The environment of Claude Code (`claudeEnvironment`): an allow-list, as for every process that Holdfast
// starts. It adds the variables that the program reads its key and its settings from.

import { join } from "node:path";
import { scrubEnvironment, type Environment } from "@holdfast/system";

import type { ChosenProgram } from "../../session/external-agent-protocol.ts";
import { fieldsOf, parseFields, textOrJson } from "../../session/fields.ts";
import { heldKey, isSet, userText, type HeldKey, type ProgramKeys } from "../../session/keys/program-keys.ts";
import { chosenVariables } from "../../session/program/find-program.ts";

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

function claudeEnvironment(own: Environment, chosen?: ChosenProgram): Record<string, string> {
  const names = [...chosenVariables(chosen), ...CLAUDE_KEYS, ...CLAUDE_SETTINGS];
  const passed = Object.fromEntries(names.map((name) => [name, own[name]]));
  return scrubEnvironment(own, passed, { DISABLE_AUTOUPDATER: "1" });
}

function isOtherVendor(environment: Environment): boolean {
  return OTHER_VENDORS.some((name) => !["", "0", "false"].includes(environment[name] ?? ""));
}

/** Whether its models are those of Anthropic's own API. @param environment of the program. */
export function isAnthropicApi(environment: Environment): boolean {
  if (isOtherVendor(environment)) return false;
  const url = environment["ANTHROPIC_BASE_URL"] ?? "";
  return url === "" || URL.parse(url)?.hostname === "api.anthropic.com";
}

/** The token of its own sign-in cannot be held: Anthropic takes it from the program alone. */
export const CLAUDE_PROGRAM_KEYS: ProgramKeys = {
  held(own, chosen) {
    const environment = claudeEnvironment(own, chosen);
    if (isOtherVendor(environment) || namesAnotherApi(own)) return [];
    const headers = headersIn(environment["ANTHROPIC_CUSTOM_HEADERS"] ?? "");
    return [
      // The order of Claude Code.
      ...asBearer(heldAnthropic("ANTHROPIC_AUTH_TOKEN", environment)),
      ...heldAnthropic("ANTHROPIC_API_KEY", environment),
    ]
      .slice(0, 1)
      .map((key) => ({ ...key, headers, unneeded: [...CLAUDE_KEYS, "ANTHROPIC_CUSTOM_HEADERS"] }));
  },
};

function heldAnthropic(variable: string, environment: Environment): readonly HeldKey[] {
  return heldKey("anthropic", variable, environment, environment["ANTHROPIC_BASE_URL"]);
}

function asBearer(keys: readonly HeldKey[]): readonly HeldKey[] {
  return keys.map((key) => ({ ...key, isBearer: true }));
}

/** Lines of `Name: value`, as Claude Code reads them. */
function headersIn(text: string): Readonly<Record<string, string>> {
  const lines = text.split("\n").map((line) => /^\s*([\w-]+)\s*:\s*(.*?)\s*$/.exec(line));
  return Object.fromEntries(
    lines.flatMap((line) => (line === null ? [] : [[line[1]!.toLowerCase(), line[2]!]])),
  );
}

/** Whether settings of the user give the program another address or key than its environment (program-keys-3). */
function namesAnotherApi(own: Environment): boolean {
  const names = [...CLAUDE_KEYS, "ANTHROPIC_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS", ...OTHER_VENDORS];
  return [join(claudeFolder(own), "settings.json"), ...MANAGED_SETTINGS].some((path) => {
    const env = fieldsOf(parseFields(userText(path))?.["env"]);
    return names.some((name) => env[name] !== undefined && isSet(textOrJson(env[name])));
  });
}

/** The settings of the computer's administrator. */
const MANAGED_SETTINGS = [
  "/etc/claude-code/managed-settings.json",
  "/Library/Application Support/ClaudeCode/managed-settings.json",
] as const;

/** The folder of its settings, credentials and sessions. */
export function claudeFolder(own: Environment): string {
  return own["CLAUDE_CONFIG_DIR"] ?? join(own["HOME"] ?? "/", ".claude");
}
