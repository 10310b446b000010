// All durable tasks over a workspace.

import type { TaskDefinition } from "@holdfast/runtime";

import { editFileTask, listFilesTask, readFileTask, searchTask, writeFileTask } from "./file-tasks.ts";
import { gitCommitTask, gitDiffTask, gitStatusTask } from "./git-tasks.ts";
import { shellTask } from "./shell-task.ts";
import type { SessionEnded } from "./workspace-task.ts";
import type { WorkspaceSource } from "./workspace-source.ts";

export type WorkspaceTasks = ReturnType<typeof defineWorkspaceTasks>;

/**
 * The tasks by what they do, for code that schedules them: `ctx.scheduleTask(tasks.readFile, { path })`.
 *
 * @param secrets names of secrets that commands may get.
 */
export function defineWorkspaceTasks(
  source: WorkspaceSource,
  secrets: readonly string[] = [],
  sessionEnded?: SessionEnded,
) {
  return {
    readFile: readFileTask(source),
    writeFile: writeFileTask(source),
    editFile: editFileTask(source),
    listFiles: listFilesTask(source),
    search: searchTask(source),
    shell: shellTask(source, secrets, sessionEnded),
    gitStatus: gitStatusTask(source),
    gitDiff: gitDiffTask(source),
    gitCommit: gitCommitTask(source),
  };
}

/** The tasks as a list, for a runtime or an agent's `tasks`. */
export function workspaceTasks(source: WorkspaceSource): readonly TaskDefinition[] {
  return Object.values(defineWorkspaceTasks(source)) as readonly TaskDefinition[];
}
