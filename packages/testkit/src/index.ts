// The shared parts of tests of agents and of adapters. The conformance suites are apart, under
// `@holdfast/testkit/…-conformance`: they import vitest, and this entry must work without a test runner.

export {
  crashEverywhere,
  memorySubject,
  playScenario,
  type Composition,
  type TaskQueuePort,
  type CrashSample,
  type CrashScenario,
  type CrashSubject,
  type CrashWorld,
  type Snapshot,
} from "./crash/crash-everywhere.ts";
export {
  type CrashFailure,
  type CrashKind,
  type CrashPoint,
  type CrashReport,
} from "./crash/crash-report.ts";
export { CanaryScan, entriesBelow } from "./canary-scan.ts";
export { armScan } from "./canary-watch.ts";
export { crashScenarios } from "./crash/crash-scenarios.ts";
export {
  describeChanges,
  faultyStorage,
  type CommitCall,
  type FaultKind,
  type FaultPlan,
  type FaultyStorage,
} from "./faulty-storage.ts";
export {
  startScriptedModelServer,
  type ScriptedModelServer,
  type ScriptedModelServerOptions,
} from "./scripted-model-server.ts";
export type {
  Conversation,
  ConversationMessage,
  ConversationTool,
  Role,
  ToolCall,
  ToolResult,
} from "./scripted-model/conversation.ts";
export type { ModelFault, ModelFaultPlan } from "./scripted-model/faults.ts";
export {
  turns,
  type ModelScript,
  type Reply,
  type ReplyToolCall,
  type StopReason,
} from "./scripted-model/script.ts";
export type { RecordedRequest, RequestHeaders } from "./scripted-model/wire.ts";
export { startA2aServer, type A2aServer } from "./a2a-server/a2a-server.ts";
export {
  startMcpHttpServer,
  type McpHttpOptions,
  type McpHttpServer,
  type McpMessage,
} from "./mcp-server/mcp-http-server.ts";
export { startOauthServer, type OauthOptions, type OauthServer } from "./mcp-server/oauth-server.ts";
