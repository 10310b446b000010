// The session of a queued task: an attempt of a task that another session asked for, on a runner that has the
// task's handler. Its agent is built in, and named after the task's kind.

import { decodeJson } from "../json/json.ts";
import type { Session } from "./session.ts";

const PREFIX = "task:";

/** The name of the built-in agent whose sessions are queued tasks of a kind. */
export function queuedTaskAgent(kind: string): string {
  return `${PREFIX}${kind}`;
}

/** Whether sessions of the agent with this name are queued tasks. */
export function isQueuedTaskAgent(name: string): boolean {
  return name.startsWith(PREFIX);
}

/**
 * The session that asked for a queued task and reads its outcome, by the input of the task's own session. A
 * removal by age leaves the task's session until the asker has ended.
 */
export function askerOf({ agent, input }: Pick<Session, "agent" | "input">): string | undefined {
  if (!isQueuedTaskAgent(agent.name)) return undefined;
  const { task } = (decodeJson(input) ?? {}) as { readonly task?: { readonly sessionId?: string } };
  return task?.sessionId;
}
