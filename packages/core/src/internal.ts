// For tests, the testkit and the simulator. Other packages use the index.

export { seededRandom } from "./asks/random.ts";
export type { HoldsByTask, StoredSession } from "./transaction/row-port.ts";
export { isHeld } from "./rules/claims.ts";
export { replyName, senderChild } from "./journal/signal-names.ts";
export { BEHAVIOUR } from "./session/session.ts";
export { type RunningHash } from "./transfer/session-file.ts";
