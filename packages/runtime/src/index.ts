// The runtime: agents as async functions, run over ports.

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
  type TaskDefinition,
  type TurnAgent,
  type TurnResult,
} from "./define.ts";
export { createRuntime } from "./runtime.ts";
export { exportLines } from "./session-file.ts";
export { moveSession, type MoveOptions } from "./move-session.ts";
export {
  type AnswerOptions,
  type CancelOptions,
  type CancelReceipt,
  type ForkOptions,
  type ImportOptions,
  type Firing,
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
} from "./runtime-api.ts";
export { channelSignals, type ChannelSignals } from "./channel-signals.ts";
export { readSignalLine, stdinSignals, type LineMeaning, type StdinSignalsOptions } from "./stdin-signals.ts";
export {
  attemptFailure,
  LocalTaskExecutor,
  performTask,
  resolveConversations,
  traitsOf,
  type LocalTaskExecutorOptions,
} from "./local-task-executor.ts";
export { MemoryStorage } from "./memory-storage.ts";
export { clockFor, sha256, silentTracer, systemClock, systemRandom } from "./node-ports.ts";
export { type Immediate, type SliceMember, type SliceObserver } from "./slice-loop.ts";
export { Watchdog, type WatchdogOptions } from "./watchdog.ts";
export { type Settled } from "./settled.ts";
export { compositeTracer } from "./tracers/composite-tracer.ts";
export { fileTracer, type FileTracerOptions } from "./tracers/file-tracer.ts";
export { stdoutTracer, type StdoutTracerOptions } from "./tracers/stdout-tracer.ts";
export {
  ownerOfTurn,
  replaySession,
  type ReplayOptions,
  type ReplayStand,
  type ReplayStep,
} from "./replay-session.ts";
