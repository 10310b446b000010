// `readWork`: everything that a session has done in its worktree, for a person who looks at it.

import { diffWork } from "./compare-worktree.ts";
import { listCommits, type WorktreeCommit } from "./list-commits.ts";
import { commitOf } from "./repository.ts";
import { revisionOf } from "./merge/work-revision.ts";
import type { WorktreeFacts } from "./worktree-facts.ts";
import type { WorktreeRecord } from "./worktree-record.ts";
import type { GitSettings } from "./worktree-git.ts";

export interface WorktreeChange {
  /** The commits since the base, the newest first. */
  readonly commits: readonly WorktreeCommit[];
  /** The whole change since the base. */
  readonly diff: string;
  /** Whether the change is too long, and a part of `diff` is left out. */
  readonly isDiffCut: boolean;
  /** A merge may be bound to it (`MergeRequest`). `null` when the worktree is gone. */
  readonly revision: string | null;
}

/** @param rescue the ref of its rescue commit, when there is one. */
export async function readWork(
  record: WorktreeRecord,
  { head, rescue }: Pick<WorktreeFacts, "head"> & { readonly rescue: string | null },
  settings: GitSettings,
): Promise<WorktreeChange> {
  const { path, project, branch, state } = record;
  if (head !== null && state !== "removed") {
    // Before the rest: what changes while it is read then counts as new.
    const revision = (await revisionOf(record, settings)).id;
    const commits = await listCommits(record, head, path, settings);
    const { text, isCut } = await diffWork(record, undefined, false, settings);
    return { commits, diff: text, isDiffCut: isCut, revision };
  }
  const end = await commitOf(`refs/heads/${branch}`, project, settings);
  const whole = (rescue === null ? undefined : await commitOf(rescue, project, settings)) ?? end;
  const commits = end === undefined ? [] : await listCommits(record, end, project, settings);
  const none = { text: "", isCut: false };
  const { text, isCut } = whole === undefined ? none : await diffWork(record, whole, false, settings);
  return { commits, diff: text, isDiffCut: isCut, revision: null };
}
