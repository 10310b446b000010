// `sessionWork`, `mergeSession`: the work of one session in its worktree, for the page of `holdfast ui`. It reads
// what `holdfast diff` and `holdfast worktrees` read, and merges as `holdfast merge` does.

import type { Session } from "@holdfast/core";
import type { WorktreeWork } from "@holdfast/workspace";
import type { Io } from "@holdfast/terminal/frame/command";
import { agentPlaces } from "../agent-places.ts";
import { findSandboxRoot } from "../sandbox-settings.ts";
import { worktreesOf } from "@holdfast/machine/session-folder";

/** `none`: the session has no worktree of this project. */
export type SessionWork = ({ readonly status: "there" } & WorktreeWork) | { readonly status: "none" };

/** A session of this project. An earlier one of the same id had another time of its start. */
export type WorkOf = Pick<Session, "sessionId" | "createdAt">;

export async function sessionWork({ sessionId, createdAt }: WorkOf, io: Io): Promise<SessionWork> {
  const worktrees = worktreesOf(agentPlaces(io));
  const work = await worktrees.work(findSandboxRoot(io).value, sessionId, String(createdAt));
  return work === undefined ? { status: "none" } : { status: "there", ...work };
}

/** The merge that a person on a page agreed to. */
export interface MergeOfWork {
  /** Whether to commit first what is not committed in the worktree. */
  readonly commit: boolean;
  /** The revision that the person saw. */
  readonly revision: string;
  /** The title of the session. */
  readonly title: string | undefined;
  /** Whether that person is not on this machine. */
  readonly isRemote: boolean;
}

/**
 * Merges the work of a session into the current branch of the project.
 *
 * @throws HoldfastError `conflict`, `uncommitted_changes` or `policy_denied`, with the project as it was.
 */
export async function mergeSession(
  { sessionId, createdAt }: WorkOf,
  { commit, revision, title, isRemote }: MergeOfWork,
  io: Io,
): Promise<object> {
  const project = findSandboxRoot(io).value;
  const worktrees = worktreesOf(agentPlaces(io));
  // A page means one session, and learns of no other.
  const { session } = await worktrees.find(project, sessionId, String(createdAt));
  const merge = workMessage(session, title);
  const messages = commit ? { merge, commit: merge } : { merge };
  return worktrees.merge(project, session, { ...messages, revision, isRemote });
}

/** The message of a commit or a merge. It names the session. */
export function workMessage(session: string, text = `Work of session ${session}`): string {
  return `${text}\n\nHoldfast-Session: ${session}\n`;
}
