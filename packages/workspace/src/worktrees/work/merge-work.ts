// `mergeWork`: merges the work of a session, and commits it first where it is asked to.
//
//   - The work is drafted once, and a draft never changes. The checks are about the commits of the draft, and
//     exactly these are merged. An agent that changes its files meanwhile changes nothing of that.
//   - A person may give the revision that was shown. Other work is refused then, and so is a merge that changes
//     a file which was not shown.
//   - A caller from elsewhere merges no file that gives rights on this machine.

import { HoldfastError } from "@holdfast/core";

import { isRepository } from "../../git/stage.ts";
import { placeIn, PROTECTED_PLACES } from "../../granting-places.ts";
import { OWN_FOLDER } from "../../workspace/contained-directory.ts";
import { commitOf } from "../repository.ts";
import { readFacts } from "../worktree-facts.ts";
import type { WorktreeRecord } from "../worktree-record.ts";
import type { GitSettings } from "../worktree-git.ts";
import { changedSince, commitDraft, keepCommits, type DraftedCommits } from "./commit-work.ts";
import { draftWork, type WorkDraft } from "./draft-work.ts";
import {
  changedIn,
  mergeWorktree,
  planMerge,
  refuseOpen,
  type MergedWorktree,
  type MergePlan,
} from "./merge-worktree.ts";

export interface MergeRequest {
  /** The message of the merge commit. */
  readonly merge?: string | undefined;
  /** The message of a commit of what is open. Without it open work is refused. */
  readonly commit?: string | undefined;
  /** The only revision to be merged. */
  readonly revision?: string | undefined;
  /** Whether the caller is not on this machine. */
  readonly isRemote?: boolean | undefined;
}

/**
 * A refusal has changed nothing in the project.
 *
 * @throws HoldfastError `conflict`, `uncommitted_changes`, `file_not_found` or `policy_denied`.
 */
export async function mergeWork(
  record: WorktreeRecord,
  project: string,
  { merge, commit, revision, isRemote = false }: MergeRequest,
  settings: GitSettings,
): Promise<MergedWorktree> {
  const { changed, untracked, head } = await readFacts(record, settings);
  const open = [...changed, ...untracked];
  refuseOpen(record, commit === undefined ? open : open.filter(isRepository));
  const draft = head === null ? undefined : await draftWork(record, settings);
  if (revision !== undefined && draft?.revision !== revision) throw changedSince(record);
  const commits = draft && (await commitsOf(record, draft, commit, settings));
  const work = commits?.commit ?? (await lastCommit(record, project, settings));
  const plan = await planMerge(record, project, settings, work);
  if (isRemote) refuseGranting(record, plan);
  if (revision !== undefined) await refuseUnseen(record, project, plan, settings);
  if (commits !== undefined) await keepCommits(record, commits);
  return mergeWorktree(record, project, plan, merge, settings);
}

/** The commits that are merged: new ones, or what is there. */
async function commitsOf(
  record: WorktreeRecord,
  draft: WorkDraft,
  message: string | undefined,
  settings: GitSettings,
): Promise<DraftedCommits> {
  if (message !== undefined) return commitDraft(record, draft, message, settings);
  // Nothing was open a moment ago.
  if (draft.head === undefined || [draft, ...draft.parts.map((part) => part.draft)].some((one) => one.isOpen))
    throw changedSince(record);
  return { commit: draft.head, all: [] };
}

/** The commit of a branch whose worktree is gone. */
async function lastCommit(
  { branch, session }: WorktreeRecord,
  project: string,
  settings: GitSettings,
): Promise<string> {
  const commit = await commitOf(`refs/heads/${branch}`, project, settings);
  if (commit !== undefined) return commit;
  throw new HoldfastError("file_not_found", `the branch of session ${session} is gone`, {
    at: project,
    got: branch,
    expected: "a branch with the commits of the session",
    fix: "look for its last commit with `git reflog`, and make the branch again: `git branch NAME COMMIT`",
  });
}

function refuseGranting({ session, branch }: WorktreeRecord, { files, submodules }: MergePlan): void {
  const places = [OWN_FOLDER, ...PROTECTED_PLACES];
  const granting = files.find((path) => placeIn(path.split("/"), places) !== undefined);
  const got = granting ?? submodules[0];
  if (got === undefined) return;
  const what = granting === undefined ? "a submodule" : "a file that gives rights on this machine";
  throw new HoldfastError("policy_denied", `${branch} changes ${what}`, {
    got,
    expected: "a merge by a person on this machine",
    fix: `run \`holdfast merge ${session}\` in the project on that machine`,
  });
}

/** A history can take back what the project has got since, without a difference to the base of the session. */
async function refuseUnseen(
  record: WorktreeRecord,
  project: string,
  { files, work, into }: MergePlan,
  settings: GitSettings,
): Promise<void> {
  const { session, base, branch } = record;
  const shown = await changedIn(project, [base, work], settings);
  const unseen = files.find((path) => !shown.has(path));
  if (unseen === undefined) return;
  throw new HoldfastError(
    "conflict",
    `the merge would change more in ${into} than the work of session ${session} shows; nothing was merged`,
    {
      at: project,
      got: unseen,
      expected: `changes of files that differ from the base ${base.slice(0, 12)}`,
      fix: `look at all of it on that machine: \`git diff ${into}...${branch}\`, and merge it there: \`holdfast merge ${session}\``,
    },
  );
}
