// `draftWork`: the work in a worktree, with what is not committed, as trees of git. A tree never changes, so that
// what a person has seen, what is checked and what is merged are the same.
//
//   - The files are staged in a copy of the index. The index of the session stays as it is.
//   - A revision names the work. It covers the branch, the commit that is checked out, and every file that a
//     commit would have, in the worktree and in its submodules.

import { createHash } from "node:crypto";
import { existsSync, rmSync } from "node:fs";
import { defined } from "@holdfast/core";

import { stageChanges } from "../../git/stage.ts";
import { copyIndex } from "../copy-index.ts";
import { commitOf } from "../repository.ts";
import { partsOf, type WorktreePart } from "../submodules/worktree-parts.ts";
import { draftIndexOf, gitIn, type GitSettings } from "../worktree-git.ts";
import type { WorktreeRecord } from "../worktree-record.ts";

/** The work in one checkout. */
export interface Draft {
  /** The commit that is checked out; absent on a branch without one. */
  readonly head: string | undefined;
  /** The commit that somebody merges there at the moment. */
  readonly merging: string | undefined;
  readonly tree: string;
  /** Whether the tree differs from that of `head`. */
  readonly isOpen: boolean;
  /** Git repositories among the files, which are not part of the work. */
  readonly repositories: readonly string[];
}

export interface DraftedPart extends WorktreePart {
  readonly draft: Draft;
}

/** The tree has each submodule at the commit that is checked out there. */
export interface WorkDraft extends Draft {
  readonly revision: string;
  /** The submodules that have a checkout, each after those inside of it. */
  readonly parts: readonly DraftedPart[];
}

export async function draftWork(record: WorktreeRecord, settings: GitSettings): Promise<WorkDraft> {
  const parts: DraftedPart[] = [];
  for (const part of await partsOf(record, settings))
    if (part.isThere) parts.push({ ...part, draft: await draftOne(part.record.path, part.settings) });
  const own = await draftOne(record.path, settings);
  const facts = ({ head, merging, tree }: Draft, branch: string) => [branch, head, merging, tree];
  const all = [
    facts(own, record.branch),
    ...parts.map((part) => [part.at, ...facts(part.draft, part.record.branch)]),
  ];
  const revision = createHash("sha256").update(JSON.stringify(all)).digest("hex");
  return { ...own, revision, parts };
}

async function draftOne(path: string, settings: GitSettings): Promise<Draft> {
  // Before the index: a commit in between then counts as a change, and never as nothing.
  const head = await commitOf("HEAD", path, settings);
  const merging = await commitOf("MERGE_HEAD", path, settings);
  return inDraft(path, settings, async (env) => {
    const run = (args: readonly string[], input?: string) =>
      gitIn(path, args, settings, { env, ...defined({ input }) });
    const repositories = await stageChanges(run);
    const tree = (await run(["write-tree"])).stdout.trim();
    const before = head && (await run(["rev-parse", `${head}^{tree}`])).stdout.trim();
    return { head, merging, tree, isOpen: tree !== before, repositories };
  });
}

/** @param work gets the variables with which git works in a copy of the index. */
async function inDraft<T>(
  path: string,
  settings: GitSettings,
  work: (env: { readonly GIT_INDEX_FILE: string }) => Promise<T>,
): Promise<T> {
  const asked = ["rev-parse", "--path-format=absolute", "--git-path", "index"];
  const own = (await gitIn(path, asked, settings)).stdout.trim();
  return withIndex(path, settings, (env, index) => {
    if (existsSync(own)) copyIndex(own, index);
    return work(env);
  });
}

/** @param work gets the variables with which git works in an index of its own, which is empty at first. */
export async function withIndex<T>(
  path: string,
  settings: GitSettings,
  work: (env: { readonly GIT_INDEX_FILE: string }, index: string) => Promise<T>,
): Promise<T> {
  const index = draftIndexOf(path, settings);
  try {
    return await work({ GIT_INDEX_FILE: index }, index);
  } finally {
    rmSync(index, { force: true });
    rmSync(`${index}.lock`, { force: true });
  }
}
