// `SnapshotPlace`: the files of one session and the repository that keeps their snapshots, as git is called
// for both.
//
//   - A snapshot has an index of its own. The index, the HEAD and the branches of the user and of the agent
//     stay as they are.
//   - No hook and no filter of the repository's own configuration runs.

import { OWN_FOLDER } from "../../workspace/contained-directory.ts";
import { isTemporaryName } from "../../workspace/contained-files.ts";
import { gitIn, ownGuard, type GitAnswer, type GitCall, type GitSettings } from "../worktree-git.ts";

export interface SnapshotPlace {
  readonly session: string;
  /** The root of the files. */
  readonly root: string;
  /** The ref of the session's newest snapshot. Its parents are the earlier ones. */
  readonly ref: string;
  /** The index of the snapshots. It is a cache: without it, all files are read again. */
  readonly index: string;
  /** The repository, where the files have none of their own. */
  readonly bare?: string;
}

export type SnapshotGit = (args: readonly string[], call?: GitCall) => Promise<GitAnswer>;

/** Git of one snapshot. */
export async function snapshotGit(
  { root, bare }: SnapshotPlace,
  settings: GitSettings,
): Promise<SnapshotGit> {
  const repository = bare === undefined ? {} : { GIT_DIR: bare, GIT_WORK_TREE: root };
  const guard = await ownGuard(root, settings, repository);
  // Git does not wait for the disk after each object otherwise.
  return (args, call = {}) =>
    gitIn(root, ["-c", "core.fsync=all", ...args], settings, {
      ...call,
      env: { ...guard, ...repository, ...call.env },
    });
}

/** The names in an output of git with `-z`. */
export function namesIn(stdout: string): readonly string[] {
  return stdout.split("\0").filter((name) => name !== "");
}

/** Whether a path is Holdfast's own: it is in no snapshot, and no restore touches it. */
export function isOwnPath(path: string): boolean {
  const names = path.split("/");
  return names.includes(OWN_FOLDER) || names.includes(".git") || isTemporaryName(names.at(-1) ?? "");
}
