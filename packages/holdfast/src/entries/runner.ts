// The public API for programs that run for a coordinator: `import { startRunner } from "holdfast/runner"`. It
// is separate from `holdfast` because it loads network code, which agents and tests do not need.

export {
  checkExecutor,
  executorAgent,
  executorAt,
  ExecutorHost,
  findExecutor,
  type CheckedClause,
  type CheckOptions,
  type ExecutorHostOptions,
  type ExecutorProfile,
  type ExecutorResult,
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
