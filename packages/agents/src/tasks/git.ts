// Git in a workspace: never interactive, and without the pager, hooks and helpers that a repository or a user
// may have set.

import { stat, unlink } from "node:fs/promises";
import { sep } from "node:path";
import { HoldfastError, UnavailableError } from "@holdfast/core";

import type { Execution, ExecuteOptions } from "../workspace/execute.ts";
import { TEMPORARY_PREFIX } from "../workspace/contained-files.ts";
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

/** Options of every call, and with `runHooks` without the last ones. */
export function gitOptions(runHooks: boolean): readonly string[] {
  return [...QUIET, ...(runHooks ? [] : NO_HOOKS)];
}

const QUIET = [
  "--no-pager",
  "-c",
  "core.fsmonitor=false",
  "-c",
  "commit.gpgSign=false",
  "-c",
  "core.quotePath=false",
  // A folder that looks like a bare repository would otherwise give git a configuration, and with it programs to run.
  "-c",
  "safe.bareRepository=explicit",
];
/**
 * Git's output is read here, so it must not be translated. The first variable sets git's own locale, and the
 * second overrides all others.
 */
const UNTRANSLATED = { LC_MESSAGES: "C", LANGUAGE: "C" };
/** The variables of every call. */
export const GIT_ENVIRONMENT: Readonly<Record<string, string>> = {
  GIT_TERMINAL_PROMPT: "0",
  GIT_OPTIONAL_LOCKS: "0",
  GIT_EDITOR: "true",
  ...UNTRANSLATED,
};
const NO_HOOKS = ["-c", "core.hooksPath=/dev/null"];
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
  const execution = await workspace.execute(["git", ...gitOptions(runHooks), ...args], {
    ...rest,
    isOwn: true,
    env: { ...GIT_ENVIRONMENT, ...env },
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
    `git ${args[0] ?? ""} did not succeed: ${said === "" ? end.type : said}`,
  );
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
    ["git", "rev-parse", "--path-format=absolute", "--absolute-git-dir", "--git-common-dir"],
    { isOwn: true, ...(signal === undefined ? {} : { signal }) },
  );
  await refuseLocked(said, stdout.trim().split("\n"));
}

const LOCK = /Unable to create '([^']+\.lock)': File exists/;

/**
 * Another git holds a lock, or one that was killed left it behind. The first is a matter of waiting; the second is
 * removed, once it is so old that nobody works under it any more.
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
