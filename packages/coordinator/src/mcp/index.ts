// The orchestrator's tools for a process that reaches a coordinator over a connection.

export {
  OrchestratorMemory,
  stateKeyOf,
  type Orchestrator,
  type OrchestratorSettings,
} from "./orchestrator.ts";
export { splitTags } from "./request-context.ts";
export { orchestratorServer } from "./orchestrator-tools.ts";
