// The public API of `@holdfast/agents`: models, the agents made of them, and agents that are read from files.

export {
  type AssistantContent,
  type FinishReason,
  type ModelObserver,
  type ModelProvider,
  type ModelReply,
  type ModelRequest,
  type ModelThought,
  type ModelTool,
  type ModelToolCall,
  type ModelUsage,
  type ResultImage,
  type ToolContent,
} from "./models/model-provider.ts";
export {
  modelTask,
  type ModelSource,
  type ModelTaskInput,
  type ModelTaskOptions,
} from "./models/model-task.ts";
export {
  keyAdvice,
  resolveModel,
  scriptedModel,
  type ModelEnvironment,
  type ResolveModelOptions,
} from "./models/resolve-model.ts";
export { aiSdkProvider, type AiSdkProviderOptions, type ModelTimeouts } from "./models/ai-sdk-provider.ts";
export { fullModelName, MODEL_ALIASES } from "./models/model-names.ts";
export { modelSecrets, PROVIDER_KEYS } from "./models/model-keys.ts";
export { contextWindow, modelPrices, type PriceList } from "./models/prices.ts";

export { ModelLoop, type ModelLoopOptions, type PlaceSession } from "./model-loop/model-loop.ts";
export {
  type AnyCapability,
  type Capability,
  type CapabilityOffer,
  type CapabilitySession,
} from "./model-loop/capability.ts";
export { defineTool, type Tool, type ToolContext } from "./model-loop/tools/tool.ts";
export { type KeepFiles } from "./model-loop/turn/turn-draft.ts";
export { taskTool } from "./model-loop/tools/task-tool.ts";

export {
  type AgentProfile,
  type AgentRecord,
  type AgentSource,
  type PermissionDecision,
  type PermissionRule,
} from "./record/agent-record.ts";
export { ContentStore } from "./contents/content-store.ts";
export { PushedContents, type PushedItem } from "./contents/pushed-contents.ts";
export {
  PROJECT_FILES,
  VARIABLES,
  type NeededTrust,
  type ProjectPath,
  type Variable,
  type VariableKind,
} from "./places/project-inputs.ts";
export { freeShellProblem, decidePlaces } from "./permissions/permissions.ts";
export { isGuard } from "./model-loop/hooks/hook-answer.ts";
export { READING_TOOLS, withinRights } from "./trust/rights.ts";
export { agentFileText } from "./files/agent-file-text.ts";
export { subAgentRecords } from "./record/sub-agents.ts";
export {
  agentPathsIn,
  findAgentFiles,
  foundAt,
  layerOf,
  layersOf,
  type AgentPlaces,
  type OfferedAgent,
  type FoundFile,
} from "./places/agent-places.ts";
export { agentsByName, findAgent, listAgents, usableRecord, type ListedAgent } from "./files/find-agent.ts";
export {
  commandDescription,
  commandNamed,
  expandCommand,
  findCommands,
  type TypedCommand,
} from "./commands/find-commands.ts";
export { SKILL_FILE } from "./places/skill-folders.ts";
export { findUnusedFiles, hasAgentFiles, type UnusedFile } from "./files/unused-files.ts";
export { importedAgents } from "./files/imports/import-files.ts";
export { OutsideRules } from "./files/settings/outside-rules.ts";
export { loadAgentFile, type AgentFile } from "./files/load-agent-file.ts";
export { type FieldVerdict, type Verdict } from "./format/field-report.ts";
export { nameProblem, ofTool } from "./files/dialects/dialect.ts";
export { addProjectRule, readProjectRules, removeProjectRules } from "./permissions/project-rules.ts";
export { ruleText, type ProjectRules, askPermission, subjectsOf } from "./permissions/ask-permission.ts";
export {
  distrustFolder,
  isTrusted,
  isTrustedCode,
  isTrustedContent,
  trustContent,
} from "./trust/trusted-folders.ts";
export { trustAgentFile, trustFolder } from "./files/trust-project.ts";
export { webCapability } from "./web/web-capability.ts";
export { mcpCapability } from "./servers/mcp-capability.ts";
export { variablesOfServers, withMcpServers } from "./servers/session-servers.ts";
export { unmetDemands } from "./record/demands.ts";
export { lethalTrifecta } from "./trust/lethal-trifecta.ts";
export {
  findProfile,
  findUsableProfile,
  readProfileAgents,
  readProfiles,
  type ProfileFile,
} from "./files/profiles.ts";
export { mcpPlace, readMcpFiles, type McpFile, type McpPlace } from "./servers/mcp-files.ts";
export { addMcpServer, removeMcpServer } from "./servers/mcp-registry.ts";
export { findPlugins, type Plugin } from "./files/plugins.ts";
export { compareContents } from "./contents/folder-content.ts";
export { findHiddenText } from "./contents/hidden-text.ts";
export {
  approvedContent,
  approveSkills,
  findSkills,
  readSkill,
  tagSkill,
  versionsOfSkill,
  type Skill,
} from "./skills/find-skills.ts";
export { readFolderContent, type FolderContent } from "./contents/folder-content.ts";
export {
  contentOfVersion,
  findScripts,
  presentContent,
  pushScript,
  pushScriptsOf,
  rollbackScript,
  tagScript,
  type Script,
  usableScript,
} from "./scripts/find-scripts.ts";
export { hashOfVersion, isTag, versionsText, type ContentVersions } from "./contents/content-versions.ts";
export { splitReference } from "./record/content-references.ts";
export { commandPath, otherCommand } from "./scripts/hidden-commands.ts";
export { isScriptName } from "./scripts/script-manifest.ts";
export { writeNewScript } from "./scripts/new-script.ts";
export { parametersOf, usageOf } from "./scripts/script-parameters.ts";
export { checkCall, runScript } from "./scripts/run-script.ts";
export { environmentsBeside, readEnvironments, writeEnvironment } from "./environments/environment-file.ts";
export {
  offeredEnvironment,
  offeredServerEnvironment,
  secretsOfBegun,
  serverEnvironment,
  sessionEnvironment,
  withOwnEnvironments,
  type SessionEnvironment,
} from "./environments/session-environment.ts";
export { siblingsCapability } from "./model-loop/tools/sibling-messages.ts";
export { environmentCapability, type StoredEnvironmentsOf } from "./environments/environment-capability.ts";
export { skillsCapability, skillsLeftOut, skillsOf, withSkillTool } from "./skills/skills-capability.ts";
export { proceduralAgent, type ProceduralAgentOptions } from "./scripts/procedural-agent.ts";
export { scriptCalls, scriptsCapability, scriptsOf, withScriptTools } from "./scripts/scripts-capability.ts";
export { hookAgentsOf, hookScripts, scriptsOfHooks, withHooks } from "./hooks/session-hooks.ts";
export { readHookFiles, type HookFile } from "./hooks/claude-settings.ts";
export { type Instructions } from "./files/instructions.ts";
export {
  instructionsCapability,
  readProjectInstructions,
  type ProjectInstructions,
} from "./files/instructions-capability.ts";
export { ruledPath } from "./permissions/ruled-path.ts";
export { CLAUDE_TOOLS } from "./record/tool-names.ts";
export { requestText, isQueued, type DeliveredMessage } from "./model-loop/request-text.ts";
export { jsoncObject } from "./format/front-matter.ts";
export { FEEDBACK_SIGNALS, feedbackText } from "./model-loop/feedback.ts";
export { workspacesByRoot, type WorkspaceSource } from "./tasks/workspace-source.ts";
export { describeEnd, REPEATABLE } from "./tasks/shell-task.ts";
export { defineWorkspaceTasks } from "./tasks/workspace-tasks.ts";
