// For the sibling packages, their tests and tools; not for users.

export { checkBounds } from "./agents/bounds.ts";
export { requestsOver, SessionRequests } from "./requests/session-requests.ts";
export { importInTaskThreads } from "./tasks/local/task-thread.ts";
export { vanishRuntime } from "./runtime.ts";
export { readCron } from "./schedules/cron.ts";

export { firingName } from "./schedules/schedule-keeper.ts";

export { BlockedRenewal } from "./isolation/blocked-renewal.ts";
export type { HeldClaims } from "./isolation/watchdog.ts";
export { WatchdogMemory } from "./isolation/watchdog-memory.ts";

export { leaseLost, sessionPaused } from "./session/session-errors.ts";
export { leftAs } from "./session/session-outcome.ts";
