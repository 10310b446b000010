// `storeFiles`: writes files to git as they are (rescue-1), for rescues and for snapshots.

import { readlinkSync, type BigIntStats } from "node:fs";
import { join } from "node:path";
import { HoldfastError } from "@holdfast/core";

import type { gitIn, GitCall } from "../worktree-git.ts";

/** Files of one call of git. */
export const FILES_PER_CALL = 2_000;

/** A file that is stored in a rescue commit. */
export interface StoredFile {
  readonly path: string;
  /** Changes whenever the file changes. */
  readonly stamp: string;
}

export interface RescuePlace {
  /** The root of the worktree. */
  readonly path: string;
  readonly project: string;
  readonly branch: string;
  readonly ref: string;
  /** A removal has begun: the files are what is left of it. */
  readonly isPartial: boolean;
  /** The submodules in it, each with a rescue of its own. */
  readonly submodules?: readonly RescuedSubmodule[];
}

export interface RescuedSubmodule {
  readonly path: string;
  readonly head: string;
  /** Its rescue commit, in its own repository. */
  readonly rescue: string;
}

/** A file or a link that was found. */
export interface FoundFile extends StoredFile {
  readonly mode: string;
}

export type Run = (args: readonly string[], options?: GitCall) => ReturnType<typeof gitIn>;

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

export function refused(path: string, why: string, fix: string): HoldfastError {
  return new HoldfastError("conflict", `the worktree ${path} cannot be removed: ${why}`, { at: path, fix });
}
