// `removeWorktree`: takes a worktree away without losing a byte of it. Its branch stays.
//
//   - Everything is in the rescue commit first. A file is then removed alone, and only as it was rescued. A
//     file that was added or changed since then stays, with its folder.
//   - Each step is safe to repeat. A removal that was cut off is finished by the next one.
//   - A worktree that a process works in is not removed.

import { existsSync, lstatSync, readdirSync, rmdirSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { HoldfastError, UnavailableError } from "@holdfast/core";

import { operationIn } from "./rescue/git-folder.ts";
import { rescueWorktree } from "./rescue/rescue.ts";
import { stampOf, type RescuedSubmodule, type StoredFile } from "./rescue/stored-files.ts";
import { commitOf, dropRef } from "./repository.ts";
import { partsOf, type WorktreePart } from "./submodules/worktree-parts.ts";
import { readFacts, processesIn, type WorktreeFacts } from "./worktree-facts.ts";
import { keepRecord, type WorktreeNames, type WorktreeRecord } from "./worktree-record.ts";
import { gitIn, type GitSettings } from "./worktree-git.ts";

const NAMED_MAX = 5;

/**
 * @param rescues also a worktree with changes and commits that are nowhere else is removed. They are in the
 *   rescue commit.
 * @returns the rescue commit; nothing when an earlier removal had finished.
 */
export async function removeWorktree(
  record: WorktreeRecord,
  names: WorktreeNames,
  rescues: boolean,
  settings: GitSettings,
): Promise<string | undefined> {
  if (record.state === "removed") return undefined;
  const { path, project, repository } = record;
  if (!existsSync(repository))
    throw new HoldfastError(
      "conflict",
      `the repository of ${path} is gone, and with it the place for a rescue`,
      {
        at: repository,
        fix: "copy what you need out of the folder, and then remove the folder yourself",
      },
    );
  const facts = await readFacts(record, settings);
  const parts = await partsOf(record, settings);
  refuseUse(path, facts.processes);
  if (!rescues && record.state !== "removing") {
    const isKnown = facts.isThere && facts.head !== null;
    refuseLoss(record, facts, isKnown ? await operationOf(path, parts, settings) : undefined);
  }
  if (facts.isThere) {
    const files = await rescueAll(record, parts, names.rescue, settings);
    keepRecord(names.record, { ...record, state: "removing" });
    refuseUse(path, processesIn(path)); // A process may have come meanwhile.
    for (const [root, found] of files) removeFiles(root, found);
  }
  for (const part of parts) {
    const remove = ["worktree", "remove", "--force", "--force", part.record.path];
    await gitIn(part.record.repository, remove, part.settings, { codes: [0, 128] });
  }
  // Its folder is gone, so git takes away its own entry alone.
  await gitIn(project, ["worktree", "remove", "--force", "--force", path], settings, { codes: [0, 128] });
  await dropRef(names.snapshots, project, settings);
  keepRecord(names.record, { ...record, state: "removed" });
  return (
    await gitIn(project, ["rev-parse", "--verify", "--quiet", names.rescue], settings, { codes: [0, 1] })
  ).stdout.trim();
}

/** Rescues a worktree, and before it each of its submodules. @returns the files of each by its root, in this order. */
async function rescueAll(
  record: WorktreeRecord,
  parts: readonly WorktreePart[],
  ref: string,
  settings: GitSettings,
): Promise<readonly (readonly [root: string, files: readonly StoredFile[]])[]> {
  const isPartial = record.state === "removing";
  const files: (readonly [string, readonly StoredFile[]])[] = [];
  let open: readonly RescuedSubmodule[] = []; // No rescue names them yet.
  const own = { at: "", record, settings, isThere: true };
  for (const { at, record: one, settings: of } of [...parts.filter((part) => part.isThere), own]) {
    const { path, project, branch } = one;
    const prefix = at === "" ? "" : `${at}/`;
    const inside = open.filter((submodule) => submodule.path.startsWith(prefix));
    const submodules = inside.map((submodule) => ({
      ...submodule,
      path: submodule.path.slice(prefix.length),
    }));
    const rescue = await rescueWorktree({ path, project, branch, ref, isPartial, submodules }, of);
    files.push([path, rescue.files]);
    const head = (await commitOf("HEAD", path, of)) ?? rescue.commit;
    open = [
      ...open.filter((submodule) => !inside.includes(submodule)),
      { path: at, head, rescue: rescue.commit },
    ];
  }
  return files;
}

/** The operation of git that waits in a worktree or in one of its submodules. */
async function operationOf(
  path: string,
  parts: readonly WorktreePart[],
  settings: GitSettings,
): Promise<string | undefined> {
  for (const { at, record, settings: of, isThere } of parts) {
    const found = isThere ? await operationIn(record.path, of) : undefined;
    if (found !== undefined) return `${found} in ${at}`;
  }
  return operationIn(path, settings);
}

function removeFiles(root: string, files: readonly StoredFile[]): void {
  for (const { path, stamp } of files) {
    const at = join(root, path);
    if (stampOf(lstatSync(at, { bigint: true })) !== stamp) throw changed(root, path);
    unlinkSync(at);
  }
  removeFolders(root, "");
  const rest = readdirSync(root).filter((name) => name !== ".git");
  if (rest[0] !== undefined) throw changed(root, rest[0]);
  if (existsSync(join(root, ".git"))) unlinkSync(join(root, ".git")); // A file that points to the repository.
  rmdirSync(root);
}

/** Removes the empty folders below a folder. A folder with a file in it stays. */
function removeFolders(root: string, folder: string): void {
  for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
    const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
    if (!entry.isDirectory()) {
      if (path !== ".git") throw changed(root, path);
      continue;
    }
    removeFolders(root, path);
    rmdirSync(join(root, path));
  }
}

function changed(root: string, path: string): UnavailableError {
  return new UnavailableError(
    "locked",
    `${path} in ${root} has changed while the worktree was being removed`,
    {
      at: root,
      fix: "end the program that works there, and remove the worktree again; what is in it is kept",
    },
  );
}

function refuseUse(path: string, processes: WorktreeFacts["processes"]): void {
  if (processes === null || processes.length === 0) return;
  const shown = processes.slice(0, NAMED_MAX).join(", ");
  throw new HoldfastError("in_use", `the worktree ${path} is in use`, {
    at: path,
    got: `${processes.length === 1 ? "process" : "processes"} ${shown}`,
    fix: "end them, or wait until they have ended",
  });
}

/** @param operation an unfinished operation of git, which may hold a stash. */
function refuseLoss(record: WorktreeRecord, facts: WorktreeFacts, operation: string | undefined): void {
  const { changed: files, untracked, unpushed } = facts;
  const found = [
    ...(operation === undefined ? [] : [`a ${operation} that is not finished`]),
    ...(files.length > 0 ? [`${files.length} changed (${listed(files)})`] : []),
    ...(untracked.length > 0 ? [`${untracked.length} untracked (${listed(untracked)})`] : []),
    ...(unpushed > 0 ? [`${unpushed} commits of ${record.branch} that are nowhere else`] : []),
  ];
  if (found.length === 0) return;
  const way =
    operation === undefined
      ? `merge it (\`holdfast merge ${record.session}\`), push its branch`
      : `finish or abort the ${operation} there`;
  throw new HoldfastError(
    "conflict",
    `the worktree of session ${record.session} has work that is nowhere else`,
    {
      at: record.path,
      got: found.join(", "),
      fix: `${way}, or give --rescue: everything is then in a rescue commit first`,
    },
  );
}

function listed(paths: readonly string[]): string {
  const more = paths.length > NAMED_MAX ? ", …" : "";
  return `${paths.slice(0, NAMED_MAX).join(", ")}${more}`;
}
