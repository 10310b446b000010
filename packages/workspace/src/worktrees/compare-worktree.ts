// `diffWork` and `summarizeWork`: the work in a worktree against its base. `commitWork` commits what is open, and
// `draftCommit` says what that would be.

import { existsSync, rmSync } from "node:fs";
import { defined, MIB } from "@holdfast/core";

import { copyIndex } from "./copy-index.ts";
import { OWN_FILES } from "../git/git.ts";
import { isRepository, stageChanges } from "../git/stage.ts";
import { PLAIN_DIFF } from "../workspace/git-options.ts";
import { commitOf, identityIn } from "./repository.ts";
import { partsOf, type WorktreePart } from "./submodules/worktree-parts.ts";
import { namesOf, type WorktreeRecord } from "./worktree-record.ts";
import { draftIndexOf, gitIn, type GitSettings } from "./worktree-git.ts";

const DIFF_BYTES = 10 * MIB;

export interface WorktreeSummary {
  readonly branch: string;
  readonly base: string;
  readonly path: string;
  readonly commits: number;
  /** The files with their changes since the base, as `git diff --stat` shows them; empty when there is none. */
  readonly stat: string;
}

/** A diff as text, which says at the end of a part where that part is cut. */
export interface WorkDiff {
  readonly text: string;
  readonly isCut: boolean;
}

export async function summarizeWork(record: WorktreeRecord, settings: GitSettings): Promise<WorktreeSummary> {
  const { path, branch, base } = record;
  const { stdout } = await gitIn(path, ["rev-list", "--count", `${base}..HEAD`], settings);
  const stat = await diffWork(record, undefined, true, settings);
  return { branch, base, path, commits: Number(stdout), stat: stat.text.trimEnd() };
}

/**
 * The changes since the base, those inside of its submodules last.
 *
 * @param end a commit to compare with; by default the files as they are, also those that git does not know.
 */
export async function diffWork(
  record: WorktreeRecord,
  end: string | undefined,
  isStat: boolean,
  settings: GitSettings,
): Promise<WorkDiff> {
  const diffs = [await diffOne(record, end, isStat ? ["--stat=100"] : [], settings)];
  for (const part of (await partsOf(record, settings)).toReversed())
    diffs.push(await diffPart(part, end !== undefined, isStat));
  return { text: diffs.map(({ text }) => text).join(""), isCut: diffs.some(({ isCut }) => isCut) };
}

/** @param isKept whether the kept commits are compared, and not the files. */
async function diffPart(
  { at, record, settings, isThere }: WorktreePart,
  isKept: boolean,
  isStat: boolean,
): Promise<WorkDiff> {
  const { rescue, branch } = namesOf("", record.session);
  const { project } = record;
  const end =
    isThere && !isKept
      ? undefined
      : ((await commitOf(rescue, project, settings)) ??
        (await commitOf(`refs/heads/${branch}`, project, settings)));
  if (end === undefined && !isThere) return { text: "", isCut: false };
  const form = isStat ? ["--stat=100"] : [`--src-prefix=a/${at}/`, `--dst-prefix=b/${at}/`];
  const diff = await diffOne(record, end, form, settings);
  if (!isStat || diff.text === "") return diff;
  return { ...diff, text: `In the submodule ${at}:\n${diff.text}` };
}

async function diffOne(
  { path, base, project }: WorktreeRecord,
  end: string | undefined,
  form: readonly string[],
  settings: GitSettings,
): Promise<WorkDiff> {
  const args = ["diff", ...PLAIN_DIFF, ...form, base];
  if (end !== undefined)
    return marked(await gitIn(project, [...args, end, "--"], settings, { outputBytes: DIFF_BYTES }));
  return inDraft(path, settings, async (env) => {
    const unknown = ["ls-files", "--others", "--exclude-standard", "-z", "--", ".", ...OWN_FILES];
    const { stdout } = await gitIn(path, unknown, settings, { env });
    const add = [
      "--literal-pathspecs",
      "add",
      "--intent-to-add",
      "--pathspec-from-file=-",
      "--pathspec-file-nul",
    ];
    const found = stdout.split("\0").filter((name) => name !== "");
    const files = found.filter((name) => !isRepository(name));
    const input = files.map((name) => `${name}\0`).join("");
    if (files.length > 0) await gitIn(path, add, settings, { env, input });
    const diff = marked(await gitIn(path, [...args, "--"], settings, { env, outputBytes: DIFF_BYTES }));
    const repositories = found.filter(isRepository);
    if (repositories.length === 0) return diff;
    const left = `\n(git repositories inside are left out: ${repositories.join(", ")})\n`;
    return { ...diff, text: diff.text + left };
  });
}

/** Works in a copy of the index, so that the one of the session stays as it is. @param work gets the variables for git. */
async function inDraft<T>(
  path: string,
  settings: GitSettings,
  work: (env: { readonly GIT_INDEX_FILE: string }) => Promise<T>,
): Promise<T> {
  const asked = ["rev-parse", "--path-format=absolute", "--git-path", "index"];
  const own = (await gitIn(path, asked, settings)).stdout.trim();
  const index = draftIndexOf(path, settings);
  try {
    if (existsSync(own)) copyIndex(own, index);
    return await work({ GIT_INDEX_FILE: index });
  } finally {
    rmSync(index, { force: true });
    rmSync(`${index}.lock`, { force: true });
  }
}

function marked({ stdout, isCut }: { readonly stdout: string; readonly isCut: boolean }): WorkDiff {
  const note = isCut ? `\n(the diff is longer than ${DIFF_BYTES} bytes, and is cut)\n` : "";
  return { text: stdout + note, isCut };
}

/** Commits to the branch what is not committed, in each submodule first. A second call finds nothing left. */
export async function commitWork(
  record: WorktreeRecord,
  message: string,
  settings: GitSettings,
): Promise<string | undefined> {
  for (const part of await partsOf(record, settings))
    if (part.isThere) await commitOne(part.record, message, part.settings);
  return commitOne(record, message, settings);
}

async function commitOne(
  { path }: WorktreeRecord,
  message: string,
  settings: GitSettings,
): Promise<string | undefined> {
  await stageChanges((args, input) => gitIn(path, args, settings, input === undefined ? {} : { input }));
  const staged = await gitIn(path, ["diff", "--cached", "--quiet", ...PLAIN_DIFF], settings, {
    codes: [0, 1],
  });
  if (staged.exitCode === 0) return undefined;
  const env = await identityIn(path, settings);
  await gitIn(path, ["commit", "--quiet", "--file=-"], settings, { input: message, env });
  return (await gitIn(path, ["rev-parse", "HEAD"], settings)).stdout.trim();
}

/** The commit that `commitWork` would make, as a commit that is on no branch. A submodule has the commit that it is at. */
export async function draftCommit({ path }: WorktreeRecord, settings: GitSettings): Promise<string> {
  return inDraft(path, settings, async (env) => {
    await stageChanges((args, input) => gitIn(path, args, settings, { env, ...defined({ input }) }));
    const tree = (await gitIn(path, ["write-tree"], settings, { env })).stdout.trim();
    const author = await identityIn(path, settings);
    const made = ["commit-tree", "-p", "HEAD", "-m", "what would be merged", tree];
    return (await gitIn(path, made, settings, { env: author })).stdout.trim();
  });
}
