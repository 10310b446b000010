// For the sibling packages, their tests and tools; not for users.

export { checkBounds } from "./agents/bounds.ts";
export { vanishRuntime } from "./runtime.ts";
export { readCron } from "./schedules/cron.ts";
export { firingName } from "./schedules/schedule-keeper.ts";
export { createPrivate, isWritableByOthers, replacePrivate } from "./node/private-file.ts";
export { Redactor, type RedactedStream } from "./secrets/redactor.ts";
export { leftAs } from "./session/session-outcome.ts";
export { EXECUTION_MARKER } from "./isolation/started-processes.ts";
