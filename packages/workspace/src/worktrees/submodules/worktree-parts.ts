// `partsOf`: the submodules of a worktree, each as a worktree of the submodule's own repository.
//
//   - A part has the branch and the rescue ref of its session, in its own repository. The creation, the
//     comparison, the rescue and the removal of a worktree are those of a part too.
//   - The file `.git` of a part lies in reach of an agent. It says only whether the part is still there. Git
//     is told the repository, and reads no configuration that an agent could have written.

import { existsSync, lstatSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { join, resolve } from "node:path";

import { currentBranch } from "../repository.ts";
import type { SubmoduleRecord, WorktreeRecord } from "../worktree-record.ts";
import type { GitSettings } from "../worktree-git.ts";
import { inStore } from "./find-submodules.ts";

export interface WorktreePart {
  /** The path of the submodule in the worktree. */
  readonly at: string;
  readonly record: WorktreeRecord;
  readonly settings: GitSettings;
  /** Whether its folder is still the checkout that was made for the session. */
  readonly isThere: boolean;
}

/** The parts, each after those inside of it. */
export async function partsOf(
  record: WorktreeRecord,
  settings: GitSettings,
): Promise<readonly WorktreePart[]> {
  const parts: WorktreePart[] = [];
  for (const submodule of (record.submodules ?? []).toReversed()) {
    if (!existsSync(submodule.store)) continue; // The user has removed it, and with it all that git knew.
    const own = recordOf(record, submodule);
    const entry = adminEntry(own);
    const isThere = entry !== undefined && leadsTo(own.path, entry);
    const named = inStore(own.repository, settings);
    if (!isThere) {
      parts.push({ at: submodule.path, record: own, settings: named, isThere });
      continue;
    }
    const known = { ...named, gitFolders: { ...named.gitFolders, [own.path]: entry } };
    const branch = await currentBranch(own, known);
    parts.push({ at: submodule.path, record: { ...own, branch }, settings: known, isThere });
  }
  return parts;
}

/** The record of a submodule's worktree. */
export function recordOf(record: WorktreeRecord, { path, store, base }: SubmoduleRecord): WorktreeRecord {
  const { submodules: _all, snapshot: _files, ...own } = record;
  // Git names real paths. A link that came among the folders of the path later leads to no part.
  const root = existsSync(record.path) ? realpathSync(record.path) : record.path;
  return { ...own, path: join(root, path), project: store, repository: store, prefix: "", base };
}

/** The folder of a worktree in its repository, by the path that it points to. */
export function adminEntry({ repository, path }: WorktreeRecord): string | undefined {
  const folder = join(repository, "worktrees");
  if (!existsSync(folder)) return undefined;
  return (
    readdirSync(folder)
      .map((name) => join(folder, name))
      // Newer versions of git can be told to write relative paths.
      .find((entry) => resolve(entry, textOf(join(entry, "gitdir"))?.trim() ?? "") === join(path, ".git"))
  );
}

/** Whether the checkout in a folder is one of this git directory. */
export function leadsTo(folder: string, gitFolder: string): boolean {
  const file = join(folder, ".git");
  if (lstatSync(file, { throwIfNoEntry: false })?.isFile() !== true || realpathSync(folder) !== folder)
    return false;
  const [, named] = /^gitdir: (.+?)\n?$/s.exec(textOf(file) ?? "") ?? [];
  return named !== undefined && resolve(folder, named) === gitFolder;
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
