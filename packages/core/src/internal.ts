// For the sibling packages: what adapters and the runtime share with the core, and authors of agents do not need.

export { seededRandom } from "./kernel/random.ts";
export {
  applyBatch,
  createSession,
  decideCancel,
  decideRelease,
  decideSignal,
  dueAt,
  endOverdue,
  firstBatch,
  isAnsweredBy,
  isHeld,
  lookAt,
  NO_CLAIM,
  refuseBatch,
  refuseClaim,
  type BatchLookups,
  type CancelDecision,
  type Claim,
  type SignalDecision,
  type SignalFacts,
} from "./session/storage-rules.ts";
