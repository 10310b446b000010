// `rescueWorktree`: commits every byte of a worktree to `refs/holdfast/rescue/…`, also files that git does not know or ignores.
//
//   rescue-1. Files are stored as they are: no filter, no conversion of line ends, and no program of the repository runs.
//   rescue-2. Neither the index nor the HEAD of the user or of the worktree changes.
//   rescue-3. A rescue commit has the commit before it as a parent, so that no rescue is lost by a later one. Its other parents are HEAD,
//       the index where it differs, and commits that only the reflog of the worktree still has.
//   rescue-4. A tree that git cannot hold (a repository inside of the worktree, a name that is no UTF-8, a merge under way) is refused.

import { createHash, randomBytes } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  lstatSync,
  readdirSync,
  readlinkSync,
  rmSync,
  type BigIntStats,
} from "node:fs";
import { join } from "node:path";
import { HoldfastError, UnavailableError } from "@holdfast/core";

import { commitOf, identity } from "./repository.ts";
import { gitIn, type GitCall, type GitSettings } from "./worktree-git.ts";

/** Files of one call of git. */
export const FILES_PER_CALL = 2_000;
/** Commits that only the reflog has. Beyond, the removal is refused. */
const REFLOG_COMMITS_MAX = 50;
/** Entries of the reflog that are looked at, the newest first. Git keeps them for 90 days. */
const REFLOG_IDS_MAX = 10_000;
const EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
const IDENTITY = identity("rescue@holdfast.invalid");

/** A file that is stored in a rescue commit. */
export interface StoredFile {
  readonly path: string;
  /** Changes whenever the file changes. */
  readonly stamp: string;
}

export interface Rescue {
  readonly commit: string;
  readonly files: readonly StoredFile[];
}

interface RescuePlace {
  /** The root of the worktree. */
  readonly path: string;
  readonly project: string;
  readonly branch: string;
  readonly ref: string;
  /** A removal has begun: the files are what is left of it. */
  readonly isPartial: boolean;
}

/** A file or a link that was found. */
export interface FoundFile extends StoredFile {
  readonly mode: string;
}

/** @throws HoldfastError `conflict` for rescue-4, UnavailableError when the files change meanwhile. */
export async function rescueWorktree(place: RescuePlace, settings: GitSettings): Promise<Rescue> {
  const { path, project, ref } = place;
  // Git does not wait for the disk after each object otherwise.
  const run: Run = (args, options) => gitIn(project, ["-c", "core.fsync=all", ...args], settings, options);
  const found = findFiles(path);
  const before = await commitOf(ref, project, settings);
  const kept = place.isPartial ? before : undefined;
  const index = `${path}.index-${randomBytes(6).toString("hex")}`;
  try {
    const env = { GIT_INDEX_FILE: index };
    if (kept !== undefined) await run(["read-tree", kept], { env });
    for (let at = 0; at < found.length; at += FILES_PER_CALL) {
      const lines = await storeFiles(path, found.slice(at, at + FILES_PER_CALL), run);
      await run(["update-index", "-z", "--add", "--replace", "--index-info"], { env, input: lines });
    }
    const written = await run(["write-tree"], { env });
    const tree = written.stdout.trim();
    // A change between the listing and now is not in the tree.
    const again = findFiles(path);
    if (JSON.stringify(again) !== JSON.stringify(found))
      throw new UnavailableError("locked", `files of ${path} change while they are rescued`, {
        fix: "end the program that works there, and try again",
      });
    if (kept !== undefined && (await run(["rev-parse", `${kept}^{tree}`])).stdout.trim() === tree)
      return { commit: kept, files: found };
    const parents = await parentsOf(place, settings, index);
    const state = createHash("sha256")
      .update(JSON.stringify([tree, parents]))
      .digest("hex");
    if (before !== undefined) {
      const said = (await run(["log", "-1", "--format=%B", before])).stdout;
      if (said.includes(state)) return { commit: before, files: found };
    }
    const all = [...parents, ...(before === undefined ? [] : [before])].flatMap((id) => ["-p", id]);
    const message = `Everything in the worktree ${place.branch}\n\nHoldfast-State: ${state}\n`;
    const commit = (
      await run(["commit-tree", tree, ...all], { input: message, env: IDENTITY })
    ).stdout.trim();
    const old = before ?? "0".repeat(commit.length);
    await run(["update-ref", "--create-reflog", "-m", "holdfast: rescue", ref, commit, old]);
    return { commit, files: found };
  } finally {
    rmSync(index, { force: true });
    rmSync(`${index}.lock`, { force: true });
  }
}

type Run = (args: readonly string[], options?: GitCall) => ReturnType<typeof gitIn>;

/** Stores files as blobs (rescue-1). @returns their lines for `git update-index --index-info`. */
export async function storeFiles(root: string, files: readonly FoundFile[], run: Run): Promise<string> {
  const ids = new Map<string, string>();
  const byList = files.filter(({ path, mode }) => mode !== "120000" && !path.includes("\n"));
  if (byList.length > 0) {
    const input = byList.map(({ path }) => `${join(root, path)}\n`).join("");
    const { stdout } = await run(["hash-object", "-w", "--no-filters", "--stdin-paths"], { input });
    for (const [at, id] of stdout.trim().split("\n").entries()) ids.set(byList[at]?.path ?? "", id);
  }
  for (const { path, mode } of files) {
    if (ids.has(path)) continue;
    const at = join(root, path);
    const { stdout } =
      mode === "120000"
        ? await run(["hash-object", "-w", "--stdin"], { input: linkTarget(root, path) })
        : await run(["hash-object", "-w", "--no-filters", "--", at]);
    ids.set(path, stdout.trim());
  }
  return files.map(({ path, mode }) => `${mode} ${ids.get(path)}\t${path}\0`).join("");
}

function linkTarget(root: string, path: string): string {
  const target = readlinkSync(join(root, path), { encoding: "buffer" });
  const text = target.toString("utf8");
  if (Buffer.from(text, "utf8").equals(target)) return text;
  throw new HoldfastError("conflict", `the target of the link ${path} is no UTF-8, which git cannot keep`, {
    at: root,
    fix: "remove the link",
  });
}

/** rescue-3. */
async function parentsOf(
  { path, project, branch }: RescuePlace,
  settings: GitSettings,
  index: string,
): Promise<readonly string[]> {
  const ofBranch = await commitOf(`refs/heads/${branch}`, project, settings);
  if (!existsSync(join(path, ".git"))) return ofBranch === undefined ? [] : [ofBranch];
  const run: Run = (args, options) => gitIn(path, args, settings, options);
  const head = (await run(["rev-parse", "HEAD"])).stdout.trim();
  const parents = new Set([head, ...(ofBranch === undefined ? [] : [ofBranch])]);
  const staged = `${index}-staged`;
  try {
    const own = (await run(["rev-parse", "--path-format=absolute", "--git-path", "index"])).stdout.trim();
    if (existsSync(own)) copyFileSync(own, staged);
    const written = await run(["write-tree"], { env: { GIT_INDEX_FILE: staged }, codes: [0, 128] });
    if (written.exitCode !== 0)
      throw refused(path, "a merge or a rebase in it is not finished", "finish or abort it there");
    const tree = written.stdout.trim();
    const ofHead = (await run(["rev-parse", "HEAD^{tree}"])).stdout.trim();
    if (tree !== ofHead && tree !== EMPTY_TREE) {
      const dates = { GIT_AUTHOR_DATE: "1700000000 +0000", GIT_COMMITTER_DATE: "1700000000 +0000" };
      const made = await run(["commit-tree", tree, "-p", head], {
        input: `The index of the worktree ${branch}\n`,
        env: { ...IDENTITY, ...dates },
      });
      parents.add(made.stdout.trim());
    }
  } finally {
    rmSync(staged, { force: true });
    rmSync(`${staged}.lock`, { force: true });
  }
  for (const id of await reflogCommits(path, [...parents], settings)) parents.add(id);
  return [...parents];
}

/** Commits that only the reflog of the worktree still reaches: those of a reset or a deleted branch. */
async function reflogCommits(
  path: string,
  known: readonly string[],
  settings: GitSettings,
): Promise<readonly string[]> {
  const log = await gitIn(path, ["log", "-g", "--format=%H", "HEAD"], settings, { codes: [0, 128] });
  const ids = [...new Set(log.stdout.split("\n").filter((id) => id !== ""))];
  if (log.exitCode !== 0 || ids.length === 0) return [];
  const others = ["--not", "--branches", "--tags", "--remotes", ...known];
  const { stdout } = await gitIn(path, ["rev-list", ...ids.slice(0, REFLOG_IDS_MAX), ...others], settings);
  const lost = new Set(stdout.split("\n").filter((id) => id !== ""));
  const tips = ids.filter((id) => lost.has(id));
  if (tips.length <= REFLOG_COMMITS_MAX) return tips;
  throw refused(
    path,
    `${tips.length} commits are in its reflog alone`,
    "give the commits that you want to keep a branch (`git reflog` shows them)",
  );
}

/** Every file and link below the root, without the `.git` of the worktree itself. @throws HoldfastError `conflict` (rescue-4). */
function findFiles(root: string): readonly FoundFile[] {
  const files: FoundFile[] = [];
  const ahead = [""];
  for (let folder; (folder = ahead.pop()) !== undefined;) {
    for (const name of readdirSync(join(root, folder), { encoding: "buffer" })) {
      const text = name.toString("utf8");
      const path = folder === "" ? text : `${folder}/${text}`;
      if (path === ".git") continue;
      if (!Buffer.from(text, "utf8").equals(name))
        throw refused(root, `the name of a file in it is no UTF-8: ${path}`, "rename or move the file");
      if (text.toLowerCase() === ".git") {
        if (isEmptyFolder(join(root, path))) continue; // A sandbox leaves it in the folder of its session.
        throw refused(root, `it has a git repository inside, ${folder}`, "move that repository elsewhere");
      }
      const stats = lstatSync(join(root, path), { bigint: true });
      const file = fileOf(path, stats);
      if (stats.isDirectory()) ahead.push(path);
      else if (file !== undefined) files.push(file);
      else throw refused(root, `${path} is a socket, a pipe or a device`, "end the program that made it");
    }
  }
  return files.toSorted((a, b) => (a.path < b.path ? -1 : 1));
}

function isEmptyFolder(path: string): boolean {
  return lstatSync(path).isDirectory() && readdirSync(path).length === 0;
}

/** @returns nothing for what is neither a file nor a link. */
export function fileOf(path: string, stats: BigIntStats): FoundFile | undefined {
  if (stats.isFile()) return { path, mode: modeOf(stats), stamp: stampOf(stats) };
  return stats.isSymbolicLink() ? { path, mode: "120000", stamp: stampOf(stats) } : undefined;
}

function modeOf({ mode }: BigIntStats): string {
  return (mode & 0o100n) === 0n ? "100644" : "100755";
}

export function stampOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return [dev, ino, size, mtimeNs, ctimeNs].join(":");
}

function refused(path: string, why: string, fix: string): HoldfastError {
  return new HoldfastError("conflict", `the worktree ${path} cannot be removed: ${why}`, { at: path, fix });
}
