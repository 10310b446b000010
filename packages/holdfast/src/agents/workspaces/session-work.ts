// `sessionWork`, `mergeSession`: the work of one session in its worktree, for the page of `holdfast ui`. It reads
// what `holdfast diff` and `holdfast worktrees` read, and merges as `holdfast merge` does.

import type { WorktreeWork } from "@holdfast/workspace";
import type { Io } from "@holdfast/terminal/frame/command";
import { agentPlaces } from "../agent-places.ts";
import { findSandboxRoot } from "../sandbox-settings.ts";
import { worktreesOf } from "@holdfast/machine/session-folder";

/** `none`: the session has no worktree of this project. */
export type SessionWork = ({ readonly status: "there" } & WorktreeWork) | { readonly status: "none" };

export async function sessionWork(sessionId: string, io: Io): Promise<SessionWork> {
  const work = await worktreesOf(agentPlaces(io)).work(findSandboxRoot(io).value, sessionId);
  return work === undefined ? { status: "none" } : { status: "there", ...work };
}

/**
 * Merges the work of a session into the current branch of the project.
 *
 * @param options `commit`: first commit what is not committed in the worktree. `title`: that of the session.
 * @throws HoldfastError `conflict` or `uncommitted_changes`, with the project and the worktree as they were.
 */
export async function mergeSession(
  sessionId: string,
  { commit, title }: { readonly commit: boolean; readonly title: string | undefined },
  io: Io,
): Promise<object> {
  const project = findSandboxRoot(io).value;
  const worktrees = worktreesOf(agentPlaces(io));
  // A caller elsewhere means one session, and learns of no other.
  const { session } = await worktrees.find(project, sessionId, true);
  const merge = workMessage(session, title);
  return worktrees.merge(project, session, commit ? { merge, commit: merge } : { merge });
}

/** The message of a commit or a merge. It names the session. */
export function workMessage(session: string, text = `Work of session ${session}`): string {
  return `${text}\n\nHoldfast-Session: ${session}\n`;
}
