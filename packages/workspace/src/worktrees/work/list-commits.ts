// `listCommits`: the commits of a worktree since its base, the newest first.

import { nowhereElse } from "../worktree-facts.ts";
import type { WorktreeRecord } from "../worktree-record.ts";
import { gitIn, type GitSettings } from "../worktree-git.ts";

export interface WorktreeCommit {
  readonly id: string;
  readonly subject: string;
  readonly author: string;
  /** Epoch milliseconds. */
  readonly at: number;
  /** Whether no other branch, tag or remote has it. */
  readonly isOnlyHere: boolean;
}

/** The most commits that are listed. */
const COMMITS_MAX = 200;
const FORM = "%H%x1f%ct%x1f%an%x1f%s";

/** @param end a commit, in the repository of the folder. */
export async function listCommits(
  record: WorktreeRecord,
  end: string,
  folder: string,
  settings: GitSettings,
): Promise<readonly WorktreeCommit[]> {
  const some = `--max-count=${COMMITS_MAX}`;
  const log = await gitIn(
    folder,
    ["log", "-z", some, `--format=${FORM}`, `${record.base}..${end}`, "--"],
    settings,
  );
  const own = await gitIn(folder, ["rev-list", some, end, ...nowhereElse(record)], settings);
  const ids = new Set(own.stdout.split("\n"));
  return log.stdout
    .split("\0")
    .filter((text) => text !== "")
    .map((text) => {
      const [id = "", seconds, author = "", ...subject] = text.split("\u001f");
      return { id, subject: subject.join(" "), author, at: Number(seconds) * 1_000, isOnlyHere: ids.has(id) };
    });
}
