// The programs that `npm run agents` installs and runs (`REAL_AGENTS`): packages, settings that point them at
// a model server, adapters.

import { mkdirSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type ExternalAgentProtocol, type IncludedName, profileAgent } from "@holdfast/programs";
import type { ScriptedModelServer } from "@holdfast/testkit";

export interface RealAgent {
  readonly name: string;
  /** The version that is installed. */
  readonly version: string;
  /** The arguments of `npm install`. */
  readonly install: readonly string[];
  readonly model: string | null;
  /** `default` by default. */
  readonly permissionMode?: string;
  /** The longest time of work before a kill, where the program starts slowly. */
  readonly killWithinMs?: number;
  /** Writes the settings of the program. @returns its environment. */
  settings(home: string, server: ScriptedModelServer): Readonly<Record<string, string>>;
  /**
   * The profile by which `holdfast run` knows the agent. Absent for an agent that it knows without one.
   * @param bin the folder of the program.
   */
  profile?(bin: string): OwnProfile;
  /** Absent for an included program, which has its adapter by its name. */
  adapter?(environment: Readonly<Record<string, string>>, folder: string): ExternalAgentProtocol;
}

type OwnProfile = Omit<Parameters<typeof profileAgent>[0], "name">;

const KEY = "sk-scripted-0123456789";

export const REAL_AGENTS: readonly RealAgent[] = [
  {
    name: "claude-code",
    version: "2.1.332",
    install: ["@anthropic-ai/claude-code@2.1.332"],
    model: "claude-sonnet-4-5",
    settings: claudeSettings,
  },
  {
    name: "codex",
    version: "0.171.0",
    install: ["@openai/codex@0.171.0"],
    model: null,
    settings: codexSettings,
  },
  {
    name: "pi",
    version: "1.6.0",
    install: ["@earendil-works/pi-coding-agent@1.6.0"],
    model: "scripted/scripted-model",
    settings(home, { url }) {
      const folder = join(home, ".pi");
      mkdirSync(folder, { recursive: true });
      const model = { id: "scripted-model", name: "Scripted", reasoning: false, input: ["text"] };
      const sizes = { contextWindow: 200_000, maxTokens: 8_000 };
      const cost = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };
      const models = [{ ...model, ...sizes, cost }];
      const scripted = { baseUrl: url, apiKey: KEY, api: "anthropic-messages", models };
      writeFileSync(join(folder, "models.json"), JSON.stringify({ providers: { scripted } }));
      return { PI_CODING_AGENT_DIR: folder, PI_OFFLINE: "1" };
    },
  },
  {
    name: "harness-pi",
    version: "1.0.123",
    install: ["@ai-sdk/harness-pi@1.0.123", "zod@4.6.7"],
    model: "claude-sonnet-4-5",
    settings: (_home, { url }) => ({ ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: KEY }),
    profile: harnessPi,
    adapter(environment, folder) {
      const [bin = ""] = (environment["PATH"] ?? "").split(delimiter);
      return profileAgent({ name: "harness-pi", ...harnessPi(bin) }, { environment, folder });
    },
  },
  {
    name: "opencode",
    version: "1.18.33",
    install: ["opencode-ai@1.18.33"],
    model: "scripted/other-model",
    killWithinMs: 16_000,
    settings(home, { openaiBaseUrl }) {
      const file = join(home, "opencode.json");
      const options = { baseURL: openaiBaseUrl, apiKey: KEY };
      const models = { "scripted-model": { name: "Scripted" }, "other-model": { name: "Other" } };
      const scripted = { npm: "@ai-sdk/openai-compatible", name: "Scripted", options, models };
      const model = "scripted/scripted-model";
      const permission = { bash: "ask" };
      writeFileSync(file, JSON.stringify({ model, small_model: model, provider: { scripted }, permission }));
      return { OPENCODE_CONFIG: file, OPENCODE_DISABLE_MODELS_FETCH: "1" };
    },
  },
  {
    name: "gemini",
    version: "0.61.0",
    install: ["@google/gemini-cli@0.61.0", "--ignore-scripts", "--omit=optional"],
    model: null,
    settings(home, { url }) {
      const folder = join(home, ".gemini");
      mkdirSync(folder, { recursive: true });
      // Without a model it asks another one first, whose answer must be JSON.
      writeFileSync(join(folder, "settings.json"), JSON.stringify({ model: { name: "scripted-model" } }));
      writeFileSync(join(folder, "trustedFolders.json"), JSON.stringify({ [home]: "TRUST_FOLDER" }));
      return { GEMINI_API_KEY: KEY, GOOGLE_GEMINI_BASE_URL: url };
    },
  },
  {
    name: "claude-acp",
    version: "0.101.0",
    install: ["@agentclientprotocol/claude-agent-acp@0.101.0"],
    model: "sonnet",
    settings: claudeSettings,
  },
  {
    name: "codex-acp",
    version: "2.6.0",
    install: ["@agentclientprotocol/codex-acp@2.6.0"],
    model: null,
    permissionMode: "acceptEdits", // In `default` its commands may only read.
    settings: codexSettings,
  },
];

/**
 * The included programs that are not among these, each with the reason. A program may be in no package of npm,
 * or ask no server of models but its vendor's.
 */
export const NOT_TRIED: Readonly<Partial<Record<IncludedName, string>>> = {};

/** The agents whose keys `real-keys.test.ts` looks for. An agent with the `programKeys` of another one needs no row. */
export const WITH_HELD_KEYS = ["claude-code", "codex", "pi", "opencode", "gemini"] as const;

/** The agents of `budget-tree.ts`: those with a record of their usage. */
export const WITH_RECORD = ["claude-code", "codex", "pi"] as const;

/** The command of the MCP Inspector, a client of the orchestrator's tools. */
export const INSPECTOR: Pick<RealAgent, "name" | "version" | "install"> = {
  name: "inspector",
  version: "2.12.0",
  install: ["@modelcontextprotocol/inspector@2.12.0"],
};

/** Its module finds the packages that are installed above it. */
function harnessPi(bin: string): OwnProfile {
  const module = join(bin, "../../harness.mjs");
  writeFileSync(
    module,
    'import { createPi } from "@ai-sdk/harness-pi";\nexport default createPi({ auth: "anthropic" });\n',
  );
  return { harness: { module, variables: ["ANTHROPIC_BASE_URL"], keys: ["ANTHROPIC_API_KEY"] } };
}

function claudeSettings(home: string, { url }: ScriptedModelServer): Readonly<Record<string, string>> {
  return {
    ANTHROPIC_BASE_URL: url,
    ANTHROPIC_API_KEY: KEY,
    CLAUDE_CONFIG_DIR: join(home, ".claude"),
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  };
}

export function codexSettings(
  home: string,
  { openaiBaseUrl }: ScriptedModelServer,
): Readonly<Record<string, string>> {
  const folder = join(home, ".codex");
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    join(folder, "config.toml"),
    `model = "scripted-model"
model_provider = "scripted"
check_for_update_on_startup = false
[analytics]
enabled = false
[sandbox_workspace_write]
exclude_slash_tmp = true
exclude_tmpdir_env_var = true
[model_providers.scripted]
name = "scripted"
base_url = "${openaiBaseUrl}"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
`,
  );
  return { OPENAI_API_KEY: KEY, CODEX_HOME: folder };
}
