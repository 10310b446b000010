// `commitWork`: commits what is not committed in a worktree, in each submodule first.
//
//   - The commits are made from a draft, on no branch at first (`commitDraft`). A caller can look at what they
//     change before their branches get them (`keepCommits`).
//   - A branch that has moved since the draft is left alone, and keeps what an agent has committed there.

import { HoldfastError, defined } from "@holdfast/core";

import { stageChanges } from "../../git/stage.ts";
import { identityIn } from "../repository.ts";
import { GITLINK } from "../submodules/find-submodules.ts";
import { gitIn, type GitSettings } from "../worktree-git.ts";
import type { WorktreeRecord } from "../worktree-record.ts";
import { draftWork, withIndex, type Draft, type WorkDraft } from "./draft-work.ts";

/** A checkout with the commit that its branch is to have. */
interface DraftedCommit {
  readonly path: string;
  readonly settings: GitSettings;
  readonly draft: Draft;
  readonly commit: string;
}

/** The new commits of a draft, each after those inside of its checkout. */
export interface DraftedCommits {
  /** The commit of the worktree itself: a new one, or its HEAD where nothing is open. */
  readonly commit: string;
  readonly all: readonly DraftedCommit[];
}

/** @returns the new commit, if there was something. @throws HoldfastError `conflict` where a branch has moved. */
export async function commitWork(
  record: WorktreeRecord,
  message: string,
  settings: GitSettings,
): Promise<string | undefined> {
  const draft = await draftWork(record, settings);
  const commits = await commitDraft(record, draft, message, settings);
  await keepCommits(record, commits);
  return commits.commit === draft.head ? undefined : commits.commit;
}

/** Makes the commits, which no branch has then. Git removes them later where none gets them. */
export async function commitDraft(
  { path }: WorktreeRecord,
  draft: WorkDraft,
  message: string,
  settings: GitSettings,
): Promise<DraftedCommits> {
  const checkouts = [
    ...draft.parts.map((part) => ({ ...part, path: part.record.path })),
    { at: "", path, settings, draft },
  ];
  const all: DraftedCommit[] = [];
  const moved = new Map<string, string>();
  let commit = "";
  for (const checkout of checkouts) {
    const links = [...moved].filter(([at]) => ownerOf(at, checkouts) === checkout.at);
    const own = links.map(
      ([at, id]) => [at.slice(checkout.at === "" ? 0 : checkout.at.length + 1), id] as const,
    );
    const tree = await linkedTree(checkout.path, checkout.draft.tree, own, checkout.settings);
    commit = await commitOne(checkout, tree, message);
    if (commit === checkout.draft.head) continue;
    moved.set(checkout.at, commit);
    all.push({ ...checkout, commit });
  }
  return { commit, all };
}

/** The innermost checkout around that of a submodule. */
function ownerOf(at: string, checkouts: readonly { readonly at: string }[]): string {
  const around = checkouts.filter((one) => at.startsWith(`${one.at}/`)).map((one) => one.at);
  return around.toSorted((a, b) => b.length - a.length)[0] ?? "";
}

/** The tree with other commits of submodules. A submodule that it lacks is no part of the work any more. */
async function linkedTree(
  path: string,
  tree: string,
  links: readonly (readonly [at: string, commit: string])[],
  settings: GitSettings,
): Promise<string> {
  if (links.length === 0) return tree;
  return withIndex(path, settings, async (env) => {
    const run = async (args: readonly string[]) => (await gitIn(path, args, settings, { env })).stdout;
    await run(["read-tree", tree]);
    for (const [at, commit] of links)
      if ((await run(["--literal-pathspecs", "ls-files", "--stage", "--", at])).startsWith(GITLINK))
        await run(["update-index", "--cacheinfo", `${GITLINK},${commit},${at}`]);
    return (await run(["write-tree"])).trim();
  });
}

async function commitOne(
  { path, draft, settings }: Omit<DraftedCommit, "commit">,
  tree: string,
  message: string,
): Promise<string> {
  const { head, merging } = draft;
  if (head !== undefined && merging === undefined && !draft.isOpen && tree === draft.tree) return head;
  const parents = [head, merging].filter((id) => id !== undefined).flatMap((id) => ["-p", id]);
  const env = await identityIn(path, settings);
  const made = await gitIn(path, ["commit-tree", ...parents, tree], settings, { input: message, env });
  return made.stdout.trim();
}

/**
 * Gives the commits to their branches, and stages what they have.
 *
 * @throws HoldfastError `conflict` where a branch has moved since the draft.
 */
export async function keepCommits(record: WorktreeRecord, { all }: DraftedCommits): Promise<void> {
  for (const { path, settings, draft, commit } of all) {
    // Before the branch: with the old index, the next commit of an agent would take back what this one brings.
    await stageChanges((args, input) => gitIn(path, args, settings, defined({ input })));
    const old = draft.head ?? "0".repeat(commit.length);
    const kept = await gitIn(path, ["update-ref", "-m", "holdfast: commit", "HEAD", commit, old], settings, {
      codes: [0, 128],
    });
    if (kept.exitCode !== 0) throw changedSince(record, kept.stderr.trim().slice(0, 1_000));
    if (draft.merging !== undefined) await gitIn(path, ["merge", "--quit"], settings);
  }
}

/** @param got what git says. */
export function changedSince({ session, path }: WorktreeRecord, got?: string): HoldfastError {
  return new HoldfastError(
    "conflict",
    `the work of session ${session} has changed since it was read, and is left as it is`,
    defined({ at: path, got, fix: "read the work again, look at what is new, and repeat this then" }),
  );
}
