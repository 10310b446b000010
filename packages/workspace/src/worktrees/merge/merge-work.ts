// `mergeWork`: merges the work of a session, and commits it first where it is asked to.
//
//   - A person may give the revision that was shown. Work that has changed since then is not merged, also where
//     an agent changes it while this runs. For that the new commit is compared with a draft of it.
//   - A caller from elsewhere merges no file that gives rights on this machine.

import { HoldfastError } from "@holdfast/core";

import { isRepository } from "../../git/stage.ts";
import { placeIn, PROTECTED_PLACES } from "../../granting-places.ts";
import { PLAIN_DIFF } from "../../workspace/git-options.ts";
import { commitWork, draftCommit } from "../compare-worktree.ts";
import { mergeWorktree, planMerge, refuseOpen, type MergedWorktree } from "./merge-worktree.ts";
import { revisionOf } from "./work-revision.ts";
import { readFacts } from "../worktree-facts.ts";
import type { WorktreeRecord } from "../worktree-record.ts";
import { gitIn, type GitSettings } from "../worktree-git.ts";

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
 * @throws HoldfastError `conflict`, `uncommitted_changes` or `policy_denied`.
 */
export async function mergeWork(
  record: WorktreeRecord,
  project: string,
  { merge, commit, revision, isRemote = false }: MergeRequest,
  settings: GitSettings,
): Promise<MergedWorktree> {
  const { changed, untracked, head } = await readFacts(record, settings);
  const open = [...changed, ...untracked];
  const isCommitted = commit !== undefined;
  refuseOpen(record, isCommitted ? open.filter(isRepository) : open);
  const draft = isCommitted && open.length > 0 ? await draftCommit(record, settings) : undefined;
  // After the draft: what it holds is then what was there at the revision.
  const seen = revision === undefined ? head : await headAt(record, revision, settings);
  const work = draft ?? seen ?? record.branch;
  if (isRemote) await refuseGranting(record, project, work, settings);
  if (draft === undefined || !isCommitted) return mergeWorktree(record, project, settings, merge, work);
  await planMerge(record, project, settings, draft);
  const made = (await commitWork(record, commit, settings)) ?? draft;
  if (revision !== undefined) await requireSame(record, draft, made, settings);
  return mergeWorktree(record, project, settings, merge, made);
}

/** @returns the commit that is checked out at this revision. */
async function headAt(
  record: WorktreeRecord,
  revision: string,
  settings: GitSettings,
): Promise<string | undefined> {
  const { id, head } = await revisionOf(record, settings);
  if (id !== revision) throw changedSince(record);
  return head;
}

/** Files that changed while they were committed. Submodules have commits of their own by then. */
async function requireSame(
  record: WorktreeRecord,
  draft: string,
  made: string,
  settings: GitSettings,
): Promise<void> {
  const compared = ["diff", "--quiet", ...PLAIN_DIFF, "--ignore-submodules=all", draft, made, "--"];
  if ((await gitIn(record.path, compared, settings, { codes: [0, 1] })).exitCode === 0) return;
  throw changedSince(record);
}

function changedSince({ session, path }: WorktreeRecord): HoldfastError {
  return new HoldfastError(
    "conflict",
    `the work of session ${session} has changed since it was shown; nothing was merged`,
    { at: path, fix: "read the work again, look at what is new, and merge it then" },
  );
}

async function refuseGranting(
  { session, branch }: WorktreeRecord,
  project: string,
  work: string,
  settings: GitSettings,
): Promise<void> {
  const named = ["diff", ...PLAIN_DIFF, "--name-only", "--no-renames", "-z", `HEAD...${work}`, "--"];
  const paths = (await gitIn(project, named, settings)).stdout.split("\0");
  const granting = paths.find((path) => placeIn(path.split("/"), PROTECTED_PLACES) !== undefined);
  if (granting === undefined) return;
  throw new HoldfastError("policy_denied", `${branch} changes a file that gives rights on this machine`, {
    got: granting,
    expected: "a merge by a person on this machine",
    fix: `run \`holdfast merge ${session}\` in the project on that machine`,
  });
}
