// `listTasks`: a page of the tasks of an agent, newest first.
//
// Sessions have statuses, and not the states of tasks. Where a filter has no index, sessions are read until the
// page is full, and at most `READS_MAX` pages of them.

import { defined } from "@holdfast/core";
import {
  taskStateFromJSON,
  TaskState,
  type ListTasksRequest,
  type ListTasksResponse,
  type Task,
} from "@a2a-js/sdk";
import type { ListSessionsResponse, Session } from "@holdfast/proto";

import { contextOf } from "./task-ids.ts";
import { statusOf } from "./task-view.ts";

const PAGE = 50;
const READ = 100;
const READS_MAX = 20;

/** The only status of sessions with the state. */
const STATUSES: { readonly [state in TaskState]?: string } = {
  [TaskState.TASK_STATE_SUBMITTED]: "submitted",
  [TaskState.TASK_STATE_COMPLETED]: "completed",
  [TaskState.TASK_STATE_FAILED]: "failed",
  [TaskState.TASK_STATE_CANCELED]: "cancelled",
  [TaskState.TASK_STATE_AUTH_REQUIRED]: "paused",
};

export interface TaskSource {
  readonly page: (query: {
    readonly limit: number;
    readonly cursor?: string;
    readonly status?: string;
    readonly text?: string;
  }) => Promise<ListSessionsResponse>;
  readonly task: (session: Session) => Promise<Task>;
}

export async function listTasks(request: ListTasksRequest, source: TaskSource): Promise<ListTasksResponse> {
  const { contextId, pageToken, includeArtifacts } = request;
  const pageSize = request.pageSize === undefined || request.pageSize === 0 ? PAGE : request.pageSize;
  const matches = filterOf(request);
  const status = STATUSES[request.status];
  const query = {
    limit: READ,
    ...defined({ status }),
    ...(contextId === "" ? {} : { text: contextId }),
  };
  const found: Session[] = [];
  let cursor: string | undefined = pageToken === "" ? undefined : pageToken;
  for (let reads = 0; reads < READS_MAX; reads++) {
    const page = await source.page({ ...query, ...defined({ cursor }) });
    const left = pageSize - found.length;
    const matching = page.sessions.filter(matches);
    found.push(...matching.slice(0, left));
    const isCut = matching.length > left;
    cursor = isCut ? found.at(-1)!.sessionId : page.nextCursor;
    if (isCut || cursor === undefined || found.length === pageSize) break;
  }
  const tasks = await Promise.all(found.map((session) => source.task(session)));
  return {
    tasks: includeArtifacts === true ? tasks : tasks.map((task) => ({ ...task, artifacts: [] })),
    nextPageToken: cursor ?? "",
    pageSize,
    totalSize: tasks.length,
  };
}

function filterOf({
  contextId,
  status,
  statusTimestampAfter,
}: ListTasksRequest): (session: Session) => boolean {
  const state = taskStateFromJSON(status);
  const after = statusTimestampAfter === undefined ? -Infinity : Date.parse(statusTimestampAfter);
  return (session) => {
    const shown = statusOf(session);
    return (
      (contextId === "" || contextOf(session.sessionId) === contextId) &&
      (state === TaskState.TASK_STATE_UNSPECIFIED || shown.state === state) &&
      Date.parse(shown.timestamp) > after
    );
  };
}
