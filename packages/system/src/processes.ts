// `@holdfast/system/processes`: programs that are started, watched and ended with all that they started.

export { type Answer, askForJson, type ProgramEnd, tryProgram } from "./bounded-calls.ts";
export { findUserNamespace } from "./user-namespace.ts";
export { findNamespaceSupport } from "./processes/pid-namespace.ts";
export { isRunning, type ProcessIdentity, processIdentity } from "./processes/process-identity.ts";
export { endExecution, endTagged, guardedMarker, ProcessSupervisor } from "./processes/process-supervisor.ts";
export { EXECUTION_MARKER, TAG_MARKER } from "./processes/process-tree.ts";
export { killStartedBy } from "./processes/started-processes.ts";
export {
  type ProcessReport,
  type StopOptions,
  type SupervisedProcess,
} from "./processes/supervised-process.ts";
