// Programs as agents: coding agents and other programs whose work is a durable session.

export { a2aAgent } from "./adapters/a2a/a2a-agent.ts";
export { AcpAgent } from "./adapters/acp/acp-agent.ts";
export { ACP_AGENTS } from "./adapters/acp/acp-quirks.ts";
export { ClaudeCode } from "./adapters/claude-code/claude-code.ts";
export { CODEX } from "./adapters/codex/codex-agent.ts";
export { customAgent } from "./adapters/custom/custom-agent.ts";
export { harnessAgent } from "./adapters/harness/harness-agent.ts";
export { LineAgent } from "./adapters/lines/line-agent.ts";
export { mcpToolAgent } from "./adapters/mcp-tool/mcp-tool-agent.ts";
export { PI } from "./adapters/pi/pi-agent.ts";
export { external, type ExternalOptions, knownAgent } from "./external.ts";
export { profileAgent } from "./profile-agent.ts";
export { hashOfFolder, type InstalledAgent, InstalledAgents } from "./registry/installed-agents.ts";
export { type AgentInstall, chooseInstall } from "./registry/registry-file.ts";
export { unpackArchive } from "./registry/unpack-archive.ts";
export {
  type ChosenProgram,
  type Delivery,
  type Enclose,
  type ExternalAgent,
  type ExternalAgentCapabilities,
  type ExternalAgentProtocol,
  type ExternalEnd,
  type ExternalEvent,
  type ExternalIntent,
  type ExternalTurn,
  type OwnFolders,
  type Queueing,
} from "./session/external-agent-protocol.ts";
export { externalAgent } from "./session/external-agent.ts";
export { takeProfile } from "./session/intent/session-profile.ts";
export { type KeyReach } from "./session/keys/program-keys.ts";
export { type RawReference, readRawLines } from "./session/raw/raw-lines.ts";
export { recordText } from "./session/record-text.ts";
export { rawLinesFolder } from "./session/turn-task.ts";
