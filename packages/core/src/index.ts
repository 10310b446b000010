// The public face of the core: what authors, runtimes and adapters may use.

export {
  CancelledError,
  ConflictError,
  CorruptRecordError,
  ERROR_TABLE,
  errorFrom,
  exitCodeOf,
  HoldfastError,
  invariant,
  InvariantError,
  LimitError,
  NondeterminismError,
  NotFoundError,
  recordError,
  TaskFailedError,
  toHoldfastError,
  UnavailableError,
  UsageError,
  WaitTimeoutError,
  type ErrorCode,
  type ErrorDetails,
  type RecordedError,
} from "./errors.ts";
export { decodedPlace, lineOf } from "./author-line.ts";
export { isName, isSessionId, mintId, positionId, type IdPrefix } from "./ids.ts";
export { decodeJson, encodeJson, type Json, type JsonText } from "./json.ts";
export { FORMAT_LIMITS, LIMITS, type Limits } from "./limits.ts";
export { validate, type StandardSchemaV1 } from "./standard-schema.ts";
export {
  AgentContext,
  ConversationRef,
  type EntryInput,
  type QuestionOptions,
  type TaskOptions,
  type TaskType,
  type WaitOptions,
} from "./kernel/context.ts";
export { isApproval, type AnswerShape, type Approval } from "./journal/approval.ts";
export { DurableFuture } from "./kernel/future.ts";
export { type Combinators } from "./kernel/combinators.ts";
export { Kernel, type Ending, type Standstill } from "./kernel/kernel.ts";
export { type KernelOptions } from "./kernel/kernel-options.ts";
export { type SealedSegment } from "./kernel/segment.ts";
export { type OpenTask } from "./kernel/open-items.ts";
export { signalPattern } from "./kernel/pending-signals.ts";
export {
  ANSWER_PREFIX,
  answerSignalName,
  isCommand,
  isEvent,
  isNote,
  JOURNAL_FORMAT,
  type CancelNotice,
  type CommandRecord,
  type EventRecord,
  type JournalRecord,
  type NoteRecord,
  type Question,
  type RetryPolicy,
} from "./journal/record.ts";
export { decodeRecords, encodeRecords, type BlobSink, type BlobSource } from "./journal/codec.ts";
export { describeRecord } from "./kernel/identity.ts";
export {
  isAwaited,
  isCancelOverdue,
  isEnded,
  mayBecome,
  SESSION_STATUSES,
  type AgentRef,
  type CancelRequest,
  type PauseReason,
  type Session,
  type SessionStatus,
  type Wait,
} from "./session/session.ts";
export { mayRetryLost, RETRY_DEFAULTS, retryDelayMs } from "./session/retry.ts";
export { type Clock, type Hash, type Random } from "./ports/clock.ts";
export {
  type IncomingSignal,
  type SignalReceipt,
  type SignalSink,
  type SignalSource,
} from "./ports/signal-source.ts";
export {
  type AgentStorage,
  type Arrival,
  type Arrivals,
  type Change,
  type ChangeResult,
  type ClaimResult,
  type CommitBatch,
  type CreateSession,
  type Due,
  type Entry,
  type FirstBatch,
  type NewEntry,
  type ReleaseClaim,
  type RequestCancel,
  type SendSignal,
  type SessionPatch,
  type SessionSnapshot,
  type StorageReader,
  type StoredSignal,
} from "./ports/storage.ts";
export {
  type AttemptOutcome,
  type ConversationEntry,
  type RunningAttempt,
  type TaskAttempt,
  type TaskDelta,
  type TaskExecutor,
  type TaskTraits,
  type TokenUsage,
} from "./ports/task-executor.ts";
export { type AgentTracer, type TraceBody, type TraceEvent } from "./ports/tracer.ts";
