// `createWorktree`: makes the worktree of a record, and finishes one whose creation was cut off.
//
//   - Each step looks at what is there and is safe to repeat. The session gets the worktree after the last
//     step alone, so that a worktree in the state `creating` holds no work.
//   - Should there be other files nevertheless, they are rescued before the checkout.
//   - A branch that has left its base, or that was there before the record, is somebody's work and is not
//     touched.
//   - A submodule is made after the checkout that has its folder, as a worktree of its own repository. Git's
//     own commands for submodules are not used: they would clone, and run commands of the project's
//     configuration.

import { existsSync, readdirSync, realpathSync, rmdirSync, rmSync, unlinkSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { HoldfastError } from "@holdfast/core";
import { endTagged } from "@holdfast/system/processes";

import { SHALLOW } from "../workspace/git-options.ts";
import { commitOf } from "./repository.ts";
import { rescueWorktree } from "./rescue/rescue.ts";
import { inStore } from "./submodules/find-submodules.ts";
import { adminEntry, recordOf } from "./submodules/worktree-parts.ts";
import type { WorktreeRecord } from "./worktree-record.ts";
import { gitIn, type GitSettings } from "./worktree-git.ts";

const HALF_MADE_MS = 1_000;
const HALF_MADE_LOOKS = 20;

/** @param rescueRef the place for files that creation would overwrite. */
export async function createWorktree(
  record: WorktreeRecord,
  rescueRef: string,
  settings: GitSettings & { readonly tag: string },
): Promise<void> {
  await endTagged(settings.tag); // The git of a process that was killed may still run.
  await createOne(record, rescueRef, settings);
  for (const submodule of record.submodules ?? []) {
    const part = recordOf(record, submodule);
    // Where letters of both cases are one name, a link of the project can be among the folders of the path.
    const above = dirname(part.path);
    if (realpathSync(above) !== above) throw taken(part, `${above} is behind a link`);
    await createOne(part, rescueRef, inStore(submodule.store, settings)).catch((error: unknown) => {
      throw HoldfastError.is(error) && NOT_FETCHED.test(error.message)
        ? incomplete(record, submodule.path, error)
        : error;
    });
  }
}

/** The words of git for an object that it would have to fetch. */
const NOT_FETCHED = /transport '.*' not allowed/;

function incomplete({ project }: WorktreeRecord, path: string, cause: HoldfastError): HoldfastError {
  return new HoldfastError("invalid_input", `the submodule ${path} lacks files of its recorded commit`, {
    at: join(project, path),
    expected: "a repository that has them, because nothing is fetched for a worktree",
    fix: `run \`git submodule update --init --recursive\` in ${project}`,
    cause,
  });
}

/** Git looks at all worktrees, and fails for one that another git has begun to make at that moment. */
async function createOne(record: WorktreeRecord, rescueRef: string, settings: GitSettings): Promise<void> {
  for (let left = HALF_MADE_LOOKS; ; left--)
    try {
      return await makeOne(record, rescueRef, settings);
    } catch (error) {
      if (!HoldfastError.is(error) || error.code !== "locked" || left === 0) throw error;
      await delay(HALF_MADE_MS / HALF_MADE_LOOKS);
    }
}

async function makeOne(record: WorktreeRecord, rescueRef: string, settings: GitSettings): Promise<void> {
  const { path, project, branch, base } = record;
  const tip = await commitOf(`refs/heads/${branch}`, project, settings);
  if (tip !== undefined && tip !== base) throw taken(record, `the branch ${branch} has other commits`);
  if (!(await isWhole(record, settings))) {
    await clearUnfinished(record, settings);
    const lock = ["--lock", "--reason", `Holdfast session ${record.session}`];
    const named = tip === undefined ? ["-b", branch, path, base] : [path, branch];
    await addWorktree(record, ["worktree", "add", "--quiet", "--no-checkout", ...lock, ...named], settings);
  }
  await checkOut(record, rescueRef, settings);
}

async function addWorktree(
  record: WorktreeRecord,
  args: readonly string[],
  settings: GitSettings,
): Promise<void> {
  try {
    await gitIn(record.project, args, settings);
  } catch (error) {
    if (!HoldfastError.is(error) || !/cannot lock ref|exists; cannot create/.test(error.message)) throw error;
    throw new HoldfastError("conflict", `git cannot make the branch ${record.branch}: ${error.message}`, {
      at: record.project,
      fix: "rename a branch that is named `holdfast`; branches of sessions lie below that name",
      cause: error,
    });
  }
}

/** Whether git knows the worktree, and its HEAD is the branch. */
async function isWhole(
  { path, branch, repository }: WorktreeRecord,
  settings: GitSettings,
): Promise<boolean> {
  if (!existsSync(join(path, ".git"))) return false;
  const asked = ["rev-parse", "--path-format=absolute", "--git-common-dir", "--symbolic-full-name", "HEAD"];
  const { stdout, exitCode } = await gitIn(path, asked, settings, { codes: [0, 128] });
  return exitCode === 0 && stdout === `${repository}\nrefs/heads/${branch}\n`;
}

/** Takes away the empty frame that a killed `git worktree add` left: a folder with at most the file `.git` in it. */
async function clearUnfinished(record: WorktreeRecord, settings: GitSettings): Promise<void> {
  const { path, project } = record;
  if (existsSync(path)) {
    const names = readdirSync(path).filter((name) => name !== ".git");
    if (names.length > 0) throw taken(record, `the folder ${path} has files in it`);
    rmSync(join(path, ".git"), { force: true }); // A file: a folder is not removed without `recursive`.
    rmdirSync(path);
  }
  const entry = adminEntry(record);
  if (entry === undefined) return;
  await gitIn(project, ["worktree", "remove", "--force", "--force", path], settings, { codes: [0, 128] });
  // Killed before it had written its files, git does not list the entry, and would choose another name beside
  // it.
  const rest = adminEntry(record);
  if (rest !== undefined && !existsSync(join(rest, "index"))) rmSync(rest, { recursive: true, force: true });
}

async function checkOut(
  { path, project, branch, base }: WorktreeRecord,
  rescueRef: string,
  settings: GitSettings,
): Promise<void> {
  const { stdout } = await gitIn(path, ["rev-parse", "--absolute-git-dir"], settings);
  const lock = join(stdout.trim(), "index.lock");
  // No git of this session runs any more, and the worktree is nobody else's.
  if (lock.includes(`${sep}worktrees${sep}`) && existsSync(lock)) unlinkSync(lock);
  if (readdirSync(path).some((name) => name !== ".git")) {
    await gitIn(path, ["read-tree", "--reset", base], settings);
    const selection = ["status", "--porcelain=v1", "-z", "--untracked-files=all", "--ignored", SHALLOW];
    const status = (await gitIn(path, selection, settings)).stdout.split("\0").filter((line) => line !== "");
    if (status.some((line) => !line.startsWith(" D")))
      await rescueWorktree({ path, project, branch, ref: rescueRef, isPartial: false }, settings);
  }
  await gitIn(path, ["reset", "--hard", "--quiet", base], settings);
}

export function taken({ session, path, branch }: WorktreeRecord, why: string): HoldfastError {
  return new HoldfastError("conflict", `session ${session} cannot have a worktree: ${why}`, {
    at: dirname(path),
    expected: `no branch ${branch} and no folder ${path}, because names of worktrees are never reused`,
    fix: "start the session with another id; the work that is there stays as it is",
  });
}
