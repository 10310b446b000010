// The core, as the other packages use it. Users import `holdfast` (decision 110).

export {
  CancelledError,
  ChildFailedError,
  ConflictError,
  CorruptRecordError,
  exitCodeOf,
  HoldfastError,
  invariant,
  InvariantError,
  LimitError,
  mayAcceptDrift,
  NondeterminismError,
  NotFoundError,
  AttemptLostError,
  TaskFailedError,
  UncertainEffectError,
  toError,
  toHoldfastError,
  UnavailableError,
  UsageError,
  WaitTimeoutError,
  type ErrorDetails,
} from "./errors/errors.ts";
export { ERROR_TABLE, type ErrorCode, type RpcCode } from "./errors/error-table.ts";
export { errorFrom, recordError, type RecordedError, recordWholeError } from "./errors/recorded-error.ts";
export { PauseError, type PauseRequest } from "./errors/pause-error.ts";
export { decodedPlace, framesOf, lineOf, isOurs, stackOf } from "./errors/author-line.ts";
export { isMeantBy, isName, isSessionId, mintId, positionId, positionIn, shortIds } from "./ids.ts";
export { deepFreeze } from "./json/deep-freeze.ts";
export { decodeJson, encodeJson, type Json, type JsonText } from "./json/json.ts";
export { defined } from "./defined.ts";
export { DAY_MS, HOUR_MS, MIB, MINUTE_MS, SECOND_MS } from "./units.ts";
export { FORMAT_LIMITS, LIMITS, type Limits, STOP_GRACE_MS } from "./limits.ts";
export {
  validate,
  type InputArguments,
  type JsonSchema,
  type StandardSchemaV1,
  validateNow,
} from "./standard-schema.ts";
export { AgentContext } from "./kernel/context.ts";
export {
  type EntryInput,
  type HandoffOptions,
  type QuestionOptions,
  type WaitOptions,
} from "./kernel/context-options.ts";
export {
  isApproval,
  readApproval,
  type AnswerShape,
  type Approval,
  type Remember,
} from "./journal/approval.ts";
export type { TaskOptions, TaskType } from "./asks/task-asks.ts";
export type { TaskAnswer, UncertainEffect } from "./kernel/uncertain-effects.ts";
export { type EffectClass, type RetryPolicy, EFFECT_CLASSES } from "./journal/task-policy.ts";
export { type AgentMode, type ChildHandle, type SpawnOptions } from "./asks/child-creation.ts";
export { NO_RELATIONS, type Relations } from "./replay/kernel-options.ts";
export {
  migrateState,
  readState,
  SessionState,
  type Reducer,
  type Reducers,
  type StateDefinition,
  type StatePatch,
} from "./state/session-state.ts";
export { ConversationRef } from "./asks/conversation-ref.ts";
export { DurableFuture } from "./replay/future.ts";
export { type Combinators } from "./kernel/combinators.ts";
export { Kernel } from "./kernel/kernel.ts";
export { type Ending, type Standstill } from "./replay/turn.ts";
export { type KernelOptions, type Whereabouts } from "./replay/kernel-options.ts";
export { type SealedSegment, createdBy, salvaged } from "./replay/segment.ts";
export { type OpenTask, isDone } from "./replay/open-items.ts";
export {
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
  type Repeat,
  type TokenUsage,
  isOutcome,
  noticeOf,
} from "./journal/record.ts";
export {
  answerSignalName,
  CHILD_ENDED,
  isReservedName,
  NEXT_INPUT,
  repliedRequest,
} from "./journal/signal-names.ts";
export {
  decodeRecords,
  encodeRecords,
  type BlobSink,
  type BlobSource,
  isSameRecords,
} from "./journal/codec.ts";
export { describeRecord } from "./replay/identity.ts";
export {
  isAwaited,
  isEnded,
  isLost,
  mayBecome,
  BEHAVIOUR_FLAGS,
  SESSION_STATUSES,
  type AgentRef,
  type CancelRequest,
  type ParentEndPolicy,
  type ParentNotice,
  type ParentRef,
  type PauseReason,
  type QuotaWait,
  type Persistence,
  type Placement,
  type Session,
  type SessionStatus,
  type ForkOrigin,
  type SharedContext,
  type GivenEnvironment,
  type Wait,
  isActive,
  newsOf,
  isAnsweredBy,
  isChildOf,
  resumedFromOf,
  UNKNOWN_VERSION,
  refuseNewerSession,
} from "./session/session.ts";
export { overdueAt, resumesAt, dueAt, lookAt } from "./rules/due.ts";
export { type CancelCause, type SessionCost, add as addAmounts } from "./journal/amounts.ts";
export {
  usesOf,
  NO_AMOUNT,
  type Account,
  type Admission,
  type Budget,
  type BudgetWindow,
  type Charge,
  type Exhausted,
  type Hold,
  type AmountLimits,
  type LimitUse,
  openAccount,
  remainingOf,
  settleAll,
} from "./budget/budget.ts";
export { checkBudget, checkPer } from "./budget/check-budget.ts";
export { PERIODS, spentIn, type Per } from "./budget/windows.ts";
export type { Amount, RemainingBudget } from "./journal/amounts.ts";
export { forkSession, type ForkRequest, isForkPending, parentAt, seedAt } from "./session/fork.ts";
export {
  isLastEvent,
  type Callback,
  type ChildEvent,
  absentEnd,
  endEvent,
  refuseRequest,
} from "./rules/consequences.ts";
export { mayRetryLost, RETRY_DEFAULTS, retryDelayMs } from "./session/retry.ts";
export { type Clock, type Random } from "./ports/clock.ts";
export type { Hash } from "./hash.ts";
export {
  type IncomingSignal,
  type SignalReceipt,
  type SignalSink,
  type SignalSource,
} from "./ports/signal-source.ts";
export { type ClaimResult, type HeldClaim } from "./session/claim-results.ts";
export { NEVER, type Schedule, type ScheduledAction } from "./session/schedules.ts";
export {
  type AgentStorage,
  type RenewInThread,
  type SessionCounts,
  type StorageReader,
  type ThreadRenewal,
} from "./ports/storage.ts";
export {
  DRAFT_CHARS_MAX,
  type Draft,
  type NewDrafts,
  type SharedDrafts,
  type ShownDraft,
} from "./ports/shared-drafts.ts";
export {
  type Arrival,
  type Arrivals,
  type Audited,
  type Change,
  type ChangeResult,
  type CommitBatch,
  type CreateSession,
  type DeleteSession,
  type Due,
  type Effect,
  type Entry,
  type FireSchedule,
  type FirstBatch,
  type HeldAs,
  type ImportedSession,
  type ImportSession,
  type ImportTree,
  type NewEntry,
  type Paid,
  type PauseSession,
  type ReleaseClaim,
  type RunNote,
  type RequestCancel,
  type ResumeSession,
  type SeenSignals,
  type SendSignal,
  type SessionPatch,
  type SessionSnapshot,
  type SetBudget,
  type SetTitle,
  type StoredSignal,
} from "./session/changes.ts";
export { type Audit, type AuditRow } from "./session/audit/audit.ts";
export { type PutDocument, type RemoveDocument, type StoredDocument } from "./session/stored-documents.ts";

export { AuditWalk, verifyAudit, type AuditLink, type AuditVerdict } from "./session/audit/audit-chain.ts";
export {
  type AttemptOutcome,
  type Prices,
  type TaskCost,
  type ConversationEntry,
  type RunningAttempt,
  type TaskAttempt,
  type TaskDelta,
  type LostAttempt,
  type TaskExecutor,
  type TaskTraits,
  type UnsettledTask,
} from "./ports/task-executor.ts";
export { type AgentTracer, type TraceBody, type TraceEvent } from "./ports/tracer.ts";
export { traceJson, traceLine, type TraceTextOptions } from "./ports/trace-text.ts";
export { VERSION } from "./version.ts";
export { ChurnMap } from "./collections/churn-map.ts";
export { ifCorrupt, isCorrupt, unlessCorrupt } from "./errors/damage.ts";
export { parseDuration } from "./duration.ts";
export { didYouMean } from "./errors/did-you-mean.ts";
export {
  anyRule,
  checkOptions,
  flagRule,
  functionRule,
  listRule,
  msRule,
  objectRule,
  oneOfRule,
  textRule,
  wholeRule,
  wrongArgument,
  type OptionRule,
  type OptionRules,
} from "./options.ts";
export { cannotListen } from "./errors/cannot-listen.ts";
export { jsonSyntaxProblem } from "./json/json-syntax.ts";
export { contentPathProblem, contentText, isPortableName } from "./contents/content-files.ts";
export { schemaProblemText } from "./json/schema-problem.ts";
export { endOfString, findPayloadProblem, NUMERIC, skip, type Span } from "./json/json-text.ts";
export { checkGrace } from "./asks/checks.ts";
export { applyChange, applyOverdue } from "./transaction/apply-change.ts";
export { listHolds, remainingFor } from "./transaction/charges.ts";
export {
  type ChildRow,
  type LedgerPort,
  type NewSession,
  type RowPatch,
  type RowPort,
} from "./transaction/row-port.ts";
export { eachName } from "./transaction/named-by.ts";
export {
  pageOfClaims,
  ALONE_LOSSES_MAX,
  isPoison,
  isSuspect,
  SUSPECT_LOSSES,
  claimedAfter,
  nextClaim,
  NO_CLAIM,
  isProof,
  provenClaim,
  refuseClaim,
  releasedClaim,
  renewedClaim,
  type Claim,
} from "./rules/claims.ts";
export { createSession } from "./rules/creation.ts";
export { dedupMark, readDedupMark } from "./rules/signals.ts";
export { Followers, type Notice } from "./session/followers.ts";
export { isRemovable } from "./transaction/deletion.ts";
export { askerOf, isQueuedTaskAgent, queuedTaskAgent } from "./session/queued-task-session.ts";
export { readInPlaceOf } from "./transaction/successors.ts";
export { PendingNames } from "./session/pending-names.ts";
export {
  exportLines,
  importedBy,
  isSameSession,
  notOurs,
  SessionFile,
  type ExportOptions,
  type FileImport,
} from "./transfer/session-file.ts";
export { readOrigin, readWhole } from "./transfer/whole-session.ts";
export {
  noSuchQuestion,
  answerKey,
  openQuestion,
  refuseAnswer,
  refuseIfLarge,
  refuseSignalName,
} from "./session/requests.ts";
export { isStorageCall, parseChange } from "./ports/storage-wire-check.ts";
export { storageWith } from "./ports/storage-with.ts";
export {
  askedQuestions,
  auditBefore,
  auditEnd,
  findAnswerer,
  isAuditedAnswer,
  withAnswerDetails,
} from "./ports/answer-audit.ts";
export { hideSecrets, isPlaceholder, isSecretField, secretLook } from "./json/secret-looks.ts";
export { TITLE_CHARS, titleFrom } from "./title.ts";
export {
  fromWireError,
  leaseFromWire,
  toWireError,
  withLease,
  type StorageMethod,
  type WireError,
} from "./ports/storage-wire.ts";
export { effectOfFiring } from "./rules/firing.ts";
export { repeat, type Repetition } from "./time/repeat.ts";
export { SteadyClock } from "./time/steady-clock.ts";
export { ENDED_RUNS, endedRunsOf, type EndedRun } from "./transaction/ended-runs.ts";
export { Fifo } from "./collections/fifo.ts";
export { WakeQueue, type Queued } from "./collections/wake-queue.ts";
export {
  environmentRule,
  isSameEnvironment,
  missingVariablesText,
  variablesMissingIn,
} from "./environment/given-environment.ts";
export {
  BASE_ENVIRONMENT,
  checkEnvironment,
  checkEnvironmentName,
  checkKey,
  checkValue,
  ENVIRONMENT_LIMITS,
  hasValue,
  isVariableName,
  keyOver,
  keysOver,
  keysWithoutValue,
  mergeEnvironments,
  type EnvironmentKey,
  type EnvironmentKeys,
  type Environments,
  type MergedKeys,
} from "./environment/environments.ts";
