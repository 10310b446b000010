// A runner: what a coordinator gives is run here.

export { type Health } from "./health.ts";
export {
  coordinatorQueue,
  queuedTasks,
  type QueuedResult,
  type QueuedTask,
  type QueuedTasksOptions,
  type TaskQueue,
} from "./queued-tasks.ts";
export { startRunner, type Runner, type RunnerEvent, type RunnerOptions } from "./runner.ts";
export { testAgent, type TestStep } from "./test-agent.ts";
