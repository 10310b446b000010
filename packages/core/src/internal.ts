// For the sibling packages: what adapters and the runtime share with the core, and authors of agents do not need.

export { ChurnMap } from "./churn-map.ts";
export { seededRandom } from "./kernel/random.ts";
export {
  applyChange,
  applyOverdue,
  remainingFor,
  type Applied,
  type CascadeDoor,
  type ChildRow,
} from "./session/cascade.ts";
export {
  applyBatch,
  createSession,
  decideRelease,
  decideSignal,
  dueAt,
  findImportProblem,
  firstBatch,
  isHeld,
  lookAt,
  NO_CLAIM,
  refuseBatch,
  refuseClaim,
  refuseCreation,
  type BatchLookups,
  type Claim,
  type SignalDecision,
  type SignalFacts,
} from "./session/storage-rules.ts";
export { isForkPending, parentAt, seedAt } from "./session/fork.ts";
export { isDone } from "./kernel/open-items.ts";
export { openAccount, remainingOf } from "./session/budget.ts";
export { isAnsweredBy, resumedFromOf } from "./session/session.ts";
