// Git in a workspace (`git`): never interactive, and without the pager, hooks and helpers that a repository
// or a user may have set.
//
// Git runs on this machine, also for a sandbox. There, filters of the repository's own configuration do not
// run, and a commit is refused that would need one. Hooks are refused, because they run files of the folder.

import { stat, unlink } from "node:fs/promises";
import { sep } from "node:path";
import { defined, HoldfastError, UnavailableError } from "@holdfast/core";

import type { Execution, ExecuteOptions } from "../workspace/execute.ts";
import { TEMPORARY_PREFIX } from "../workspace/contained-files.ts";
import {
  commandOf,
  GIT_ENVIRONMENT,
  gitOptions,
  LIST_SETTINGS,
  programsOf,
  withoutPrograms,
  type GitEnvironment,
} from "../workspace/git-options.ts";
import { isHeldIn } from "../workspace/capabilities.ts";
import type { Workspace } from "../workspace/workspace.ts";

export interface GitOptions extends Pick<ExecuteOptions, "signal" | "tag" | "input" | "env" | "outputBytes"> {
  readonly runHooks?: boolean;
}

/**
 * Files in the folder that are not part of the user's work: Holdfast's own data, and leftovers of a crashed
 * write.
 */
export const OWN_FILES: readonly string[] = [
  ":(exclude,top).holdfast",
  `:(exclude,glob)**/${TEMPORARY_PREFIX}*.tmp`,
];

/** The age from which a lock belongs to no process, once the workspace's own processes have ended. */
const STALE_LOCK_MS = 10_000;

/** @throws HoldfastError with git's own words when it does not exit with 0 or one of `codes`. */
export async function git(
  workspace: Workspace,
  args: readonly string[],
  options: GitOptions = {},
  codes: readonly number[] = [0],
): Promise<Execution & { readonly exitCode: number }> {
  const { runHooks = false, env, ...rest } = options;
  const guard = await guardOf(workspace, commandOf(args), options);
  const execution = await workspace.execute(["git", ...gitOptions(runHooks), ...args], {
    ...rest,
    isOwn: true,
    env: { ...GIT_ENVIRONMENT, ...guard, ...env },
  });
  const { end, stderr } = execution;
  if (end.type === "exit" && codes.includes(end.exitCode)) return { ...execution, exitCode: end.exitCode };
  if (end.type === "aborted") options.signal?.throwIfAborted();
  if (end.type === "spawn_error" && end.code === "ENOENT") {
    throw new HoldfastError("config_invalid", "git is not installed, or not on the PATH");
  }
  const said = stderr.trim().slice(0, 2_000);
  await waitForLock(workspace, said, options.signal);
  throw new HoldfastError(
    "invalid_input",
    `git ${commandOf(args)} did not succeed: ${said === "" ? end.type : said}`,
  );
}

/** Commands that look at the contents of files, and those that store them. */
const COMPARING: readonly string[] = ["status", "diff", "ls-files"];
const STORING: readonly string[] = ["add", "update-index", "commit"];

/** @returns variables of the call. @throws HoldfastError `policy_denied` */
async function guardOf(
  workspace: Workspace,
  command: string,
  { runHooks, signal, tag }: GitOptions,
): Promise<GitEnvironment> {
  if (!isHeldIn(workspace.capabilities)) return {};
  if (runHooks === true)
    throw new HoldfastError("policy_denied", "hooks of the repository would run outside of the sandbox", {
      fix: "commit without hooks, and run their checks as commands before",
    });
  if (![...COMPARING, ...STORING].includes(command)) return withoutPrograms([]);
  const options = { isOwn: true, ...(signal && { signal }), ...(tag !== undefined && { tag }) };
  const { stdout, isCut } = await workspace.execute(["git", ...gitOptions(false), ...LIST_SETTINGS], options);
  const programs = programsOf(stdout);
  if (isCut || (programs.length > 0 && STORING.includes(command)))
    throw new HoldfastError(
      "policy_denied",
      `git ${command} is refused: the repository's own configuration names a program, which would run outside of the sandbox`,
      {
        got: programs[0] ?? "too many settings",
        expected: "programs in the configuration of the user alone",
        fix: `move the setting there: \`git config --global ${programs[0] ?? "KEY"} VALUE\`, and \`git config --unset ${programs[0] ?? "KEY"}\``,
      },
    );
  return withoutPrograms(programs);
}

export interface GitChange {
  /** Two letters as git prints them: `??` untracked, ` M` changed, `A ` added, … */
  readonly status: string;
  readonly path: string;
}

/** Reads `git status --porcelain -z`. */
export function parseStatus(text: string): readonly GitChange[] {
  const parts = text.split("\0");
  const changes: GitChange[] = [];
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i] ?? "";
    if (part === "") continue;
    const status = part.slice(0, 2);
    changes.push({ status, path: part.slice(3) });
    if (status.includes("R") || status.includes("C")) i += 1; // The old name follows.
  }
  return changes;
}

/** @throws UnavailableError to try again, when git found a lock. */
async function waitForLock(
  workspace: Workspace,
  said: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  if (!LOCK.test(said)) return;
  const { stdout } = await workspace.execute(
    [
      "git",
      ...gitOptions(false),
      "rev-parse",
      "--path-format=absolute",
      "--absolute-git-dir",
      "--git-common-dir",
    ],
    { isOwn: true, ...defined({ signal }) },
  );
  await refuseLocked(said, stdout.trim().split("\n"));
}

const LOCK = /Unable to create '([^']+\.lock)': File exists/;

/**
 * Another git holds a lock, or one that was killed left it behind. The first is a matter of waiting; the
 * second is removed, once it is so old that nobody works under it any more.
 *
 * @param folders the git directories of the repository.
 * @throws UnavailableError to try again.
 */
export async function refuseLocked(said: string, folders: readonly string[]): Promise<void> {
  const lock = LOCK.exec(said)?.[1];
  if (lock === undefined) return;
  const found = await stat(lock).catch(() => undefined);
  const ageMs = found === undefined ? 0 : Date.now() - found.mtimeMs;
  const isOurs = folders.some((folder) => lock.startsWith(folder + sep));
  if (found !== undefined && isOurs && ageMs >= STALE_LOCK_MS) await unlink(lock).catch(() => {});
  const retryAfterMs = Math.max(0, STALE_LOCK_MS - ageMs);
  const error = new UnavailableError("locked", `another git is working in the repository (${lock} exists)`, {
    fix: "wait for it, or remove the file if no git is running",
  });
  throw found === undefined ? error : Object.assign(error, { retryAfterMs });
}
