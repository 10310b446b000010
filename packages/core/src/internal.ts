// The part of the core for sibling packages: adapters and the runtime use it, and authors of agents do not
// need it.

export { VERSION } from "./version.ts";
export { ChurnMap } from "./collections/churn-map.ts";
export { recordWholeError } from "./errors/recorded-error.ts";
export { isOurs } from "./errors/author-line.ts";
export { ifCorrupt, isCorrupt, unlessCorrupt } from "./errors/damage.ts";
export { parseDuration } from "./duration.ts";
export { STOP_GRACE_MS } from "./limits.ts";
export { validateNow } from "./standard-schema.ts";
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
export { isSameRecords } from "./journal/codec.ts";
export { seededRandom } from "./asks/random.ts";
export { applyChange, applyOverdue } from "./transaction/apply-change.ts";
export { listHolds, remainingFor } from "./transaction/charges.ts";
export type {
  ChildRow,
  HoldsByTask,
  LedgerPort,
  NewSession,
  RowPatch,
  RowPort,
  StoredSession,
} from "./transaction/row-port.ts";
export { eachName } from "./transaction/named-by.ts";
export {
  pageOfClaims,
  ALONE_LOSSES_MAX,
  isHeld,
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
export { add as addAmounts } from "./journal/amounts.ts";
export { dedupMark, readDedupMark } from "./rules/signals.ts";
export { dueAt, lookAt } from "./rules/due.ts";
export { absentEnd, endEvent, refuseRequest } from "./rules/consequences.ts";
export { EFFECT_CLASSES } from "./journal/task-policy.ts";
export { isOutcome, noticeOf } from "./journal/record.ts";
export { repliedRequest, replyName, senderChild } from "./journal/signal-names.ts";
export { Followers, type Notice } from "./session/followers.ts";
export { readInPlaceOf } from "./transaction/successors.ts";
export { PendingNames } from "./session/pending-names.ts";
export { isForkPending, parentAt, seedAt } from "./session/fork.ts";
export { isDone } from "./replay/open-items.ts";
export { createdBy, salvaged } from "./replay/segment.ts";
export { openAccount, remainingOf, settleAll } from "./budget/budget.ts";
export {
  BEHAVIOUR,
  isActive,
  newsOf,
  isAnsweredBy,
  isChildOf,
  isLost,
  resumedFromOf,
  UNKNOWN_VERSION,
  refuseNewerSession,
} from "./session/session.ts";
export {
  exportLines,
  importedBy,
  isSameSession,
  notOurs,
  SessionFile,
  type ExportOptions,
  type FileImport,
  type RunningHash,
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
