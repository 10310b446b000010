// `rescueWorktree`: commits every byte of a worktree to `refs/holdfast/rescue/…`, also files that git does
// not know or ignores.
//
//   rescue-1. Files are stored as they are: no filter, no conversion of line ends, and no program of the
//       repository runs.
//   - Neither the index nor the HEAD of the user or of the worktree changes.
//   rescue-3. A rescue commit has the commit before it as a parent, so that no rescue is lost by a later one.
//       Its other parents are HEAD, the index where it differs, and everything that git's own folder of the
//       worktree names and nothing else reaches.
//   rescue-4. A tree that git cannot hold (a repository inside of the worktree, a name that is no UTF-8, a
//       merge under way) is refused.
//   - The rescue of a worktree names its submodules with their HEAD, and in its message with their own rescue
//     commits. Their files are there.

import { createHash } from "node:crypto";
import { lstatSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { UnavailableError } from "@holdfast/core";

import { commitOf, identity } from "../repository.ts";
import { draftIndexOf, gitIn, type GitSettings } from "../worktree-git.ts";
import { parentsOf } from "./rescue-parents.ts";
import {
  fileOf,
  FILES_PER_CALL,
  refused,
  storeFiles,
  type FoundFile,
  type RescuePlace,
  type Run,
  type StoredFile,
} from "./stored-files.ts";

const IDENTITY = identity("rescue@holdfast.invalid");

export interface Rescue {
  readonly commit: string;
  readonly files: readonly StoredFile[];
}

/** @throws HoldfastError `conflict` for rescue-4, UnavailableError when the files change meanwhile. */
export async function rescueWorktree(place: RescuePlace, settings: GitSettings): Promise<Rescue> {
  const { path, project, ref } = place;
  // Git does not wait for the disk after each object otherwise.
  const run: Run = (args, options) => gitIn(project, ["-c", "core.fsync=all", ...args], settings, options);
  const { submodules = [] } = place;
  const skipped = new Set(submodules.map((submodule) => submodule.path));
  const found = findFiles(path, skipped);
  const before = await commitOf(ref, project, settings);
  const kept = place.isPartial ? before : undefined;
  const index = draftIndexOf(path, settings);
  try {
    const env = { GIT_INDEX_FILE: index };
    if (kept !== undefined) await run(["read-tree", kept], { env });
    for (let at = 0; at < found.length; at += FILES_PER_CALL) {
      const lines = await storeFiles(path, found.slice(at, at + FILES_PER_CALL), run);
      await run(["update-index", "-z", "--add", "--replace", "--index-info"], { env, input: lines });
    }
    const links = submodules.map(({ path: at, head }) => `160000 ${head}\t${at}\0`).join("");
    if (links !== "")
      await run(["update-index", "-z", "--add", "--replace", "--index-info"], { env, input: links });
    const written = await run(["write-tree"], { env });
    const tree = written.stdout.trim();
    // A change between the listing and now is not in the tree.
    const again = findFiles(path, skipped);
    if (JSON.stringify(again) !== JSON.stringify(found))
      throw new UnavailableError("locked", `files of ${path} change while they are rescued`, {
        fix: "end the program that works there, and try again",
      });
    if (kept !== undefined && (await run(["rev-parse", `${kept}^{tree}`])).stdout.trim() === tree)
      return { commit: kept, files: found };
    const parents = await parentsOf(place, settings, index);
    const state = createHash("sha256")
      .update(JSON.stringify([tree, parents, ...submodules]))
      .digest("hex");
    if (before !== undefined) {
      const said = (await run(["log", "-1", "--format=%B", before])).stdout;
      if (said.includes(state)) return { commit: before, files: found };
    }
    const all = [...parents, ...(before === undefined ? [] : [before])].flatMap((id) => ["-p", id]);
    const named = submodules.map(({ path: at, rescue }) => `Holdfast-Submodule: ${rescue} ${at}\n`).join("");
    const message = `Everything in the worktree ${place.branch}\n\nHoldfast-State: ${state}\n${named}`;
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

/**
 * Every file and link below the root, without the `.git` of the worktree itself.
 *
 * @param skipped folders that have a rescue of their own. @throws HoldfastError `conflict` (rescue-4).
 */
function findFiles(root: string, skipped: ReadonlySet<string>): readonly FoundFile[] {
  const files: FoundFile[] = [];
  const ahead = [""];
  for (let folder; (folder = ahead.pop()) !== undefined;) {
    for (const name of readdirSync(join(root, folder), { encoding: "buffer" })) {
      const text = name.toString("utf8");
      const path = folder === "" ? text : `${folder}/${text}`;
      if (path === ".git" || skipped.has(path)) continue;
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
