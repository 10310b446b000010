// For the sibling packages, their tests and tools; not for users.

export { checkBounds } from "./bounds.ts";
export { vanishRuntime } from "./runtime.ts";
export { readCron } from "./cron.ts";
export { firingName } from "./schedule-keeper.ts";
export { createPrivate, isWritableByOthers, replacePrivate } from "./private-file.ts";
export { leftAs } from "./settled.ts";
export { EXECUTION_MARKER } from "./started-processes.ts";
