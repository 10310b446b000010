// `mergeWorktree`: merges the branch that a worktree is on into the current branch of the project.
//
//   - A conflict is found before anything changes (`planMerge`). The project stays as it was, and the error
//     names the files.
//   - Files of the project that are in no commit stay as they are. A merge that would change one is refused.
//   - A submodule is merged by its commit, as git does it. A commit that is not in the user's own repository
//     of the submodule is refused.

import { lstatSync } from "node:fs";
import { join } from "node:path";
import { HoldfastError } from "@holdfast/core";

import { OWN_FILES, parseStatus } from "../../git/git.ts";
import { isRepository } from "../../git/stage.ts";
import { PLAIN_DIFF, SHALLOW } from "../../workspace/git-options.ts";
import { commitOf, identityIn } from "../repository.ts";
import { GITLINK, inStore } from "../submodules/find-submodules.ts";
import type { WorktreeRecord } from "../worktree-record.ts";
import { gitIn, type GitSettings } from "../worktree-git.ts";

export interface MergedWorktree {
  readonly branch: string;
  /** The branch that it was merged into. */
  readonly into: string;
  /** The HEAD of the project now. */
  readonly commit: string;
  /** False when the project had everything already. */
  readonly isNew: boolean;
  /** The submodules that it gave another commit. Their checkouts in the project stay as they were. */
  readonly submodules: readonly string[];
}

const NAMED_MAX = 10;

/** The effect of a merge into the current branch of the project. */
export interface MergePlan extends Omit<MergedWorktree, "commit"> {
  /** The HEAD of the project. */
  readonly head: string;
  /** The commit to be merged. */
  readonly work: string;
  /** The files that it changes in the project. */
  readonly files: readonly string[];
}

/** @param message of the merge commit. */
export async function mergeWorktree(
  record: WorktreeRecord,
  project: string,
  { head, work, files: _all, ...plan }: MergePlan,
  message = `Merge branch '${record.branch}' of session ${record.session}`,
  settings: GitSettings,
): Promise<MergedWorktree> {
  const run = (args: readonly string[], codes: readonly number[] = [0]) =>
    gitIn(project, args, settings, { codes });
  if (!plan.isNew) return { ...plan, commit: head };
  let said: string;
  try {
    const args = ["merge", "--no-ff", "--no-edit", "--quiet", "-m", message, work];
    const env = await identityIn(project, settings);
    const merged = await gitIn(project, args, settings, { codes: [0, 1, 2, 128], env, isWhole: true });
    if (merged.exitCode === 0) return { ...plan, commit: (await run(["rev-parse", "HEAD"])).stdout.trim() };
    said = merged.stderr.trim().slice(0, 1_000);
  } catch (error) {
    await abortMerge(project, work, settings);
    throw error;
  }
  const open = await run(["diff", ...PLAIN_DIFF, "--name-only", "--diff-filter=U"]);
  await abortMerge(project, work, settings);
  if (open.stdout.trim() !== "") throw conflicting(record, project, plan.into, open.stdout.split("\n"));
  throw new HoldfastError("conflict", `git did not merge ${record.branch}: ${said}`, {
    at: project,
    fix: "correct what git says, and merge again",
  });
}

/** Ends this merge, and none that somebody else has begun. */
async function abortMerge(project: string, work: string, settings: GitSettings): Promise<void> {
  if ((await commitOf("MERGE_HEAD", project, settings)) !== work) return;
  await gitIn(project, ["merge", "--abort"], settings, { codes: [0, 128], isWhole: true });
}

/**
 * Changes nothing.
 *
 * @param work the commit to be merged.
 * @throws HoldfastError `conflict`, or `uncommitted_changes` where files of the project are in the way.
 */
export async function planMerge(
  record: WorktreeRecord,
  project: string,
  settings: GitSettings,
  work: string,
): Promise<MergePlan> {
  const { branch } = record;
  const run = (args: readonly string[], codes: readonly number[] = [0]) =>
    gitIn(project, args, settings, { codes });
  const current = await run(["symbolic-ref", "--quiet", "--short", "HEAD"], [0, 1]);
  const into = current.stdout.trim();
  if (current.exitCode !== 0)
    throw new HoldfastError("conflict", `${project} is on no branch, so nothing can be merged into it`, {
      at: project,
      fix: "switch to a branch: `git switch BRANCH`",
    });
  if ((await commitOf("MERGE_HEAD", project, settings)) !== undefined)
    throw new HoldfastError("conflict", `a merge into ${into} is not finished`, {
      at: project,
      fix: "finish it with `git commit`, or end it with `git merge --abort`",
    });
  const head = (await run(["rev-parse", "HEAD"])).stdout.trim();
  const contained = await run(["merge-base", "--is-ancestor", work, "HEAD"], [0, 1]);
  if (contained.exitCode === 0) return { branch, into, head, work, files: [], isNew: false, submodules: [] };
  const submodules = await movedSubmodules(record, project, work, settings);
  const tried = await run(
    ["merge-tree", "--write-tree", "--name-only", "--no-messages", "HEAD", work],
    [0, 1, 129],
  );
  const [tree = "", ...conflicts] = tried.stdout.split("\n");
  if (tried.exitCode === 1) throw conflicting(record, project, into, conflicts);
  // An older git does not say the tree.
  const range = tried.exitCode === 0 ? ["HEAD", tree] : [`HEAD...${work}`];
  const merged = await changedIn(project, range, settings);
  await refuseInTheWay(project, merged, settings);
  return { branch, into, head, work, files: [...merged.keys()], isNew: true, submodules };
}

/** Refuses a merge that would leave out changes of the worktree. */
export function refuseOpen({ session, path }: WorktreeRecord, open: readonly string[]): void {
  if (open[0] === undefined) return;
  throw new HoldfastError(
    "uncommitted_changes",
    `the worktree of session ${session} has changes that are not committed`,
    {
      at: path,
      got: open.length === 1 ? open[0] : `${open.length} files, such as ${open[0]}`,
      fix: open.every(isRepository)
        ? `move the git repository ${open[0]} out of ${path}; it is not part of the work`
        : `give --commit to commit them first, or commit them yourself in ${path}`,
    },
  );
}

function conflicting(
  { branch, path }: WorktreeRecord,
  project: string,
  into: string,
  paths: readonly string[],
): HoldfastError {
  return new HoldfastError("conflict", `${branch} and ${into} changed the same lines; nothing was merged`, {
    at: project,
    got: namesOfSome(paths.filter((line) => line !== "")),
    fix: `resolve it in the worktree: \`cd ${path} && git merge ${into}\`, correct the files, commit, and merge again`,
  });
}

function namesOfSome(files: readonly string[]): string {
  return files.slice(0, NAMED_MAX).join(", ") + (files.length > NAMED_MAX ? ", …" : "");
}

/** The submodules that the branch gave another commit since it left the project's. @throws HoldfastError `conflict`. */
async function movedSubmodules(
  record: WorktreeRecord,
  project: string,
  work: string,
  settings: GitSettings,
): Promise<readonly string[]> {
  const { branch, path } = record;
  const args = ["diff", ...PLAIN_DIFF, "--raw", "--no-abbrev", "--no-renames", "-z", `HEAD...${work}`, "--"];
  const parts = (await gitIn(project, args, settings)).stdout.split("\0");
  const moved: string[] = [];
  for (let at = 0; at + 1 < parts.length; at += 2) {
    const [, mode, , commit = ""] = (parts[at] ?? "").split(" ");
    const name = parts[at + 1] ?? "";
    if (mode !== GITLINK) continue;
    const store = record.submodules?.find((submodule) => submodule.path === name)?.store;
    const has =
      store !== undefined && (await commitOf(commit, store, inStore(store, settings))) !== undefined;
    if (!has)
      throw new HoldfastError(
        "conflict",
        `your repository does not have the commit of the submodule ${name}`,
        {
          at: join(path, name),
          got: commit,
          fix: `push that commit to where the submodule comes from, and merge with git: \`git merge ${branch}\`, \`git submodule update --init\`; or take it out of the branch in ${path}: \`git rm --cached ${name}\``,
        },
      );
    moved.push(name);
  }
  return moved;
}

/** The files that differ in a range, with git's letters for how. */
export async function changedIn(
  project: string,
  range: readonly string[],
  settings: GitSettings,
): Promise<ReadonlyMap<string, string>> {
  const difference = ["diff", ...PLAIN_DIFF, "--name-status", "--no-renames", "-z", ...range, "--"];
  const parts = (await gitIn(project, difference, settings)).stdout.split("\0");
  const changed = new Map<string, string>();
  for (let at = 0; at + 1 < parts.length; at += 2) changed.set(parts[at + 1] ?? "", parts[at] ?? "");
  return changed;
}

/**
 * Refuses where the merge changes files of the project that are in no commit. With staged changes git merges
 * nothing. All other changes stay as they are.
 *
 * @param merged the files that the merge changes.
 */
async function refuseInTheWay(
  project: string,
  merged: ReadonlyMap<string, string>,
  settings: GitSettings,
): Promise<void> {
  const run = async (args: readonly string[]) => (await gitIn(project, args, settings)).stdout;
  const selection = ["status", "--porcelain=v1", "-z", "--untracked-files=no", SHALLOW];
  const open = parseStatus(await run([...selection, "--", ".", ...OWN_FILES]));
  const changed = open.filter(({ path }) => merged.has(path)).map(({ path }) => path);
  const unknown = [...merged].flatMap(([path, kind]) =>
    kind === "A" ? (fileInPlaceOf(path, project, merged) ?? []) : [],
  );
  const files = [...new Set([...changed, ...unknown])];
  if (files.length > 0)
    throw new HoldfastError(
      "uncommitted_changes",
      `${project} has changes that are not committed in files that the merge changes; nothing was merged`,
      { at: project, got: namesOfSome(files), fix: await cureOf(files[0] ?? "", project, settings) },
    );
  const staged = open.filter(({ status }) => !/^[ ?]/.test(status)).map(({ path }) => path);
  if (staged.length > 0)
    throw new HoldfastError(
      "uncommitted_changes",
      `${project} has staged changes, with which git merges nothing`,
      {
        at: project,
        got: namesOfSome(staged),
        fix: "commit them, or run `git restore --staged .`, and merge again",
      },
    );
}

async function cureOf(path: string, project: string, settings: GitSettings): Promise<string> {
  const entry = await gitIn(project, ["--literal-pathspecs", "ls-files", "--stage", path], settings);
  return entry.stdout.startsWith(GITLINK)
    ? "check out its recorded commit (`git submodule update`), or commit the one that is there, and merge again"
    : "commit them, or run `git stash --include-untracked`, and merge again";
}

/** The file that stands where a merge makes one. Git would write over it where it ignores it. */
function fileInPlaceOf(
  path: string,
  project: string,
  merged: ReadonlyMap<string, string>,
): string | undefined {
  const names = path.split("/");
  for (let depth = 1; depth <= names.length; depth++) {
    const part = names.slice(0, depth).join("/");
    const stat = lstatSync(join(project, part), { throwIfNoEntry: false });
    if (stat === undefined) return undefined;
    if (!stat.isDirectory()) return merged.get(part) === "D" ? undefined : part;
  }
  return undefined;
}
