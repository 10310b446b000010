// Programs as agents: coding agents and other programs whose work is a durable session.

export { a2aAgent, type A2aAgentOptions } from "./adapters/a2a/a2a-agent.ts";
export { AcpAgent, type AcpAgentOptions } from "./adapters/acp/acp-agent.ts";
export { ACP_AGENTS } from "./adapters/acp/acp-quirks.ts";
export { ClaudeCode, type ClaudeCodeOptions } from "./adapters/claude-code/claude-code.ts";
export { CODEX } from "./adapters/codex/codex-agent.ts";
export { customAgent, type CustomAgentOptions } from "./adapters/custom/custom-agent.ts";
export { harnessAgent, type HarnessAgentOptions } from "./adapters/harness/harness-agent.ts";
export { LineAgent, type LineAgentOptions } from "./adapters/lines/line-agent.ts";
export { mcpToolAgent, type McpToolAgentOptions } from "./adapters/mcp-tool/mcp-tool-agent.ts";
export { PI } from "./adapters/pi/pi-agent.ts";
export { external, type ExternalMode, type ExternalOptions, includedFacts, knownAgent } from "./external.ts";
export { type IncludedName } from "./included-programs.ts";
export { profileAgent } from "./profile-agent.ts";
export { hashOfFolder, type InstalledAgent, InstalledAgents } from "./registry/installed-agents.ts";
export { type AgentInstall, chooseInstall } from "./registry/registry-file.ts";
export { unpackArchive } from "./registry/unpack-archive.ts";
export {
  type AgentTraces,
  type Author,
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
  type IntendedProfile,
  type OwnFolders,
  type PermissionAnswer,
  type PermissionRequest,
  type PlanStep,
  type Queueing,
  type RecordedCalls,
  type RuledCall,
} from "./session/external-agent-protocol.ts";
export { externalAgent, type ExternalAgentOptions } from "./session/external-agent.ts";
export { takeProfile } from "./session/intent/session-profile.ts";
export { type Fields } from "./session/fields.ts";
export { type KeyAccess, type KeyReach, type ModelGateway } from "./session/keys/program-keys.ts";
export { rawLinesFolder, type RawReference, readRawLines } from "./session/raw/raw-lines.ts";
export { recordText } from "./session/record-text.ts";
export { type WayBack } from "./session/way-back/way-back.ts";
export { blueprintOf } from "./adapters/executor/blueprint.ts";
export { checkExecutor, type CheckedClause, type CheckOptions } from "./adapters/executor/conformance.ts";
export {
  type AllowedExecutor,
  Executor,
  executorAgent,
  type ExecutorOptions,
  type ExecutorPolicy,
  type ExecutorResult,
} from "./adapters/executor/executor.ts";
export {
  DEFAULT_EXECUTOR,
  executorAt,
  findExecutor,
  hasExecutor,
  isBuiltIn,
  listExecutors,
  type ExecutorProfile,
  type ListedExecutor,
} from "./adapters/executor/profile.ts";
