// The public API for programs that run for a coordinator: `import { startRunner } from "holdfast/runner"`. It
// is separate from `holdfast` because it loads network code, which agents and tests do not need.

export {
  type AllowedExecutor,
  checkExecutor,
  Executor,
  executorAgent,
  executorAt,
  findExecutor,
  type CheckedClause,
  type CheckOptions,
  type ExecutorOptions,
  type ExecutorPolicy,
  type ExecutorProfile,
  type ExecutorResult,
} from "@holdfast/programs";
export {
  coordinatorQueue,
  queuedTasks,
  startRunner,
  testAgent,
  type Health,
  type QueuedResult,
  type QueuedTask,
  type QueuedTasksOptions,
  type Runner,
  type RunnerEvent,
  type RunnerOptions,
  type TaskQueue,
  type TestStep,
} from "@holdfast/runner";
export {
  CoordinatorConnection,
  openRemoteStorage,
  type ConnectionOptions,
  type RemoteStorageOptions,
} from "@holdfast/storage/remote";
