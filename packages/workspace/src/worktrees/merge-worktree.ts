// `mergeWorktree`: merges the branch that a worktree is on into the current branch of the project.
//
//   - A conflict is found before anything changes. The project stays as it was, and the error names the
//     files.
//   - A project with changes that are not committed is refused.
//   - A submodule is merged by its commit, as git does it. A commit that is not in the user's own repository
//     of the submodule is refused.

import { join } from "node:path";
import { HoldfastError } from "@holdfast/core";

import { OWN_FILES, parseStatus } from "../git/git.ts";
import { PLAIN_DIFF, SHALLOW } from "../workspace/git-options.ts";
import { commitOf, identityIn } from "./repository.ts";
import { GITLINK, inStore } from "./submodules/find-submodules.ts";
import type { WorktreeRecord } from "./worktree-record.ts";
import { gitIn, type GitSettings } from "./worktree-git.ts";

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

/** @param message of the merge commit. */
export async function mergeWorktree(
  record: WorktreeRecord,
  project: string,
  settings: GitSettings,
  message = `Merge branch '${record.branch}' of session ${record.session}`,
): Promise<MergedWorktree> {
  const { branch, path } = record;
  const run = (args: readonly string[], codes: readonly number[] = [0]) =>
    gitIn(project, args, settings, { codes });
  const current = await run(["symbolic-ref", "--quiet", "--short", "HEAD"], [0, 1]);
  const into = current.stdout.trim();
  if (current.exitCode !== 0)
    throw new HoldfastError("conflict", `${project} is on no branch, so nothing can be merged into it`, {
      at: project,
      fix: "switch to a branch: `git switch BRANCH`",
    });
  await refuseDirty(project, settings);
  const before = (await run(["rev-parse", "HEAD"])).stdout.trim();
  const contained = await run(["merge-base", "--is-ancestor", branch, "HEAD"], [0, 1]);
  if (contained.exitCode === 0) return { branch, into, commit: before, isNew: false, submodules: [] };
  const submodules = await movedSubmodules(record, project, settings);
  const tried = await run(
    ["merge-tree", "--write-tree", "--name-only", "--no-messages", "HEAD", branch],
    [0, 1, 129],
  );
  if (tried.exitCode === 1) throw conflicting(tried.stdout.split("\n").slice(1));
  const merged = await gitIn(
    project,
    ["merge", "--no-ff", "--no-edit", "--quiet", "-m", message, branch],
    settings,
    { codes: [0, 1, 2, 128], env: await identityIn(project, settings) },
  );
  if (merged.exitCode !== 0) {
    const open = await run(["diff", ...PLAIN_DIFF, "--name-only", "--diff-filter=U"]);
    await run(["merge", "--abort"], [0, 128]);
    if (open.stdout.trim() !== "") throw conflicting(open.stdout.split("\n"));
    throw new HoldfastError(
      "conflict",
      `git did not merge ${branch}: ${merged.stderr.trim().slice(0, 1_000)}`,
      {
        at: project,
        fix: "correct what git says, and merge again",
      },
    );
  }
  const commit = (await run(["rev-parse", "HEAD"])).stdout.trim();
  return { branch, into, commit, isNew: true, submodules };

  function conflicting(paths: readonly string[]): HoldfastError {
    const files = paths.filter((line) => line !== "");
    const more = files.length > NAMED_MAX ? ", …" : "";
    return new HoldfastError("conflict", `${branch} and ${into} changed the same lines; nothing was merged`, {
      at: project,
      got: files.slice(0, NAMED_MAX).join(", ") + more,
      fix: `resolve it in the worktree: \`cd ${path} && git merge ${into}\`, correct the files, commit, and merge again`,
    });
  }
}

/** The submodules that the branch gave another commit since it left the project's. @throws HoldfastError `conflict`. */
async function movedSubmodules(
  record: WorktreeRecord,
  project: string,
  settings: GitSettings,
): Promise<readonly string[]> {
  const { branch, path } = record;
  const args = [
    "diff",
    ...PLAIN_DIFF,
    "--raw",
    "--no-abbrev",
    "--no-renames",
    "-z",
    `HEAD...${branch}`,
    "--",
  ];
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

async function refuseDirty(project: string, settings: GitSettings): Promise<void> {
  const selection = [
    "status",
    "--porcelain=v1",
    "-z",
    "--untracked-files=no",
    SHALLOW,
    "--",
    ".",
    ...OWN_FILES,
  ];
  const changes = parseStatus((await gitIn(project, selection, settings)).stdout);
  if (changes[0] === undefined) return;
  const entry = await gitIn(
    project,
    ["--literal-pathspecs", "ls-files", "--stage", changes[0].path],
    settings,
  );
  const fix = entry.stdout.startsWith(GITLINK)
    ? "check out its recorded commit (`git submodule update`), or commit the one that is there, and merge again"
    : "commit or stash them, and merge again";
  throw new HoldfastError("conflict", `${project} has changes that are not committed`, {
    at: project,
    got: changes.length === 1 ? changes[0].path : `${changes.length} files, such as ${changes[0].path}`,
    fix,
  });
}
