// The facts about its workspace that a session of the model loop reads once, when it starts.

import { checkedOutBranch, type PathMask, type Workspace } from "@holdfast/workspace";

export interface WorkspaceFacts {
  /** Absolute path. */
  readonly root: string;
  /** The name of the workspace in inputs of tasks; the root where it is absent, as in sessions of before. */
  readonly address?: string;
  /** The paths that the sandbox keeps from commands, because rules of the agent deny them. */
  readonly mask?: PathMask;
  /** The folder that stands for the project, in a session that works in a worktree of it. */
  readonly worktree?: string;
  /** The workspace's own description of what it contains and what it does not, for the person who approves. */
  readonly containment: string;
  /** The branch that is checked out, `null` outside a repository. */
  readonly branch: string | null;
  /** The day on which the session started, as `2026-11-23`. */
  readonly today: string;
}

export async function readWorkspaceFacts(
  workspace: Workspace,
  address: string,
  signal: AbortSignal,
): Promise<WorkspaceFacts> {
  const branch = await checkedOutBranch(workspace.root);
  signal.throwIfAborted();
  return {
    root: workspace.root,
    address: workspace.sandbox === "filesystem" ? workspace.root : address,
    containment: workspace.describe(),
    branch,
    today: new Date().toISOString().slice(0, 10),
  };
}

/** The name of the workspace in inputs of tasks. */
export function addressOf(workspace: WorkspaceFacts | null): string {
  return workspace?.address ?? workspace?.root ?? ".";
}
