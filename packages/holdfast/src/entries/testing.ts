// The public API for tests of agents: `import { crashEverywhere } from "holdfast/testing"`. It has crashes at
// every point, a model server whose replies a test writes, and a clock that a test moves. It works in every
// test runner, and without one.

export {
  crashEverywhere,
  memorySubject,
  startScriptedModelServer,
  turns,
  type Conversation,
  type ConversationMessage,
  type ConversationTool,
  type CrashFailure,
  type CrashKind,
  type CrashPoint,
  type CrashReport,
  type CrashSample,
  type CrashScenario,
  type CrashSubject,
  type CrashWorld,
  type ModelFault,
  type ModelFaultPlan,
  type ModelScript,
  type RecordedRequest,
  type Reply,
  type ReplyToolCall,
  type RequestHeaders,
  type Role,
  type ScriptedModelServer,
  type ScriptedModelServerOptions,
  type Snapshot,
  type StopReason,
  type ToolCall,
  type ToolResult,
} from "@holdfast/testkit";
export { TestClock } from "@holdfast/testkit/test-runtime";
