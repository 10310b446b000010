// The agents that speak the Agent Client Protocol, and how each differs from it: `ACP_AGENTS`. The
// differences were observed with the versions named, and are data. A new agent needs no code.

import { dirname, join } from "node:path";
import type { Environment } from "@holdfast/system";

import {
  CLAUDE_KEYS,
  CLAUDE_PROGRAM_KEYS,
  CLAUDE_SETTINGS,
  claudeFolder,
} from "../claude-code/claude-environment.ts";
import { CODEX } from "../codex/codex-agent.ts";
import type { LineAgentFacts } from "../lines/line-agent.ts";
import type { ModesOf } from "../../included-programs.ts";
import type { ExternalAgentCapabilities } from "../../session/external-agent-protocol.ts";
import { codexFolder } from "../../session/keys/codex-keys.ts";
import { heldKey, isSet, signInBy } from "../../session/keys/program-keys.ts";
import { OPENCODE_KEYS } from "../../session/keys/opencode-keys.ts";
import { CHOSEN_FIELDS } from "../../session/program/find-program.ts";

export interface AcpAgentFacts extends Pick<
  LineAgentFacts,
  "name" | "program" | "variables" | "keys" | "programKeys" | "settings" | "ownFolders" | "reads"
> {
  /** The arguments with which the program speaks the protocol on its standard streams. */
  readonly args: readonly string[];
  /** Whether a session continues in another process. `false` where the program says that it does, and fails. */
  readonly resumes: boolean;
  /** Whether a session can ask for a model, as it can by default. */
  readonly takesModel?: boolean;
  /**
   * The modes of the program by the permission modes of Holdfast. Without it a session keeps the mode that
   * the program chooses.
   */
  readonly modes?: Readonly<Record<string, string>>;
  /** Whether it names the command of a call by the title alone (acp-updates-5). */
  readonly titlesAreCommands?: boolean;
  /** Whether it says of each call when it begins (acp-updates-3). */
  readonly saysBegin?: boolean;
  /** Whether the usage of a turn that it reports is that of the whole turn. */
  readonly reportsUsage: boolean;
  /** How a person signs in: what to do, beginning with a verb. */
  readonly signIn?: string;
  /** The files that name its MCP servers. */
  readonly mcpFiles?: (environment: Environment, folder: string) => readonly string[];
  /** The fields of a profile that the agent takes. */
  readonly profileFields?: ExternalAgentCapabilities["profileFields"];
}

const PROXIES = ["HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"];
const PLACES = ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "SHELL", "USER"];

/** The variables of the places in which OpenCode has a folder each, with the usual ones below the home folder. */
const OPENCODE_FOLDERS = {
  XDG_CONFIG_HOME: ".config",
  XDG_DATA_HOME: ".local/share",
  XDG_CACHE_HOME: ".cache",
  XDG_STATE_HOME: ".local/state",
} as const;

/** The variables that an agent gets about which nothing is known. */
export const ACP_VARIABLES: readonly string[] = [...PLACES, ...PROXIES];

/** The included agents that speak the Agent Client Protocol. */
export const ACP_AGENTS: readonly AcpAgentFacts[] = [
  {
    name: "opencode",
    program: {
      name: "opencode",
      title: "OpenCode",
      versionMin: "1.0.0",
      install: "npm install -g opencode-ai",
    },
    args: ["acp"],
    variables: [
      "ANTHROPIC_API_KEY",
      "OPENAI_API_KEY",
      "GEMINI_API_KEY",
      "OPENROUTER_API_KEY",
      "ANTHROPIC_BASE_URL",
      "OPENAI_BASE_URL",
      "OPENCODE_CONFIG",
      "OPENCODE_CONFIG_DIR",
      "OPENCODE_DISABLE_MODELS_FETCH",
      ...PLACES,
      ...PROXIES,
    ],
    keys: ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"],
    programKeys: OPENCODE_KEYS,
    settings: { OPENCODE_DISABLE_AUTOUPDATE: "1" },
    mcpFiles: (environment, folder) => {
      const config = environment["XDG_CONFIG_HOME"] ?? join(environment["HOME"] ?? "/", ".config");
      const named = environment["OPENCODE_CONFIG"];
      return [
        join(config, "opencode/opencode.json"),
        join(folder, "opencode.json"),
        ...(named === undefined ? [] : [named]),
      ];
    },
    ownFolders: (environment) => {
      const folders = Object.entries(OPENCODE_FOLDERS).map(([variable, usual]) =>
        join(environment[variable] ?? join(environment["HOME"] ?? "/", usual), "opencode"),
      );
      const named = [environment["OPENCODE_CONFIG"], environment["OPENCODE_CONFIG_DIR"]];
      return { written: folders, read: named.filter((path) => path !== undefined) };
    },
    resumes: true,
    profileFields: CHOSEN_FIELDS,
    modes: { default: "build", plan: "plan" } satisfies ModesOf<"opencode">,
    signIn: "run `opencode auth login`, or set the key of its provider",
    saysBegin: true, // 1.18.33 names the folder of a command before the model has written the command.
    reportsUsage: false, // 1.18.33 reports the last step of a turn alone.
  },
  {
    name: "gemini",
    program: {
      name: "gemini",
      title: "Gemini CLI",
      versionMin: "0.50.0",
      install: "npm install -g @google/gemini-cli",
    },
    args: ["--acp"],
    variables: [
      "GEMINI_API_KEY",
      "GOOGLE_API_KEY",
      "GOOGLE_GEMINI_BASE_URL",
      "GOOGLE_CLOUD_PROJECT",
      "GOOGLE_CLOUD_LOCATION",
      "GOOGLE_GENAI_USE_VERTEXAI",
      ...PLACES,
      ...PROXIES,
    ],
    keys: ["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    programKeys: {
      held: (environment) =>
        isSet(environment["GOOGLE_GENAI_USE_VERTEXAI"])
          ? []
          : heldKey("google", "GEMINI_API_KEY", environment, environment["GOOGLE_GEMINI_BASE_URL"]),
    },
    settings: {},
    mcpFiles: (environment, folder) => [
      join(environment["HOME"] ?? "/", ".gemini/settings.json"),
      join(folder, ".gemini/settings.json"),
    ],
    ownFolders: (environment) => ({ written: [join(environment["HOME"] ?? "/", ".gemini")], read: [] }),
    resumes: false, // 0.61 says that it loads sessions, and fails in another process.
    takesModel: false, // 0.61 names no models to choose from.
    titlesAreCommands: true, // 0.61 gives no input of any call.
    modes: { default: "default", acceptEdits: "autoEdit", plan: "plan" } satisfies ModesOf<"gemini">,
    profileFields: CHOSEN_FIELDS,
    signIn: signInBy("run `gemini` and choose a sign-in", "GEMINI_API_KEY"),
    reportsUsage: false,
  },
  {
    name: "claude-acp",
    program: {
      name: "claude-agent-acp",
      title: "the Claude bridge",
      versionMin: "0.49.0",
      install: "npm install -g @agentclientprotocol/claude-agent-acp",
    },
    args: [],
    variables: [...CLAUDE_KEYS, ...CLAUDE_SETTINGS, "CLAUDE_CODE_EXECUTABLE"],
    keys: CLAUDE_KEYS,
    programKeys: CLAUDE_PROGRAM_KEYS,
    // Tools of MCP servers, such as those of the session, would be hidden behind a search.
    settings: { DISABLE_AUTOUPDATER: "1", ENABLE_TOOL_SEARCH: "false" },
    ownFolders: (environment) => ({
      written: [claudeFolder(environment)],
      read: placeOf(environment["CLAUDE_CODE_EXECUTABLE"]),
    }),
    resumes: true,
    // 0.101 begins in `auto`, in which it decides about permissions itself.
    modes: { default: "default", acceptEdits: "acceptEdits", plan: "plan" } satisfies ModesOf<"claude-acp">,
    profileFields: CHOSEN_FIELDS,
    signIn: signInBy("run `claude` and enter /login", "ANTHROPIC_API_KEY"),
    reportsUsage: true,
  },
  {
    name: "codex-acp",
    program: {
      name: "codex-acp",
      title: "the Codex bridge",
      versionMin: "2.0.0",
      install: "npm install -g @agentclientprotocol/codex-acp",
    },
    args: [],
    variables: [...CODEX.variables, "CODEX_PATH", "CODEX_CONFIG"],
    keys: CODEX.keys,
    settings: {},
    ownFolders: (environment) => ({
      written: [codexFolder(environment)],
      read: placeOf(environment["CODEX_PATH"]),
    }),
    resumes: true,
    // 2.6 begins in `agent`, in which it reviews its commands itself.
    modes: { default: "read-only", acceptEdits: "workspace-write" } satisfies ModesOf<"codex-acp">,
    profileFields: CHOSEN_FIELDS,
    signIn: signInBy("run `codex login`", "OPENAI_API_KEY"),
    reportsUsage: true,
  },
];

/** The folder of a program that a variable names by its path. */
function placeOf(program: string | undefined): readonly string[] {
  return program?.includes("/") === true ? [dirname(program)] : [];
}
