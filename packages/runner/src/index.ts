// A runner: what a coordinator gives is run here.

export {
  anthropicProvider,
  openaiProvider,
  startRunGateway,
  type GatewayAnswer,
  type GatewayCall,
  type GatewayHandler,
  type GatewayRoutes,
  type GatewayRun,
  type NetworkPolicy,
  type Provider,
  type RunGateway,
  type RunGatewayOptions,
} from "@holdfast/runtime/gateway";
export { type RefusedAgent } from "./announced-agent.ts";
export { type Catalogue, type CatalogueAgents, type CatalogueOffers } from "./catalogue-sync.ts";
export { type Health } from "./health.ts";
export {
  coordinatorQueue,
  queuedTasks,
  type QueuedResult,
  type QueuedTask,
  type QueuedTasksOptions,
  type TaskQueue,
} from "./queued-tasks.ts";
export { startRunner } from "./runner.ts";
export { type Runner, type RunnerOptions, type WantedTrial } from "./runner-api.ts";
export { type RunnerEvent } from "./runner-event.ts";
export { MAX_RUNS } from "./registration.ts";
export { executorPolicy, type ExecutorLimits } from "./policy/executor-policy.ts";
export { isReachedIn } from "./policy/executor-files.ts";
export {
  checkRunnerPolicy,
  requireExecutor,
  requireFolder,
  takesScript,
  type RunnerPolicy,
} from "./policy/runner-policy.ts";
export { SessionEnvironments } from "./secrets/session-environments.ts";
export { testAgent, type TestStep } from "./test-agent.ts";
