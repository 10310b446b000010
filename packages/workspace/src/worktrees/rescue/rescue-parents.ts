// `parentsOf`: the parents of a rescue commit, which keep everything of a worktree that is no file of it
// (rescue-3).

import { existsSync, lstatSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";

import { copyIndex } from "../copy-index.ts";
import { commitOf, identity } from "../repository.ts";
import { EMPTY_TREE, gitIn, type GitSettings } from "../worktree-git.ts";
import { readGitFolder, type GitFolder } from "./git-folder.ts";
import { fileOf, refused, storeFiles, type RescuePlace, type Run } from "./stored-files.ts";

/** Commits that nothing but the worktree's git folder reaches. Beyond, the removal is refused. */
const LOST_COMMITS_MAX = 50;
/** The same content is the same commit, so that a repeated rescue adds nothing. */
const FIXED = {
  ...identity("rescue@holdfast.invalid"),
  GIT_AUTHOR_DATE: "1700000000 +0000",
  GIT_COMMITTER_DATE: "1700000000 +0000",
};

/** @param index a path for indexes of its own. */
export async function parentsOf(
  { path, project, branch }: RescuePlace,
  settings: GitSettings,
  index: string,
): Promise<readonly string[]> {
  const ofBranch = await commitOf(`refs/heads/${branch}`, project, settings);
  if (!existsSync(join(path, ".git"))) return ofBranch === undefined ? [] : [ofBranch];
  const run: Run = (args, options) => gitIn(path, args, settings, options);
  const head = (await run(["rev-parse", "HEAD"])).stdout.trim();
  const parents = new Set([head, ...(ofBranch === undefined ? [] : [ofBranch])]);
  const own = `${index}-own`;
  try {
    const staged = await stagedCommit(path, head, branch, own, run);
    if (staged !== undefined) parents.add(staged);
    const folder = await readGitFolder(path, settings);
    refuseRepositories(path, folder.path);
    for (const id of await lostCommits(path, folder.commits, [...parents], run)) parents.add(id);
    const rest = await folderCommit(folder, branch, own, run);
    if (rest !== undefined) parents.add(rest);
  } finally {
    rmSync(own, { force: true });
    rmSync(`${own}.lock`, { force: true });
  }
  return [...parents];
}

/**
 * Git keeps there what it clones in a worktree, and removes it with the worktree. @throws HoldfastError
 * `conflict` (rescue-4).
 */
function refuseRepositories(path: string, gitFolder: string): void {
  const folder = join(gitFolder, "modules");
  const [name] = existsSync(folder) ? readdirSync(folder) : [];
  if (name === undefined) return;
  const why = `git has cloned the submodule ${name} for this worktree alone, into ${folder}`;
  throw refused(path, why, `push or copy what you need of it, and then delete ${folder}`);
}

/** The index, where it differs from HEAD. @throws HoldfastError `conflict` (rescue-4). */
async function stagedCommit(
  path: string,
  head: string,
  branch: string,
  index: string,
  run: Run,
): Promise<string | undefined> {
  const own = (await run(["rev-parse", "--path-format=absolute", "--git-path", "index"])).stdout.trim();
  if (existsSync(own)) copyIndex(own, index);
  const written = await run(["write-tree"], { env: { GIT_INDEX_FILE: index }, codes: [0, 128] });
  rmSync(index, { force: true });
  if (written.exitCode !== 0)
    throw refused(path, "a merge or a rebase in it is not finished", "finish or abort it there");
  const tree = written.stdout.trim();
  const ofHead = (await run(["rev-parse", "HEAD^{tree}"])).stdout.trim();
  if (tree === ofHead || tree === EMPTY_TREE) return undefined;
  const input = `The index of the worktree ${branch}\n`;
  return (await run(["commit-tree", tree, "-p", head], { input, env: FIXED })).stdout.trim();
}

/** The commits that only the git folder reaches, without those that another of them reaches. */
async function lostCommits(
  path: string,
  named: readonly string[],
  known: readonly string[],
  run: Run,
): Promise<readonly string[]> {
  if (named.length === 0) return [];
  const others = ["--not", "--branches", "--tags", "--remotes", ...known];
  const input = named.map((id) => `${id}\n`).join("");
  const { stdout } = await run(["rev-list", "--parents", "--stdin", ...others], { input });
  const lines = stdout.split("\n").map((line) => line.split(" "));
  const below = new Set(lines.flatMap(([, ...parents]) => parents));
  const tips = lines.flatMap(([id = ""]) => (id === "" || below.has(id) ? [] : [id]));
  if (tips.length <= LOST_COMMITS_MAX) return tips;
  throw refused(
    path,
    `${tips.length} commits are in its reflog alone`,
    "give the commits that you want to keep a branch (`git reflog` shows them)",
  );
}

/** A commit of what is no commit: the files of an operation, and the trees and blobs that the folder names. */
async function folderCommit(
  { path, stepFiles, trees, blobs }: GitFolder,
  branch: string,
  index: string,
  run: Run,
): Promise<string | undefined> {
  if (stepFiles.length + trees.length + blobs.length === 0) return undefined;
  const env = { GIT_INDEX_FILE: index };
  for (const id of trees) await run(["read-tree", `--prefix=objects/${id}/`, id], { env });
  const files = stepFiles.flatMap(
    (file) => fileOf(file, lstatSync(join(path, file), { bigint: true })) ?? [],
  );
  const lines = blobs.map((id) => `100644 ${id}\tobjects/${id}\0`).join("");
  const input = `${await storeFiles(path, files, run)}${lines}`;
  await run(["update-index", "-z", "--add", "--index-info"], { env, input });
  const tree = (await run(["write-tree"], { env })).stdout.trim();
  const message = `Git's own folder of the worktree ${branch}\n`;
  return (await run(["commit-tree", tree], { input: message, env: FIXED })).stdout.trim();
}
