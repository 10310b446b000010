// The parts of a runner, for whoever runs it without a network around it: the simulator.

export { CLAIM_AGE_MS, DispatchedStorage, givenBy, sentWith } from "./dispatched-storage.ts";
export { PollLoop, type Poll } from "./poll-loop.ts";
