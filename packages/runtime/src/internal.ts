// For tests and the simulator. Other packages use the index.

export { vanishRuntime } from "./runtime.ts";

export { BlockedRenewal } from "./isolation/blocked-renewal.ts";
export type { HeldClaims } from "./isolation/watchdog.ts";
export { WatchdogMemory } from "./isolation/watchdog-memory.ts";

export { leaseLost } from "./session/session-errors.ts";
