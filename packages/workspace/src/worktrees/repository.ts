// `Repository`: the git repository that worktrees are made of.
//
// A folder that cannot have worktrees is refused with the reason, before anything is made.

import { createHash } from "node:crypto";
import { existsSync, realpathSync } from "node:fs";
import { basename, join } from "node:path";
import { HoldfastError } from "@holdfast/core";

import type { WorktreeRecord } from "./worktree-record.ts";
import { gitIn, type GitSettings } from "./worktree-git.ts";

export async function commitOf(
  ref: string,
  project: string,
  settings: GitSettings,
): Promise<string | undefined> {
  const args = ["rev-parse", "--verify", "--quiet", `${ref}^{commit}`];
  const { stdout, exitCode } = await gitIn(project, args, settings, { codes: [0, 1, 128] });
  return exitCode === 0 ? stdout.trim() : undefined;
}

/**
 * The branch that is checked out in a worktree now. An agent may have left the one that it began with.
 *
 * @returns the commit where HEAD is on no branch, and the recorded branch where the worktree is gone.
 */
export async function currentBranch(
  { path, branch }: WorktreeRecord,
  settings: GitSettings,
): Promise<string> {
  if (!existsSync(path)) return branch;
  const asked = ["symbolic-ref", "--quiet", "--short", "HEAD"];
  const { stdout, exitCode } = await gitIn(path, asked, settings, { codes: [0, 1, 128] });
  if (exitCode === 0) return stdout.trim();
  return (exitCode === 1 ? await commitOf("HEAD", path, settings) : undefined) ?? branch;
}

/** Deletes a ref, if it is there. Git removes its commits later. */
export async function dropRef(
  ref: string,
  folder: string,
  settings: GitSettings,
  env: Readonly<Record<string, string>> = {},
): Promise<void> {
  await gitIn(folder, ["update-ref", "-d", ref], settings, { env });
}

/** The committer of commits that Holdfast makes: the user that git is configured for, or Holdfast itself. */
export async function identityIn(
  folder: string,
  settings: GitSettings,
): Promise<Readonly<Record<string, string>>> {
  const { exitCode } = await gitIn(folder, ["config", "--get", "user.email"], settings, { codes: [0, 1] });
  return exitCode === 0 ? {} : identity("agent@holdfast.invalid");
}

export function identity(email: string): Readonly<Record<string, string>> {
  return {
    GIT_AUTHOR_NAME: "Holdfast",
    GIT_AUTHOR_EMAIL: email,
    GIT_COMMITTER_NAME: "Holdfast",
    GIT_COMMITTER_EMAIL: email,
  };
}

export interface Repository {
  /** The shared git directory, without links. */
  readonly commonDir: string;
  /** The root of the working tree. */
  readonly project: string;
  /** The given folder below the root; empty for the root itself. */
  readonly prefix: string;
  /** The folder of its worktrees. */
  readonly folder: string;
}

/** @param folder the folder of all worktrees of the user. @throws HoldfastError `invalid_input`. */
export async function findRepository(
  given: string,
  folder: string,
  settings: GitSettings,
): Promise<Repository> {
  const found = await readRepository(given, folder, settings);
  if (typeof found === "string") throw unusable(given, found);
  return found;
}

/** The same, and `undefined` where the folder is in no working tree of a repository. @throws HoldfastError */
export async function findAnyRepository(
  given: string,
  folder: string,
  settings: GitSettings,
): Promise<Repository | undefined> {
  const found = await readRepository(given, folder, settings);
  if (typeof found !== "string") return found;
  if (NONE.test(found) || BARE.test(found)) return undefined;
  throw unusable(given, found);
}

/** @returns the words of git where it finds no repository that it can use. */
async function readRepository(
  given: string,
  folder: string,
  settings: GitSettings,
): Promise<Repository | string> {
  const asked = [
    "rev-parse",
    "--path-format=absolute",
    "--show-toplevel",
    "--git-common-dir",
    "--show-prefix",
  ];
  const { stdout, stderr, exitCode } = await gitIn(given, asked, settings, { codes: [0, 128] });
  const [project, commonDir, prefix = ""] = stdout.split("\n");
  if (exitCode !== 0 || project === undefined || commonDir === undefined) return stderr;
  const real = realpathSync(commonDir);
  return { commonDir: real, project, prefix: prefix.replace(/\/$/, ""), folder: folderOf(folder, real) };
}

/** The folder of the worktrees of one repository. */
function folderOf(folder: string, commonDir: string): string {
  const key = createHash("sha256").update(commonDir).digest("hex").slice(0, 12);
  const name = basename(commonDir.replace(/\/?\.git$/, "")).replaceAll(/[^\w.-]/g, "-");
  return join(folder, `${name.slice(0, 60)}-${key}`);
}

/** The commit that a worktree begins with. @throws HoldfastError `invalid_input` */
export async function baseCommit(
  { project }: Repository,
  base: string | undefined,
  settings: GitSettings,
): Promise<string> {
  const wanted = base ?? "HEAD";
  // A base that begins with a dash would be an option.
  const args = ["rev-parse", "--verify", "--quiet", "--end-of-options", `${wanted}^{commit}`];
  const { stdout, exitCode } = await gitIn(project, args, settings, { codes: [0, 1, 128] });
  if (exitCode !== 0)
    throw new HoldfastError(
      "invalid_input",
      base === undefined
        ? `${project} is a git repository without a commit, so it can have no worktree`
        : `there is no commit "${base}" in ${project}`,
      {
        at: project,
        fix:
          base === undefined
            ? "commit what is there first"
            : "name a branch, a tag or a commit that is there",
      },
    );
  return stdout.trim();
}

/** The words of git for a folder in no repository, and for one without files to work on. */
const NONE = /not a git repository/;
const BARE = /bare repository|must be run in a work tree/;

function unusable(folder: string, said: string): HoldfastError {
  const isBare = BARE.test(said);
  const isNone = NONE.test(said);
  const why = isNone
    ? `${folder} is in no git repository, so it can have no worktree`
    : isBare
      ? `${folder} is a bare repository or its git directory, which has no files to work on`
      : `git cannot use ${folder}: ${said.trim().slice(0, 1_000)}`;
  return new HoldfastError("invalid_input", why, {
    at: folder,
    expected: "a folder in the working tree of a git repository",
    fix: isNone
      ? "run `git init` and commit the files, or leave out `--worktree`; in an agent file, use `workspace: shared`"
      : isBare
        ? "clone the repository, and work in the clone"
        : "correct what git says",
  });
}
