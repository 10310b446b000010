// The parts of a runner for the simulator, which runs them without a network.

export { CLAIM_AGE_MS, givenBy } from "./polls/claims.ts";
export { DispatchedStorage, sentWith } from "./dispatched-storage.ts";
export { PollLoop, type Poll } from "./polls/poll-loop.ts";
