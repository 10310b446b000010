// `takeSnapshot`: commits the files of a session to `refs/holdfast/snapshots/…`, also those that are not
// committed and not ignored.
//
//   - Files are stored as they are, without filters and conversions. A file that has not changed since its
//     checkout is not read, and is stored as git has it.
//   - A snapshot is a commit whose parents are the snapshot before it and HEAD, so that git's clean-up keeps
//     all of them.
//   - Files and HEAD as in the last snapshot make no commit. A call that a crash cut off can be repeated.
//   - Files that git ignores, repositories inside of the folder, `.git` and `.holdfast` are left out.

import { randomBytes } from "node:crypto";
import { existsSync, lstatSync, readdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { HoldfastError, MIB } from "@holdfast/core";

import { copyIndex } from "../copy-index.ts";
import { isRepository } from "../../git/stage.ts";
import type { FileSnapshot } from "../../workspace/capabilities.ts";
import { OWN_FOLDER } from "../../workspace/contained-directory.ts";
import { SHALLOW } from "../../workspace/git-options.ts";
import { identity } from "../repository.ts";
import { fileOf, FILES_PER_CALL, storeFiles, type FoundFile } from "../rescue/stored-files.ts";
import type { GitSettings } from "../worktree-git.ts";
import { isOwnPath, namesIn, snapshotGit, type SnapshotGit, type SnapshotPlace } from "./snapshot-place.ts";

/** A larger file is in no snapshot. The whole of it would be stored again after each change. */
const FILE_BYTES_MAX = 100 * MIB;
const IDENTITY = identity("snapshot@holdfast.invalid");

/**
 * @throws HoldfastError `limit_exceeded` or `conflict` for files that cannot be kept, `invalid_input` with
 *   the words of git.
 */
export async function takeSnapshot(place: SnapshotPlace, settings: GitSettings): Promise<FileSnapshot> {
  const { root, ref, index } = place;
  const run = await snapshotGit(place, settings);
  const head = await headOf(place, run);
  const before = await snapshotAt(ref, run);
  // The index is replaced in one step: a crash leaves the old one, which is as good.
  removeDrafts(index);
  const draft = `${index}-${randomBytes(6).toString("hex")}`;
  try {
    if (existsSync(index)) copyIndex(index, draft);
    const inDraft: SnapshotGit = (args, call) => run(args, { ...call, env: { GIT_INDEX_FILE: draft } });
    if (!existsSync(draft) && head !== null) {
      // Nothing is known then of the files on the disk, so that all of them are read.
      await inDraft(["read-tree", head]);
      await dropOwnFiles(head, inDraft);
    }
    const { changed, gone } = await findChanges(root, head, inDraft);
    await dropFiles(gone, head, inDraft);
    for (let at = 0; at < changed.length; at += FILES_PER_CALL)
      await updateIndex(await storeFiles(root, changed.slice(at, at + FILES_PER_CALL), run), inDraft);
    const tree = (await inDraft(["write-tree"])).stdout.trim();
    const isSame = before?.tree === tree && before.head === head;
    const commit = isSame ? before.commit : await keep(place, { tree, head }, before?.commit, run);
    if (existsSync(draft)) renameSync(draft, index);
    return { commit, head };
  } catch (error) {
    // Git may have refused a damaged index. The next attempt makes another one.
    if (HoldfastError.is(error) && error.code === "invalid_input") rmSync(index, { force: true });
    throw error;
  } finally {
    removeDrafts(index);
  }
}

/** Removes what this attempt, and one that was killed, have left beside the index. */
function removeDrafts(index: string): void {
  for (const name of readdirSync(dirname(index)))
    if (name.startsWith(`${basename(index)}-`)) rmSync(join(dirname(index), name), { force: true });
}

/**
 * Begins the index of a place with that of a checkout. It has the marks of the files as they were checked
 * out: what does not change is never read.
 */
export async function beginIndex(
  place: SnapshotPlace,
  checkout: string,
  head: string,
  settings: GitSettings,
): Promise<void> {
  const { index } = place;
  const run = await snapshotGit(place, settings);
  copyIndex(checkout, index);
  await dropOwnFiles(head, (args, call) => run(args, { ...call, env: { GIT_INDEX_FILE: index } }));
}

/** A repository may have them in its commits. */
async function dropOwnFiles(head: string, inIndex: SnapshotGit): Promise<void> {
  const { stdout } = await inIndex(["ls-files", "-z", "--", `:(glob)**/${OWN_FOLDER}/**`]);
  await dropFiles(namesIn(stdout), head, inIndex);
}

/** @param id any object of the repository. */
async function dropFiles(paths: readonly string[], id: string | null, inIndex: SnapshotGit): Promise<void> {
  const lines = paths.map((path) => `0 ${noObject(id)}\t${path}\0`).join("");
  if (lines !== "") await updateIndex(lines, inIndex);
}

/** The id of no object, as long as those of the repository are. */
function noObject(id: string | null): string {
  return "0".repeat(id?.length ?? 40);
}

async function updateIndex(lines: string, inIndex: SnapshotGit): Promise<void> {
  await inIndex(["update-index", "-z", "--add", "--replace", "--index-info"], { input: lines });
}

interface Changes {
  readonly changed: readonly FoundFile[];
  /** Paths of the index that are no files any more. */
  readonly gone: readonly string[];
}

/** The differences between the index and the files, by the marks of the files alone. No file is read, so no filter runs. */
async function findChanges(root: string, head: string | null, inDraft: SnapshotGit): Promise<Changes> {
  const listed = async ([command = "", ...args]: readonly string[]) =>
    namesIn((await inDraft([command, "-z", ...args])).stdout);
  const status = await listed(["diff-files", "--name-status", SHALLOW]);
  const others = await listed(["ls-files", "--others", "--exclude-standard"]);
  // A commit of the session may have files that git ignores otherwise.
  const committed =
    head === null ? [] : await listed(["diff-index", "--cached", "--name-only", "--diff-filter=D", head]);
  const differing = status.filter((_, at) => at % 2 === 1);
  const isDeleted = new Set(differing.filter((_, at) => status[at * 2] === "D"));
  const wanted = new Set([...differing, ...others.filter((name) => !isRepository(name)), ...committed]);
  const gone = [...isDeleted];
  const changed: FoundFile[] = [];
  for (const path of wanted) {
    if (isOwnPath(path) || isDeleted.has(path)) continue;
    const file = findFile(root, path);
    if (file === undefined) gone.push(path);
    else changed.push(file);
  }
  return { changed, gone };
}

function findFile(root: string, path: string): FoundFile | undefined {
  if (path.includes("\uFFFD"))
    throw unkept(root, `the name of a file in it is no UTF-8: ${path}`, "rename or move the file");
  if (isBehindLink(root, path)) return undefined;
  const stats = lstatSync(join(root, path), { bigint: true, throwIfNoEntry: false });
  if (stats === undefined) return undefined;
  if (stats.isFile() && stats.size > FILE_BYTES_MAX)
    throw unkept(
      root,
      `${path} has ${stats.size} bytes, and ${FILE_BYTES_MAX} is the limit for one file`,
      "move it away, or name it in .gitignore",
    );
  return fileOf(path, stats);
}

/** A link among its folders leads to a file that is not part of the workspace, or is there under its own path. */
function isBehindLink(root: string, path: string): boolean {
  for (let folder = dirname(path); folder !== "."; folder = dirname(folder)) {
    const stats = lstatSync(join(root, folder), { throwIfNoEntry: false });
    if (stats?.isDirectory() !== true) return true;
  }
  return false;
}

async function keep(
  { session, ref }: SnapshotPlace,
  { tree, head }: { readonly tree: string; readonly head: string | null },
  before: string | undefined,
  run: SnapshotGit,
): Promise<string> {
  const parents = [before, head].flatMap((id) => (typeof id === "string" ? ["-p", id] : []));
  const input = `Files of session ${session}\n\nHoldfast-Head: ${head ?? "none"}\n`;
  const commit = (await run(["commit-tree", tree, ...parents], { input, env: IDENTITY })).stdout.trim();
  await run(["update-ref", "-m", "holdfast: snapshot", ref, commit, before ?? noObject(commit)]);
  return commit;
}

interface KnownSnapshot {
  readonly commit: string;
  readonly tree: string;
  readonly head: string | null;
}

async function snapshotAt(ref: string, run: SnapshotGit): Promise<KnownSnapshot | undefined> {
  const args = ["log", "-1", "--format=%H%n%T%n%B", "--end-of-options", ref, "--"];
  const { stdout, exitCode } = await run(args, { codes: [0, 128] });
  const [commit, tree] = stdout.split("\n");
  if (exitCode !== 0 || commit === undefined || tree === undefined) return undefined;
  const [, head] = /^Holdfast-Head: ([0-9a-f]+)$/m.exec(stdout) ?? [];
  return { commit, tree, head: head ?? null };
}

async function headOf({ root, bare }: SnapshotPlace, run: SnapshotGit): Promise<string | null> {
  if (bare !== undefined) return null;
  const args = ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"];
  const { stdout, exitCode } = await run(args, { codes: [0, 1, 128] });
  if (exitCode === 0) return stdout.trim();
  throw unkept(root, "its HEAD names no commit", "commit something in it, or switch to a branch");
}

function unkept(root: string, why: string, fix: string): HoldfastError {
  return new HoldfastError("limit_exceeded", `the files of ${root} cannot be kept: ${why}`, {
    at: root,
    fix,
  });
}
