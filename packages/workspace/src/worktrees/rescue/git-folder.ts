// `readGitFolder`: git's own folder of a worktree, which git deletes with the worktree. Reads only.
//
//   - A stash, a ref of the worktree and a reflog are files with object ids. Each id in any file of the
//     folder counts, so that a state file of a later version of git is no exception.
//   - An index is no text. The rescue reads it by git.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { gitIn, type GitSettings } from "../worktree-git.ts";

/** Files that git writes while it works in steps, with patches that may be nowhere else. */
const STEP_FOLDERS = ["rebase-merge", "rebase-apply", "sequencer"];
/** Refs of one worktree. They need not be files. */
const OWN_REFS = ["refs/worktree", "refs/bisect", "refs/rewritten"];
const OWN_HEADS = ["ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "AUTO_MERGE"];

export interface GitFolder {
  readonly path: string;
  readonly commits: readonly string[];
  readonly trees: readonly string[];
  readonly blobs: readonly string[];
  /** Paths of the files of an operation, from the folder. */
  readonly stepFiles: readonly string[];
}

/** @param worktree the root of the worktree. */
export async function readGitFolder(worktree: string, settings: GitSettings): Promise<GitFolder> {
  const path = await pathOf(worktree, settings);
  // An index is no text. The rescue reads it by git.
  const files = filesIn(path, "").filter((file) => !/(^|-)index(\.lock)?$/.test(file));
  const ids = new Set(files.flatMap((file) => idsIn(readFileSync(join(path, file), "latin1"))));
  const refs = await gitIn(worktree, ["for-each-ref", "--format=%(objectname)", ...OWN_REFS], settings);
  const log = await gitIn(worktree, ["log", "-g", "--format=%H", "HEAD"], settings, { codes: [0, 128] });
  for (const id of idsIn(`${refs.stdout}\n${log.stdout}`)) ids.add(id);
  const input = [...OWN_HEADS, ...ids].map((name) => `${name}^{}\n`).join("");
  const { stdout } = await gitIn(worktree, ["cat-file", "--batch-check"], settings, { input });
  const found = stdout.split("\n").map((line) => line.split(" "));
  const ofType = (type: string) => [...new Set(found.flatMap(([id = "", is]) => (is === type ? [id] : [])))];
  const stepFiles = files.filter((file) => STEP_FOLDERS.some((folder) => file.startsWith(`${folder}/`)));
  return { path, commits: ofType("commit"), trees: ofType("tree"), blobs: ofType("blob"), stepFiles };
}

/** The operation of git that waits in a worktree for its next step. */
export async function operationIn(worktree: string, settings: GitSettings): Promise<string | undefined> {
  const path = await pathOf(worktree, settings);
  const has = (name: string): boolean => existsSync(join(path, name));
  if (has("rebase-apply/applying")) return "git am";
  if (has("rebase-merge") || has("rebase-apply")) return "git rebase";
  if (has("MERGE_HEAD")) return "git merge";
  if (has("CHERRY_PICK_HEAD")) return "git cherry-pick";
  if (has("REVERT_HEAD")) return "git revert";
  if (has("sequencer")) return "git cherry-pick or git revert";
  return has("BISECT_LOG") || has("BISECT_START") ? "git bisect" : undefined;
}

async function pathOf(worktree: string, settings: GitSettings): Promise<string> {
  return (await gitIn(worktree, ["rev-parse", "--absolute-git-dir"], settings)).stdout.trim();
}

/** Ids of SHA-1 and of SHA-256. */
function idsIn(text: string): readonly string[] {
  return text.match(/(?<![0-9a-f])(?:[0-9a-f]{64}|[0-9a-f]{40})(?![0-9a-f])/g) ?? [];
}

function filesIn(root: string, folder: string): readonly string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory()) return filesIn(root, path);
    return entry.isFile() ? [path] : [];
  });
}
