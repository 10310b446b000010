// `restoreFiles`: makes the files of a folder those of a snapshot. The folder has the files of HEAD, or none,
// and nobody works in it.
//
//   - Files that differ are written byte for byte, without filters and conversions, and the index stays that
//     of HEAD. Changes that were not committed thus are changes again.
//   - A call that was cut off is repeated from its beginning, and has the same result.
//   - Nothing is written through a link, and nothing of `.git` or `.holdfast` changes.

import { chmodSync, lstatSync, mkdirSync, rmdirSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { HoldfastError, MIB, NotFoundError } from "@holdfast/core";

import { EMPTY_TREE, type GitSettings } from "../worktree-git.ts";
import { isOwnPath, namesIn, snapshotGit, type SnapshotGit, type SnapshotPlace } from "./snapshot-place.ts";

/** The bytes of the files of one call of git. A larger file has a call of its own. */
const BYTES_PER_CALL = 32 * MIB;
/** The bytes before each object in the output of git, at most. */
const HEADER_BYTES = 128;
const MODES = { link: "120000", program: "100755", repository: "160000" } as const;

interface ChangedFile {
  readonly path: string;
  readonly mode: string;
  readonly id: string;
}

/**
 * @param head `null` for a folder without files. @throws NotFoundError `file_not_found` when an object of the
 *   snapshot is gone.
 */
export async function restoreFiles(
  place: SnapshotPlace,
  head: string | null,
  commit: string,
  settings: GitSettings,
): Promise<void> {
  const { root } = place;
  const run = await snapshotGit(place, settings);
  await requireSnapshot(place.session, commit, run);
  const args = ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", head ?? EMPTY_TREE, commit];
  const listed = await run(args, { codes: [0, 128] });
  if (listed.exitCode !== 0) throw gone(place.session, commit, listed.stderr);
  const { files, removed } = readChanges(listed.stdout);
  for (const path of removed) removeFile(root, path);
  for (const group of groupBySize(await sizesOf(files, place.session, commit, run))) {
    const wanted = group.map(({ id }) => `${id}\n`).join("");
    const outputBytes = group.reduce((sum, { bytes }) => sum + bytes + HEADER_BYTES, 0);
    const call = { input: wanted, outputBytes, isBinary: true } as const;
    const { stdout } = await run(["cat-file", "--batch"], call);
    let at = 0;
    for (const file of group) {
      const from = stdout.indexOf("\n", at) + 1;
      at = from + file.bytes + 1;
      writeFile(root, file, Buffer.from(stdout.slice(from, from + file.bytes), "latin1"));
    }
  }
}

/** @throws NotFoundError `file_not_found` */
export async function requireSnapshot(session: string, commit: string, run: SnapshotGit): Promise<void> {
  const args = ["cat-file", "-e", `${commit}^{tree}`];
  const { exitCode, stderr } = await run(args, { codes: [0, 1, 128] });
  if (exitCode !== 0) throw gone(session, commit, stderr);
}

/** The differences that are to be made. */
function readChanges(stdout: string): {
  readonly files: readonly ChangedFile[];
  readonly removed: readonly string[];
} {
  const parts = namesIn(stdout);
  const files: ChangedFile[] = [];
  const removed: string[] = [];
  for (let at = 0; at + 1 < parts.length; at += 2) {
    const [, mode = "", , id = "", status] = (parts[at] ?? "").split(" ");
    const path = parts[at + 1] ?? "";
    if (isOwnPath(path) || mode === MODES.repository) continue;
    if (status === "D") removed.push(path);
    else files.push({ path, mode, id });
  }
  return { files, removed };
}

interface SizedFile extends ChangedFile {
  readonly bytes: number;
}

async function sizesOf(
  files: readonly ChangedFile[],
  session: string,
  commit: string,
  run: SnapshotGit,
): Promise<readonly SizedFile[]> {
  const input = files.map(({ id }) => `${id}\n`).join("");
  const { stdout } = await run(["cat-file", "--batch-check=%(objectsize)"], { input });
  const lines = stdout.split("\n");
  return files.map((file, at) => {
    const bytes = Number(lines[at]);
    if (!Number.isSafeInteger(bytes) || lines[at] === "")
      throw gone(session, commit, `${file.path} is missing`);
    return { ...file, bytes };
  });
}

function groupBySize(files: readonly SizedFile[]): readonly SizedFile[][] {
  const groups: SizedFile[][] = [];
  let total = Infinity;
  for (const file of files) {
    if (total + file.bytes > BYTES_PER_CALL) {
      groups.push([]);
      total = 0;
    }
    groups.at(-1)?.push(file);
    total += file.bytes;
  }
  return groups;
}

function writeFile(root: string, { path, mode }: ChangedFile, bytes: Buffer): void {
  const at = join(root, path);
  makeFolders(root, dirname(path));
  const there = lstatSync(at, { throwIfNoEntry: false });
  if (there?.isDirectory() === true) rmdirSync(at);
  else if (there !== undefined) unlinkSync(at);
  if (mode === MODES.link) return symlinkSync(bytes, at);
  writeFileSync(at, bytes, { flag: "wx" });
  if (mode === MODES.program) chmodSync(at, 0o755);
}

function makeFolders(root: string, folder: string): void {
  if (folder === ".") return;
  makeFolders(root, dirname(folder));
  const at = join(root, folder);
  const there = lstatSync(at, { throwIfNoEntry: false });
  if (there?.isDirectory() === true) return;
  if (there !== undefined) unlinkSync(at);
  mkdirSync(at);
}

/** Removes a file, and the folders that it leaves empty. */
function removeFile(root: string, path: string): void {
  for (let folder = dirname(path); folder !== "."; folder = dirname(folder))
    if (lstatSync(join(root, folder), { throwIfNoEntry: false })?.isDirectory() !== true) return;
  const at = join(root, path);
  if (lstatSync(at, { throwIfNoEntry: false })?.isDirectory() === true) return;
  unlinkIfThere(at);
  for (let folder = dirname(path); folder !== "."; folder = dirname(folder)) {
    try {
      rmdirSync(join(root, folder));
    } catch {
      return; // It has other files.
    }
  }
}

function unlinkIfThere(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) unlinkSync(path);
}

function gone(session: string, commit: string, said: string): HoldfastError {
  return new NotFoundError(
    "file_not_found",
    `the files of session ${session} cannot be restored, because their snapshot is not complete: ${said.trim().slice(0, 500)}`,
    {
      got: `no commit ${commit} with all its files`,
      expected: "the git repository that the snapshot was made in",
      fix: "run the fork in the project and on the machine of its origin, or start a new session; snapshots end with their session and with its worktree",
    },
  );
}
