// `readFacts`: what git and the processes of this machine say about a worktree.

import { existsSync, readdirSync, readlinkSync } from "node:fs";
import { join, sep } from "node:path";

import { OWN_FILES, parseStatus } from "../git/git.ts";
import { SHALLOW } from "../workspace/git-options.ts";
import { commitOf, type Repository } from "./repository.ts";
import { findSubmodules } from "./submodules/find-submodules.ts";
import { leadsTo, partsOf } from "./submodules/worktree-parts.ts";
import { namesOf, type WorktreeRecord } from "./worktree-record.ts";
import { gitIn, type GitSettings } from "./worktree-git.ts";

export interface WorktreeFacts {
  readonly isThere: boolean;
  /** The commit of its HEAD; `null` when git does not know the worktree any more. */
  readonly head: string | null;
  /** Files that git knows and that differ from HEAD. */
  readonly changed: readonly string[];
  /** Files that git does not know and does not ignore. */
  readonly untracked: readonly string[];
  /** Commits since the base that no other branch, tag or remote has. */
  readonly unpushed: number;
  /** Processes that work in it. `null` where this machine cannot say. */
  readonly processes: readonly number[] | null;
}

const ABSENT = { head: null, changed: [], untracked: [], unpushed: 0 } as const;

/** The facts of a worktree with its submodules, whose files have their paths from the root of the worktree. */
export async function readFacts(record: WorktreeRecord, settings: GitSettings): Promise<WorktreeFacts> {
  const facts = await factsOf(record, settings);
  const changed = [...facts.changed];
  const untracked = [...facts.untracked];
  let { unpushed } = facts;
  for (const part of await partsOf(record, settings)) {
    const own = part.isThere ? await factsOf(part.record, part.settings) : undefined;
    changed.push(...(own?.changed ?? []).map((file) => `${part.at}/${file}`));
    untracked.push(...(own?.untracked ?? []).map((file) => `${part.at}/${file}`));
    unpushed += own?.unpushed ?? (await unpushedIn(part.record, undefined, part.settings));
  }
  return { ...facts, changed, untracked, unpushed };
}

async function factsOf(record: WorktreeRecord, settings: GitSettings): Promise<WorktreeFacts> {
  const { path } = record;
  const isThere = existsSync(path);
  const processes = isThere ? processesIn(path) : [];
  if (!existsSync(record.repository)) return { ...ABSENT, isThere, processes };
  const head = isThere ? await commitOf("HEAD", path, settings) : undefined;
  const unpushed = await unpushedIn(record, head, settings);
  if (head === undefined) return { ...ABSENT, isThere, unpushed, processes };
  const selection = ["status", "--porcelain=v1", "-z", "--untracked-files=all", SHALLOW];
  const changes = parseStatus((await gitIn(path, selection, settings)).stdout);
  const isNew = ({ status }: { readonly status: string }) => status === "??";
  return {
    isThere,
    head,
    changed: changes.filter((change) => !isNew(change)).map((change) => change.path),
    untracked: changes.filter(isNew).map((change) => change.path),
    unpushed,
    processes,
  };
}

/**
 * The number of commits of a session that no other branch, tag or remote has. Its base was there before, also
 * when no branch has that.
 */
async function unpushedIn(
  record: WorktreeRecord,
  head: string | undefined,
  settings: GitSettings,
): Promise<number> {
  const { project, path, repository, base } = record;
  if (!existsSync(repository)) return 0;
  const folder = existsSync(project) ? project : path;
  const tips = await Promise.all(
    ownBranches(record).map((name) => commitOf(`refs/heads/${name}`, folder, settings)),
  );
  const own = [head, ...tips].filter((id) => id !== undefined);
  if (own.length === 0) return 0;
  const asked = ["rev-list", "--count", "--ignore-missing", ...own, ...nowhereElse(record), base];
  const counted = await gitIn(folder, asked, settings);
  return Number(counted.stdout);
}

/**
 * The files of the project and of its submodules that differ from their commits or that git does not know. A
 * new worktree begins without them.
 */
export async function readUncommitted(
  { project, commonDir }: Repository,
  settings: GitSettings,
): Promise<readonly string[]> {
  const head = await commitOf("HEAD", project, settings);
  const outermost = { store: commonDir, project, prefix: "" };
  // A project that a worktree would be refused for has that error when the worktree is made.
  const submodules =
    head === undefined ? [] : await findSubmodules(outermost, head, settings).catch(() => []);
  const files = await changesIn(project, settings);
  for (const { path, store } of submodules) {
    const folder = join(project, path);
    if (!leadsTo(folder, store)) continue;
    const found = await changesIn(folder, { ...settings, gitFolders: { [folder]: store } });
    files.push(...found.map((file) => `${path}/${file}`));
  }
  return files;
}

async function changesIn(folder: string, settings: GitSettings): Promise<string[]> {
  const selection = ["status", "--porcelain=v1", "-z", SHALLOW, "--", ".", ...OWN_FILES];
  return parseStatus((await gitIn(folder, selection, settings)).stdout).map(({ path }) => path);
}

/** The arguments of `git rev-list` that leave out what another branch, a tag or a remote has. */
export function nowhereElse(record: WorktreeRecord): readonly string[] {
  const own = ownBranches(record).map((branch) => `--exclude=${branch}`);
  return ["--not", ...own, "--branches", "--remotes", "--tags"];
}

/** The branch that the worktree is on, and the one that it began with. */
function ownBranches({ branch, session }: WorktreeRecord): readonly string[] {
  return [...new Set([branch, namesOf("", session).branch])];
}

/** The processes with their working folder or an open file below a folder, apart from this one. `null` without /proc. */
export function processesIn(folder: string): readonly number[] | null {
  if (process.platform !== "linux") return null;
  const isInside = (path: string): boolean => path === folder || path.startsWith(`${folder}${sep}`);
  const linkOf = (path: string): string => {
    try {
      return readlinkSync(path);
    } catch {
      return ""; // It has ended, or belongs to another user.
    }
  };
  const namesIn = (path: string): readonly string[] => {
    try {
      return readdirSync(path);
    } catch {
      return [];
    }
  };
  return namesIn("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter(
      (pid) =>
        isInside(linkOf(`/proc/${pid}/cwd`)) ||
        namesIn(`/proc/${pid}/fd`).some((file) => isInside(linkOf(`/proc/${pid}/fd/${file}`))),
    )
    .map(Number);
}
