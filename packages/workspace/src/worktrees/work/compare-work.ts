// `diffWork` and `summarizeWork`: the work in a worktree against its base.

import { existsSync } from "node:fs";
import { MIB } from "@holdfast/core";

import { PLAIN_DIFF } from "../../workspace/git-options.ts";
import { commitOf } from "../repository.ts";
import { partsOf } from "../submodules/worktree-parts.ts";
import { namesOf, type WorktreeRecord } from "../worktree-record.ts";
import { gitIn, type GitSettings } from "../worktree-git.ts";
import { draftWork, type WorkDraft } from "./draft-work.ts";

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
  const stat = await diffWork(record, await draftWork(record, settings), true, settings);
  return { branch, base, path, commits: Number(stdout), stat: stat.text.trimEnd() };
}

/**
 * The changes since the base, those inside of its submodules last.
 *
 * @param end the work as it is, or a kept commit of a worktree that is gone.
 */
export async function diffWork(
  record: WorktreeRecord,
  end: WorkDraft | string,
  isStat: boolean,
  settings: GitSettings,
): Promise<WorkDiff> {
  const form = isStat ? ["--stat=100"] : [];
  const [draft, tree] = typeof end === "string" ? [undefined, end] : [end, end.tree];
  const diffs = [await diffOne(record, tree, form, settings)];
  if (draft !== undefined && draft.repositories.length > 0)
    diffs.push(withText(`\n(git repositories inside are left out: ${draft.repositories.join(", ")})\n`));
  for (const part of (await partsOf(record, settings)).toReversed()) {
    const drafted = draft?.parts.find(({ at }) => at === part.at)?.draft;
    const last = drafted?.tree ?? (await keptIn(part.record, part.settings));
    if (last === undefined) continue;
    const prefixes = [`--src-prefix=a/${part.at}/`, `--dst-prefix=b/${part.at}/`];
    const diff = await diffOne(part.record, last, isStat ? form : prefixes, part.settings);
    const isNamed = isStat && diff.text !== "";
    diffs.push(isNamed ? { ...diff, text: `In the submodule ${part.at}:\n${diff.text}` } : diff);
  }
  return { text: diffs.map(({ text }) => text).join(""), isCut: diffs.some(({ isCut }) => isCut) };
}

/** The commit that a submodule of a session has left in the user's repository. */
async function keptIn(
  { session, project }: WorktreeRecord,
  settings: GitSettings,
): Promise<string | undefined> {
  const { rescue, branch } = namesOf("", session);
  return (
    (await commitOf(rescue, project, settings)) ?? (await commitOf(`refs/heads/${branch}`, project, settings))
  );
}

async function diffOne(
  { path, base, project }: WorktreeRecord,
  end: string,
  form: readonly string[],
  settings: GitSettings,
): Promise<WorkDiff> {
  const args = ["diff", ...PLAIN_DIFF, ...form, base, end, "--"];
  const folder = existsSync(project) ? project : path;
  const { stdout, isCut } = await gitIn(folder, args, settings, { outputBytes: DIFF_BYTES });
  const note = isCut ? `\n(the diff is longer than ${DIFF_BYTES} bytes, and is cut)\n` : "";
  return { text: stdout + note, isCut };
}

const withText = (text: string): WorkDiff => ({ text, isCut: false });
