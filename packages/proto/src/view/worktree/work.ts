// `workText`: what is open in the worktree of a session, as the command and a page show it.

/** The facts about a worktree, as far as they say what is open in it. */
export interface PlainWorktree {
  readonly state: "creating" | "ready" | "removing" | "removed";
  readonly isThere: boolean;
  readonly head: string | null;
  readonly changed: readonly string[];
  readonly untracked: readonly string[];
  /** The number of commits that no other branch, tag or remote has. */
  readonly unpushed: number;
}

export function workText(worktree: PlainWorktree, isUsed: boolean): string {
  const { state, isThere, head, changed, untracked, unpushed } = worktree;
  if (state === "removed") return "removed";
  const parts = [
    ...(isThere ? [] : ["its folder is gone"]),
    ...(isThere && head === null ? ["git does not know it"] : []),
    ...(state === "ready" ? [] : [state]),
    ...(isUsed ? ["in use"] : []),
    ...(changed.length > 0 ? [`${changed.length} changed`] : []),
    ...(untracked.length > 0 ? [`${untracked.length} untracked`] : []),
    ...(unpushed > 0 ? [`${unpushed} ${unpushed === 1 ? "commit" : "commits"} nowhere else`] : []),
  ];
  return parts.join(", ") || "nothing open";
}
