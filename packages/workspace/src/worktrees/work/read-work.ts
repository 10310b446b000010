// `readWork`: everything that a session has done in its worktree, for a person who looks at it.

import { commitOf } from "../repository.ts";
import type { WorktreeFacts } from "../worktree-facts.ts";
import type { GitSettings } from "../worktree-git.ts";
import type { WorktreeRecord } from "../worktree-record.ts";
import { diffWork } from "./compare-work.ts";
import { draftWork } from "./draft-work.ts";
import { listCommits, type WorktreeCommit } from "./list-commits.ts";

export interface WorktreeChange {
  /** The commits since the base, the newest first. */
  readonly commits: readonly WorktreeCommit[];
  /** The whole change since the base. */
  readonly diff: string;
  /** Whether the change is too long, and a part of `diff` is left out. */
  readonly isDiffCut: boolean;
  /** A merge is bound to it (`MergeRequest`). `null` when git knows no commit of the worktree any more. */
  readonly revision: string | null;
  /** The tree of git that the revision would merge, so that `git diff` shows all of a long change. */
  readonly tree: string | null;
}

/** @param rescue the ref of its rescue commit, when there is one. */
export async function readWork(
  record: WorktreeRecord,
  { head, rescue }: Pick<WorktreeFacts, "head"> & { readonly rescue: string | null },
  settings: GitSettings,
): Promise<WorktreeChange> {
  const { path, project, branch, state } = record;
  if (head !== null && state !== "removed") {
    const draft = await draftWork(record, settings);
    const commits = await listCommits(record, draft.head ?? head, path, settings);
    const { text, isCut } = await diffWork(record, draft, false, settings);
    return { commits, diff: text, isDiffCut: isCut, revision: draft.revision, tree: draft.tree };
  }
  const end = await commitOf(`refs/heads/${branch}`, project, settings);
  const whole = (rescue === null ? undefined : await commitOf(rescue, project, settings)) ?? end;
  const commits = end === undefined ? [] : await listCommits(record, end, project, settings);
  const none = { text: "", isCut: false };
  const { text, isCut } = whole === undefined ? none : await diffWork(record, whole, false, settings);
  return { commits, diff: text, isDiffCut: isCut, revision: null, tree: null };
}
