// Durable tasks over the git repository of a workspace.

import { HoldfastError } from "@holdfast/core";
import type { TaskContext } from "@holdfast/runtime";
import { z } from "zod";

import {
  git,
  type GitChange,
  type GitOptions,
  OWN_FILES,
  parseStatus,
  pathFilter,
  PLAIN_DIFF,
  SHALLOW,
  stageChanges,
  type Workspace,
} from "@holdfast/workspace";
import { hiddenField, workspaceField, type WorkspaceSource } from "./workspace-source.ts";
import { defineWorkspaceTask } from "./workspace-task.ts";

const gitStatusInput = z.strictObject({ ...workspaceField });

export interface GitStatusOutput {
  /** `undefined` before the first commit. */
  readonly commit?: string;
  /** `undefined` when no branch is checked out. */
  readonly branch?: string;
  /** Files that differ from the commit, new ones included, ignored ones not. */
  readonly changes: readonly GitChange[];
}

export const gitDiffInput = z.strictObject({
  path: z.string().min(1).optional().describe("Only this file or directory"),
  ...workspaceField,
});

export interface GitDiffOutput {
  /** The difference from the last commit. New files are in the status, not here. */
  readonly diff: string;
  readonly isCut: boolean;
}

const gitCommitInput = z.strictObject({
  message: z
    .string()
    .trim()
    .min(1)
    .describe("The commit message: a short first line, then an empty line and details if needed"),
  author: z.strictObject({ name: z.string().min(1), email: z.string().min(1) }).optional(),
  newFiles: z
    .array(z.string())
    .optional()
    .describe("The new files to commit, among those that git does not know yet; all of them by default"),
  runHooks: z.boolean().optional().describe("Run the repository's commit hooks; they are skipped otherwise"),
  ...workspaceField,
});

export interface GitCommitOutput {
  /** `undefined` when there was nothing to commit. */
  readonly commit?: string;
  readonly files: readonly string[];
  /** False when an earlier attempt had made it. */
  readonly isNew: boolean;
}

const DIFF_BYTES = 256 * 1024;
/** How far back an earlier attempt's commit is looked for: others may have committed since. */
const COMMITS_SEARCHED = 200;
/** The line of a commit message that says which task made it. */
const TRAILER = "Holdfast-Task";
const DEFAULT_AUTHOR = { name: "Holdfast", email: "agent@holdfast.invalid" };

export function gitStatusTask(source: WorkspaceSource) {
  return defineWorkspaceTask(source, {
    name: "git_status",
    description: "Which commit and branch are checked out, and which files differ from it.",
    input: gitStatusInput,
    run: (workspace, _input, task) => readStatus(workspace, { signal: task.signal }),
  });
}

async function readStatus(workspace: Workspace, options: GitOptions): Promise<GitStatusOutput> {
  const selection = ["--porcelain=v1", "-z", "--untracked-files=all", SHALLOW];
  const { stdout } = await git(workspace, ["status", ...selection, "--", ".", ...OWN_FILES], options);
  const head = await git(workspace, ["rev-parse", "--verify", "--quiet", "HEAD"], options, [0, 1]);
  const branch = await git(workspace, ["symbolic-ref", "--quiet", "--short", "HEAD"], options, [0, 1]);
  return {
    ...(head.exitCode === 0 ? { commit: head.stdout.trim() } : {}),
    ...(branch.exitCode === 0 ? { branch: branch.stdout.trim() } : {}),
    changes: parseStatus(stdout),
  };
}

export function gitDiffTask(source: WorkspaceSource) {
  return defineWorkspaceTask(source, {
    name: "git_diff",
    description: "What was changed since the last commit.",
    input: gitDiffInput.extend(hiddenField),
    run: async (workspace, { path = ".", hidden = [] }, task): Promise<GitDiffOutput> => {
      const shown = hidden.length === 0 ? [path] : await shownChanges(workspace, path, hidden, task.signal);
      if (shown.length === 0) return { diff: "", isCut: false };
      const args = ["--literal-pathspecs", "diff", ...PLAIN_DIFF, "HEAD", "--", ...shown];
      const { stdout, isCut } = await git(workspace, args, { signal: task.signal, outputBytes: DIFF_BYTES });
      return { diff: stdout, isCut };
    },
  });
}

const DIFF_FILES_MAX = 1_000;

/** The changed files below a path that no pattern hides, as paths from the folder. */
async function shownChanges(
  workspace: Workspace,
  path: string,
  hidden: readonly string[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const args = [
    "--literal-pathspecs",
    "diff",
    ...PLAIN_DIFF,
    "--no-renames",
    "--relative",
    "--name-only",
    "-z",
  ];
  const { stdout } = await git(workspace, [...args, "HEAD", "--", path], { signal });
  const isHidden = pathFilter(hidden);
  const shown = stdout.split("\0").filter((name) => name !== "" && !isHidden(name));
  if (shown.length <= DIFF_FILES_MAX) return shown;
  throw new HoldfastError("limit_exceeded", `${shown.length} files below "${path}" have changed`, {
    expected: `at most ${DIFF_FILES_MAX} where a rule keeps files from the tool`,
    fix: "name a folder below it",
  });
}

export function gitCommitTask(source: WorkspaceSource) {
  return defineWorkspaceTask(source, {
    name: "git_commit",
    description: "Commit everything that was changed in the workspace.",
    input: gitCommitInput,
    // Long enough to outlast a lock that a killed git left behind.
    retry: { maxAttempts: 100, initialDelayMs: 500, maxDelayMs: 15_000 },
    run: commit,
  });
}

/**
 * Exactly once, whatever happens to the attempts: the commit carries the task's key, and an attempt that
 * finds a commit with its key makes none.
 */
async function commit(
  workspace: Workspace,
  input: z.output<typeof gitCommitInput>,
  task: TaskContext,
): Promise<GitCommitOutput> {
  const options: GitOptions = { signal: task.signal, tag: task.idempotencyKey };
  const earlier = await findCommit(workspace, task.idempotencyKey, options);
  if (earlier !== undefined)
    return { commit: earlier, files: await filesOf(workspace, earlier, options), isNew: false };

  const { newFiles } = input;
  await stageChanges(
    (args, stdin) => git(workspace, args, stdin === undefined ? options : { ...options, input: stdin }),
    // Tracked and staged files are always committed.
    newFiles === undefined ? undefined : (path) => newFiles.includes(path),
  );
  const staged = await git(
    workspace,
    ["diff", "--cached", "--quiet", ...PLAIN_DIFF, "--", "."],
    options,
    [0, 1],
  );
  if (staged.exitCode === 0) return { files: [], isNew: false };

  // In a folder of a larger repository only that folder is committed, whatever else is staged.
  const prefix = await git(workspace, ["rev-parse", "--show-prefix"], options);
  const only = prefix.stdout.trim() === "" ? [] : ["--only", "--", "."];
  await git(workspace, ["commit", "--quiet", "--file=-", ...only], {
    ...options,
    runHooks: input.runHooks === true,
    input: `${input.message}\n\n${TRAILER}: ${task.idempotencyKey}\n`,
    env: await identity(workspace, input.author, options),
  });
  const made = (await git(workspace, ["rev-parse", "HEAD"], options)).stdout.trim();
  return { commit: made, files: await filesOf(workspace, made, options), isNew: true };
}

async function findCommit(
  workspace: Workspace,
  key: string,
  options: GitOptions,
): Promise<string | undefined> {
  const format = `--format=%H %(trailers:key=${TRAILER},valueonly,separator=%x20)`;
  const { stdout, exitCode } = await git(
    workspace,
    ["log", `--max-count=${COMMITS_SEARCHED}`, format],
    options,
    [0, 128],
  );
  if (exitCode !== 0) return undefined; // No commit yet.
  const lines = stdout.split("\n").map((line) => line.trim().split(" "));
  return lines.find(([, ...keys]) => keys.includes(key))?.[0];
}

async function filesOf(workspace: Workspace, id: string, options: GitOptions): Promise<readonly string[]> {
  const args = ["diff-tree", "--root", "--no-commit-id", "--name-only", "-r", "-z", id];
  const { stdout } = await git(workspace, args, options);
  return stdout.split("\0").filter((name) => name !== "");
}

/**
 * The author of a commit: the one the caller names, else the user that git is configured for, else a default
 * name.
 */
async function identity(
  workspace: Workspace,
  author: { readonly name: string; readonly email: string } | undefined,
  options: GitOptions,
): Promise<Record<string, string>> {
  const configured = await Promise.all(
    ["user.name", "user.email"].map((key) => git(workspace, ["config", "--get", key], options, [0, 1])),
  );
  const isConfigured = configured.every(({ exitCode, stdout }) => exitCode === 0 && stdout.trim() !== "");
  if (author === undefined && isConfigured) return {};
  const { name, email } = author ?? DEFAULT_AUTHOR;
  return {
    GIT_AUTHOR_NAME: name,
    GIT_AUTHOR_EMAIL: email,
    GIT_COMMITTER_NAME: name,
    GIT_COMMITTER_EMAIL: email,
  };
}
