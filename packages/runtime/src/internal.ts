// For the sibling packages, their tests and tools; not for users.

export { checkBounds } from "./agents/bounds.ts";
export { requestsOver, SessionRequests } from "./requests/session-requests.ts";
export { importInTaskThreads } from "./tasks/local/task-thread.ts";
export { vanishRuntime } from "./runtime.ts";
export { readCron } from "./schedules/cron.ts";
export { isOlder, packageVersion } from "./node/package-version.ts";
export { addressKind, type AddressKind } from "./node/address-kind.ts";
export { firingName } from "./schedules/schedule-keeper.ts";
export {
  createPrivate,
  isWritableByOthers,
  makePrivateFolder,
  openPrivateAppend,
  replacePrivate,
} from "./node/private-file.ts";
export { withHandedKeys, withoutKeys, replaceWithoutKeys, type OwnKeys } from "./secrets/handed-keys.ts";
export { keyVariables, PROVIDER_KEY_NAMES } from "./secrets/key-variables.ts";
export { BlockedRenewal } from "./isolation/blocked-renewal.ts";
export type { HeldClaims } from "./isolation/watchdog.ts";
export { WatchdogMemory } from "./isolation/watchdog-memory.ts";
export { findUserNamespace } from "./isolation/user-namespace.ts";
export { isSecretName } from "./secrets/declared-secrets.ts";
export { secretForms } from "./secrets/secret-forms.ts";
export { Redactor, type RedactedStream } from "./secrets/redactor.ts";
export { leaseLost, sessionPaused } from "./session/session-errors.ts";
export { leftAs } from "./session/session-outcome.ts";
export {
  INHERITED_VARIABLES,
  layeredEnvironment,
  scrubEnvironment,
  type Environment,
} from "./processes/environment.ts";
export { OutputCapture } from "./processes/output-capture.ts";
export { OutputLines } from "./processes/output-lines.ts";
export {
  describeProcessEnd,
  isUrgentAbort,
  type ProcessEnd,
  type StopMeans,
} from "./processes/process-end.ts";
export { isRunning, processIdentity, type ProcessIdentity } from "./processes/process-identity.ts";
export { findNamespaceSupport } from "./processes/pid-namespace.ts";
export { EXECUTION_MARKER, TAG_MARKER } from "./processes/process-tree.ts";
export {
  endExecution,
  endTagged,
  guardedMarker,
  ProcessSupervisor,
  type SupervisorOptions,
} from "./processes/process-supervisor.ts";
export {
  type ProcessReport,
  type StartOptions,
  type StopOptions,
  type SupervisedProcess,
} from "./processes/supervised-process.ts";
