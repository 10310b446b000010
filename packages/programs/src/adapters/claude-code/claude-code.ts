// Claude Code as an external agent (`CLAUDE_CODE`): the user's own program, over its stream-json protocol.
//
//   - The program of the way back gets its token by a file (`lines/way-back-file.ts`), and no command of the model
//     does. Its tools are allowed, because they do no more than the session permits.
//   - The program's own limit of the costs of one process is a second fence around the budget of the session.
//     Observed with 2.1.329: the limit counts the calls of its process alone, and ends the turn after the call
//     that exceeds it. Not every version has the option.

import { join } from "node:path";

import type { ExternalTurn } from "../../session/external-agent-protocol.ts";
import { signInBy } from "../../session/keys/program-keys.ts";
import { CHOSEN_FIELDS } from "../../session/program/find-program.ts";
import type { WayBack } from "../../session/way-back/way-back.ts";
import { WAY_BACK } from "../../session/way-back/way-back-tools.ts";
import { LineAgent, type LineAgentFacts, type LineAgentOptions } from "../lines/line-agent.ts";
import { ClaudeDialogue } from "./claude-dialogue.ts";
import {
  CLAUDE_KEYS,
  CLAUDE_PROGRAM_KEYS,
  CLAUDE_SETTINGS,
  claudeFolder,
  isAnthropicApi,
} from "./claude-environment.ts";
import { claudeRecordedCalls } from "./claude-record.ts";
import { claudeCall } from "./claude-tools.ts";
import { writeWayBack } from "../lines/way-back-file.ts";

const BUDGET_OPTION = "--max-budget-usd";

export const CLAUDE_CODE: LineAgentFacts = {
  name: "claude-code",
  program: {
    name: "claude",
    title: "Claude Code",
    versionMin: "2.0.0",
    install: "npm install -g @anthropic-ai/claude-code",
  },
  capabilities: {
    steer: "inject",
    followUp: "queue",
    resume: "id",
    usage: "message",
    model: true,
    pricePrefix: "anthropic/",
    takesEditedInput: true,
    profileFields: ["settings", "mcpServers", ...CHOSEN_FIELDS],
    signIn: signInBy("run `claude` and enter /login", "ANTHROPIC_API_KEY"),
  },
  argumentsOf: async ({ intent, wayBack, costMicroUsdMax = 0 }, { isResumed, toolFile, help }) => [
    "-p",
    "--input-format",
    "stream-json",
    "--output-format",
    "stream-json",
    "--verbose",
    "--include-partial-messages",
    "--permission-mode",
    intent.permissionMode,
    "--permission-prompt-tool",
    "stdio",
    ...(intent.model === null ? [] : ["--model", intent.model]),
    ...(wayBack === undefined || toolFile === undefined ? [] : wayBackArguments(wayBack, toolFile)),
    ...profileArguments(intent.profile),
    ...(costMicroUsdMax > 0 && (await help()).includes(BUDGET_OPTION)
      ? [BUDGET_OPTION, (costMicroUsdMax / 1e6).toFixed(6)]
      : []),
    isResumed ? "--resume" : "--session-id",
    intent.agentSessionId,
  ],
  variables: [...CLAUDE_KEYS, ...CLAUDE_SETTINGS],
  keys: CLAUDE_KEYS,
  programKeys: CLAUDE_PROGRAM_KEYS,
  unpriced: (environment) => (isAnthropicApi(environment) ? [] : ["anthropic"]),
  settings: { DISABLE_AUTOUPDATER: "1" },
  toolFile: writeWayBack,
  takesOurId: true,
  exitMs: 10_000,
  files: (environment, id, folder) => ({
    sessions: { folder: join(claudeFolder(environment), "projects"), ending: `${id}.jsonl` },
    mcpFiles: [join(folder, ".mcp.json")],
  }),
  ownFolders: (environment) => ({ written: [claudeFolder(environment)], read: [] }),
  dialogue: (turn) => new ClaudeDialogue(turn),
  recordedCalls: (lines, from, unpriced) => claudeRecordedCalls(lines.slice(from), unpriced.length === 0),
  ruledCall: claudeCall,
};

/** Options of `new ClaudeCode`. */
export type ClaudeCodeOptions = Omit<LineAgentOptions, "facts">;

/** The adapter for Claude Code. */
export class ClaudeCode extends LineAgent {
  constructor(options: ClaudeCodeOptions) {
    super({ facts: CLAUDE_CODE, ...options });
  }
}

function profileArguments(profile: ExternalTurn["intent"]["profile"]): readonly string[] {
  const { settings = null, mcpFile = null } = profile ?? {};
  return [
    ...(settings === null ? [] : ["--settings", settings]),
    ...(mcpFile === null ? [] : ["--mcp-config", mcpFile]),
  ];
}

function wayBackArguments({ tools }: WayBack, file: string): readonly string[] {
  return [
    "--mcp-config",
    file,
    "--allowedTools",
    tools.map(({ name }) => `mcp__${WAY_BACK}__${name}`).join(","),
  ];
}
