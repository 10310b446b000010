// The runtime: agents as async functions, run over ports. Users import `holdfast` (decision 110).

export {
  defineAgent,
  defineTask,
  isAgent,
  local,
  NonRetryableError,
  remote,
  type Agent,
  type AgentContext,
  type RunAgent,
  type TaskContext,
  type TaskSignalOptions,
  type SessionLeft,
  type TaskDefinition,
  type TurnAgent,
  type TurnResult,
} from "./agents/define.ts";
export { createRuntime } from "./runtime.ts";
export { exportLines } from "./requests/session-file.ts";
export { moveSession } from "./requests/move-session.ts";
export {
  type AnswerOptions,
  type CancelOptions,
  type CancelReceipt,
  type ExportOptions,
  type ForkOptions,
  type ImportOptions,
  type Firing,
  type GivenClaim,
  type CloseOptions,
  type ResumeOptions,
  type Runtime,
  type RuntimeOptions,
  type ScheduleOptions,
  type ScheduleRequest,
  type SessionHandle,
  type SignalOptions,
  type StartOptions,
  type ResultOptions,
} from "./api/runtime-api.ts";
export { channelSignals, type ChannelSignals } from "./sources/channel-signals.ts";
export {
  readSignalLine,
  stdinSignals,
  type LineMeaning,
  type StdinSignalsOptions,
} from "./sources/stdin-signals.ts";
export { attemptFailure } from "./tasks/local/attempt-failure.ts";
export { LocalTaskExecutor } from "./tasks/local/local-task-executor.ts";

export { performTask, resolveConversations, traitsOf } from "./tasks/local/task-call.ts";
export { MemoryStorage } from "./memory/memory-storage.ts";
export { limitProcessMemory } from "./node/process-memory.ts";
export { clockFor, sha256, silentTracer, systemClock, systemRandom } from "./node/node-ports.ts";
export { type Immediate, type SliceObserver } from "./loop/slice-loop.ts";
export { Watchdog, type WatchdogOptions } from "./isolation/watchdog.ts";
export { type Settled, leftAs } from "./session/session-outcome.ts";
export { compositeTracer } from "./tracers/composite-tracer.ts";
export { fileTracer, type FileTracerOptions } from "./tracers/file-tracer.ts";
export { openTelemetryTracer, type OpenTelemetryTracerOptions } from "./tracers/opentelemetry-tracer.ts";
export { otlpTracer } from "./tracers/otlp-tracer.ts";
export { stdoutTracer, type StdoutTracerOptions } from "./tracers/stdout-tracer.ts";
export {
  ownerOfTurn,
  replaySession,
  type ReplayOptions,
  type ReplayStand,
  type ReplayStep,
} from "./requests/replay-session.ts";
export { KnownAgents } from "./agents/agent-registry.ts";
export { checkBounds } from "./agents/bounds.ts";
export { requestsOver, SessionRequests } from "./requests/session-requests.ts";
export { importInTaskThreads } from "./tasks/local/task-thread.ts";
export { readCron } from "./schedules/cron.ts";
export { firingName } from "./schedules/schedule-keeper.ts";
export { sessionPaused } from "./session/session-errors.ts";
