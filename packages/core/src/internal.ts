// For the sibling packages: what adapters and the runtime share with the core, and authors of agents do not need.

export { ChurnMap } from "./collections/churn-map.ts";
export { isOurs } from "./errors/author-line.ts";
export { ifCorrupt, isCorrupt, unlessCorrupt } from "./errors/damage.ts";
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
export { endOfString, findPayloadProblem, NUMERIC, skip, type Span } from "./json/json-text.ts";
export { checkGrace } from "./kernel/checks.ts";
export { isSameRecords } from "./journal/codec.ts";
export { seededRandom } from "./kernel/random.ts";
export {
  applyChange,
  applyOverdue,
  remainingFor,
  type Applied,
  type CascadeDoor,
  type ChildRow,
} from "./session/cascade.ts";
export { eachName } from "./session/named-by.ts";
export {
  decideRelease,
  pageOfClaims,
  isHeld,
  nextClaim,
  NO_CLAIM,
  isProof,
  provenClaim,
  refuseClaim,
  releasedClaim,
  renewedClaim,
  type Claim,
} from "./session/claims.ts";
export {
  applyBatch,
  createSession,
  decideSignal,
  findImportProblem,
  firstBatch,
  dedupMark,
  readDedupMark,
  refuseBatch,
  refuseCreation,
  type BatchLookups,
  type SignalDecision,
  type SignalFacts,
} from "./session/storage-rules.ts";
export { dueAt, lookAt } from "./session/due.ts";
export { endEvent, refuseRequest } from "./session/consequences.ts";
export { isOutcome, noticeOf } from "./journal/record.ts";
export { repliedRequest, replyName, tellingChild } from "./journal/signal-names.ts";
export { Followers } from "./session/followers.ts";
export { readInPlaceOf } from "./session/heirs.ts";
export { PendingNames } from "./session/pending-names.ts";
export { isForkPending, parentAt, seedAt } from "./session/fork.ts";
export { isDone } from "./kernel/open-items.ts";
export { createdBy, salvaged } from "./kernel/segment.ts";
export { openAccount, remainingOf, settleAll } from "./session/budget.ts";
export {
  BEHAVIOUR,
  goesOn,
  newsOf,
  isAnsweredBy,
  isChildOf,
  isLost,
  resumedFromOf,
  UNKNOWN_VERSION,
  refuseNewerSession,
} from "./session/session.ts";
export { exportLines, notOurs, SessionFile, type RunningHash } from "./transfer/session-file.ts";
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
export { effectOfFiring } from "./session/firing.ts";
export { SteadyClock } from "./time/steady-clock.ts";
export { ENDED_RUNS, endedRunsOf, type EndedRun } from "./session/ended-runs.ts";
export { Fifo } from "./collections/fifo.ts";
export { WakeQueue, type Queued } from "./collections/wake-queue.ts";
