// `revisionOf`: a text that names the work in a worktree as it is. A person who agrees to a merge agrees to one
// revision, and work that has changed since then is not merged.
//
//   - It covers the commit that is checked out, the index, and each file that is not committed, in the worktree
//     and in its submodules.
//   - A file counts by its facts and not by its content, so that large files cost nothing. A program without
//     rights over the clock cannot set `ctime`, so a file that was changed and changed back is another one.

import { createHash } from "node:crypto";
import { lstatSync } from "node:fs";
import { join } from "node:path";

import { parseStatus } from "../../git/git.ts";
import { PLAIN_DIFF, SHALLOW } from "../../workspace/git-options.ts";
import { commitOf } from "../repository.ts";
import { partsOf } from "../submodules/worktree-parts.ts";
import type { WorktreeRecord } from "../worktree-record.ts";
import { gitIn, type GitSettings } from "../worktree-git.ts";

export interface WorkRevision {
  readonly id: string;
  /** The commit that is checked out; absent when git does not know the worktree any more. */
  readonly head: string | undefined;
}

export async function revisionOf(record: WorktreeRecord, settings: GitSettings): Promise<WorkRevision> {
  const hash = createHash("sha256");
  const own = await stateOf(record, settings);
  hash.update(own.text);
  for (const part of await partsOf(record, settings))
    if (part.isThere) hash.update(JSON.stringify([part.at, await stateOf(part.record, part.settings)]));
  return { id: hash.digest("hex"), head: own.head };
}

async function stateOf(
  { path, branch }: WorktreeRecord,
  settings: GitSettings,
): Promise<{ readonly text: string; readonly head: string | undefined }> {
  const head = await commitOf("HEAD", path, settings);
  if (head === undefined) return { text: "", head };
  const staged = ["diff", "--cached", ...PLAIN_DIFF, "--raw", "--no-abbrev", "--no-renames", "-z", head];
  const index = (await gitIn(path, staged, settings)).stdout;
  const selection = ["status", "--porcelain=v1", "-z", "--untracked-files=all", SHALLOW];
  const open = parseStatus((await gitIn(path, selection, settings)).stdout);
  const files = open.map((change) => [change.status, change.path, factsOf(join(path, change.path))]);
  return { text: JSON.stringify([branch, head, index, files]), head };
}

function factsOf(path: string): readonly string[] {
  const facts = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  if (facts === undefined) return [];
  const { ino, mode, size, mtimeNs, ctimeNs } = facts;
  return [ino, mode, size, mtimeNs, ctimeNs].map(String);
}
