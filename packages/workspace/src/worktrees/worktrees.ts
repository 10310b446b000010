// `Worktrees`: git worktrees of sessions, which cannot lose work. It knows nothing of agents and models.
//
//   - A session has one worktree, on the branch `holdfast/SESSION`, and finds it again by its id after any
//     crash.
//   - The worktrees lie in the user's data folder. A clean-up of the project (`git clean -ffdx`, a new clone)
//     does not reach them, and neither does a tool that reads every folder of the project.
//   - A worktree that is gone is never made again in silence: the session would continue without its work.
//   - Only `remove` takes a worktree away, and only when the registry, git and the processes of this machine
//     permit it.
//   - The files of a session are kept as snapshots. A fork begins with one of them, on the commit that was
//     checked out there.
//   - The work of a session is what is checked out in its worktree, on whatever branch. Everything but the
//     creation names that branch.

import { existsSync } from "node:fs";
import { join } from "node:path";
import {
  HoldfastError,
  isMeantBy,
  NotFoundError,
  shortIds,
  UnavailableError,
  UsageError,
} from "@holdfast/core";
import { makePrivateFolder, type Environment } from "@holdfast/system";
import { isRunning, processIdentity } from "@holdfast/system/processes";

import type { FileSnapshot } from "../workspace/capabilities.ts";
import { createWorktree, taken } from "./create-worktree.ts";
import { removeWorktree } from "./remove-worktree.ts";
import {
  baseCommit,
  commitOf,
  currentBranch,
  dropRef,
  findAnyRepository,
  findRepository,
  type Repository,
} from "./repository.ts";
import { requireSnapshot, restoreFiles } from "./snapshots/restore-files.ts";
import type { SnapshotGit, SnapshotPlace } from "./snapshots/snapshot-place.ts";
import { findSubmodules } from "./submodules/find-submodules.ts";
import { beginIndex, takeSnapshot } from "./snapshots/take-snapshot.ts";
import { readFacts, readUncommitted, type WorktreeFacts } from "./worktree-facts.ts";
import {
  beginRecord,
  keepRecord,
  namesOf,
  readRecord,
  readRecordOf,
  readRecords,
  type WorktreeRecord,
} from "./worktree-record.ts";
import { commitWork } from "./work/commit-work.ts";
import { diffWork, summarizeWork, type WorktreeSummary } from "./work/compare-work.ts";
import { draftWork } from "./work/draft-work.ts";
import { mergeWork, type MergeRequest } from "./work/merge-work.ts";
import type { MergedWorktree } from "./work/merge-worktree.ts";
import { readWork, type WorktreeChange } from "./work/read-work.ts";
import { gitIn, type GitSettings } from "./worktree-git.ts";

export interface WorktreesOptions {
  /** The folder of all worktrees of this user. */
  readonly folder: string;
  /** The source of PATH and HOME for git; the environment of this process by default. */
  readonly environment?: Environment;
}

export interface OpenWorktree {
  /** A folder in the working tree of the repository. */
  readonly project: string;
  readonly session: string;
  /** A text that differs between two sessions of one id, such as the time of the start. */
  readonly owner?: string;
  /** A branch, a tag or a commit; by default the HEAD of the parent's worktree, or else of the project. */
  readonly base?: string;
  /** The session that started this one. */
  readonly parent?: string;
  /** The files that a fork begins with, in place of `base`. */
  readonly begin?: FileSnapshot;
}

export interface Worktree {
  /** The folder that the session works in. */
  readonly path: string;
  /** The root of the worktree. */
  readonly root: string;
  readonly branch: string;
  readonly base: string;
}

export interface ListedWorktree extends Worktree, WorktreeFacts {
  readonly session: string;
  readonly state: WorktreeRecord["state"];
  readonly createdAt: number;
  /** The ref of its rescue commit, when there is one. */
  readonly rescue: string | null;
}

/** Everything that a session has done in its worktree. */
export interface WorktreeWork extends ListedWorktree, WorktreeChange {}

export class Worktrees {
  readonly #folder: string;
  readonly #settings: GitSettings;

  constructor({ folder, environment }: WorktreesOptions) {
    this.#folder = folder;
    this.#settings = environment === undefined ? {} : { environment };
  }

  /**
   * Makes the worktree of a session, or finds it. Idempotent: a call that a crash cut off is finished by the
   * next one.
   *
   * @throws HoldfastError `invalid_input` for a project that can have no worktree, `conflict` for a name that
   *   is taken.
   * @throws HoldfastError `file_not_found` for a worktree or a snapshot that is gone.
   */
  async open(wanted: OpenWorktree): Promise<Worktree> {
    const repository = await this.#repository(wanted.project);
    const names = namesOf(repository.folder, wanted.session);
    const record = readRecord(names.record) ?? (await this.#begin(repository, wanted));
    if (record.owner !== (wanted.owner ?? "")) throw taken(record, "an earlier session of this id had one");
    switch (record.state) {
      case "creating":
        return this.#create(record, repository);
      case "ready":
        return this.#find(record);
      case "removing":
      case "removed":
        throw new HoldfastError("file_not_found", `the worktree of session ${record.session} was removed`, {
          at: record.path,
          fix: `look at its work: \`git log ${record.branch}\`, and everything that was in it: \`git show ${names.rescue}\``,
        });
    }
  }

  /** The worktree of a session that may have none, without a change; `undefined` when there is none that can be used. */
  async lookUp(project: string, session: string): Promise<Worktree | undefined> {
    return (await this.lookUpAll(project, [session])).get(session);
  }

  /** The ready worktrees of these sessions, with one call of git, and without one for no sessions. */
  async lookUpAll(project: string, sessions: readonly string[]): Promise<ReadonlyMap<string, Worktree>> {
    const found = new Map<string, Worktree>();
    if (sessions.length === 0 || !existsSync(this.#folder)) return found;
    const repository = await this.#repository(project).catch(() => undefined);
    if (repository === undefined) return found;
    for (const session of sessions) {
      const record = readRecordOf(repository.folder, session);
      if (record?.state !== "ready") continue;
      const { path, prefix, branch, base } = record;
      found.set(session, { path: join(path, prefix), root: path, branch, base });
    }
    return found;
  }

  /** The files of the project whose changes no commit has. A project that can have no worktree has no such files. */
  async uncommitted(project: string): Promise<readonly string[]> {
    const repository = await this.#repository(project).catch(() => undefined);
    return repository === undefined ? [] : readUncommitted(repository, this.#settings);
  }

  /** The worktrees of a project with their facts, the oldest first. */
  async list(
    project: string,
    { all = false }: { readonly all?: boolean } = {},
  ): Promise<readonly ListedWorktree[]> {
    const repository = await this.#repository(project);
    const records = readRecords(repository.folder).filter(({ state }) => all || state !== "removed");
    const listed: ListedWorktree[] = [];
    for (const record of records) listed.push(await this.#listed(await this.#now(record), repository));
    return listed;
  }

  /**
   * The record of a session's worktree as it is now, also by the beginning of the id. @throws NotFoundError
   * `not_found`, UsageError for several.
   *
   * @param owner as it was opened with: the id is then whole, and an earlier session of the id is not meant.
   */
  async find(project: string, session: string, owner?: string): Promise<WorktreeRecord> {
    // The project may have been another working tree of the repository, which is gone now.
    const { folder, project: root } = await this.#repository(project);
    const exact = readRecordOf(folder, session, owner);
    const found =
      exact === undefined
        ? readRecords(folder).filter((record) => owner === undefined && isMeantBy(record.session, session))
        : [exact];
    if (found.length > 1)
      throw new UsageError(`"${session}" means several sessions with worktrees`, {
        got: [...shortIds(found.map((record) => record.session)).values()].join(", "),
        fix: "give more characters of the id",
      });
    if (found[0] !== undefined) return this.#now({ ...found[0], project: root });
    throw new NotFoundError("not_found", `session ${session} has no worktree of this project`, {
      at: folder,
      fix: "run `holdfast worktrees list` to see the sessions that have one",
    });
  }

  /** Commits what is open, as `commit` does. @returns the branch and the changes since its base, for a parent. */
  async finish(project: string, session: string, message: string): Promise<WorktreeSummary> {
    const record = await this.#ready(project, session);
    await commitWork(record, message, this.#settings);
    return summarizeWork(record, this.#settings);
  }

  /** Commits to its branch what is not committed yet. @returns the commit, if there was something. */
  async commit(project: string, session: string, message: string): Promise<string | undefined> {
    return commitWork(await this.#ready(project, session), message, this.#settings);
  }

  /** The whole change since the base, also what is not committed and what git does not know. */
  async diff(project: string, session: string, options: { readonly stat?: boolean } = {}): Promise<string> {
    const record = await this.find(project, session);
    const { folder } = await this.#repository(project);
    const { rescue } = namesOf(folder, record.session);
    const kept =
      record.state === "removed" ? await commitOf(rescue, record.project, this.#settings) : undefined;
    const end = kept ?? (await draftWork(record, this.#settings));
    return (await diffWork(record, end, options.stat === true, this.#settings)).text;
  }

  /**
   * The worktree of exactly this session with its commits and its change, also when its folder is gone.
   * `undefined` when it has none, as in a project that is in no repository. A read that fails throws.
   *
   * @param owner as it was opened with.
   */
  async work(project: string, session: string, owner: string): Promise<WorktreeWork | undefined> {
    const repository = await findAnyRepository(project, this.#folder, this.#settings);
    const own = repository && readRecordOf(repository.folder, session, owner);
    if (repository === undefined || own === undefined) return undefined;
    const record = await this.#now({ ...own, project: repository.project });
    const listed = await this.#listed(record, repository);
    return { ...listed, ...(await readWork(record, listed, this.#settings)) };
  }

  /**
   * Merges the work into the current branch of the project. A refusal has changed nothing there.
   *
   * @throws HoldfastError `conflict`, `uncommitted_changes` or `policy_denied`.
   */
  async merge(project: string, session: string, request: MergeRequest = {}): Promise<MergedWorktree> {
    const record = await this.find(project, session);
    if (request.commit !== undefined) await this.#check(record);
    const { project: root } = await this.#repository(project);
    return mergeWork(record, root, request, this.#settings);
  }

  /** Keeps the files of a session as they are. A second call without a change in between keeps nothing more. */
  async keepFiles(project: string, session: string): Promise<FileSnapshot> {
    const record = await this.#ready(project, session);
    // Another session's id may begin with this one.
    if (record.session !== session)
      throw new NotFoundError("not_found", `session ${session} has no worktree of this project`);
    return takeSnapshot(await this.#snapshotPlace(record), this.#settings);
  }

  /** Forgets the snapshots of a session, if it has some. Its worktree and its commits stay. */
  async dropSnapshots(project: string, session: string): Promise<void> {
    const found = await this.#repository(project).catch(() => undefined);
    if (found === undefined) return;
    const { record, snapshots } = namesOf(found.folder, session);
    if (readRecord(record) !== undefined) await dropRef(snapshots, found.project, this.#settings);
  }

  /** @returns the rescue commit. @throws HoldfastError `conflict` or `in_use`. */
  async remove(
    project: string,
    session: string,
    { rescues = false }: { readonly rescues?: boolean } = {},
  ): Promise<{ readonly rescue: string; readonly commit: string | undefined }> {
    const record = await this.find(project, session);
    const { folder } = await this.#repository(project);
    const names = namesOf(folder, record.session);
    const commit = await removeWorktree(record, names, rescues, this.#settings);
    return { rescue: names.rescue, commit };
  }

  /** The intent. */
  async #begin(repository: Repository, wanted: OpenWorktree): Promise<WorktreeRecord> {
    const { session, owner = "", parent, begin } = wanted;
    const names = namesOf(repository.folder, session);
    const above = parent === undefined ? undefined : readRecordOf(repository.folder, parent);
    const ofParent = above?.state === "ready" ? (await this.#now(above)).branch : undefined;
    if (begin !== undefined) await this.#require(session, begin, repository);
    const base = await baseCommit(repository, begin?.head ?? wanted.base ?? ofParent, this.#settings);
    const outermost = { store: repository.commonDir, project: repository.project, prefix: "" };
    const submodules = await findSubmodules(outermost, base, this.#settings);
    const record: WorktreeRecord = {
      version: 1,
      session,
      owner,
      repository: repository.commonDir,
      project: repository.project,
      path: names.path,
      prefix: repository.prefix,
      branch: names.branch,
      base,
      ...(typeof begin?.commit === "string" ? { snapshot: begin.commit } : {}),
      ...(submodules.length > 0 ? { submodules } : {}),
      state: "creating",
      by: processIdentity(process.pid) ?? null,
      createdAt: Date.now(),
    };
    if (existsSync(names.path)) throw taken(record, `the folder ${names.path} is there already`);
    if ((await commitOf(`refs/heads/${names.branch}`, repository.project, this.#settings)) !== undefined)
      throw taken(record, `the branch ${names.branch} is there already`);
    if (beginRecord(names.record, repository.folder, record)) return record;
    return readRecord(names.record) ?? record; // Another process was faster.
  }

  async #create(record: WorktreeRecord, { folder }: Repository): Promise<Worktree> {
    const own = processIdentity(process.pid) ?? null;
    const { by, session } = record;
    if (by !== null && by.pid !== process.pid && isRunning(by))
      throw new UnavailableError("locked", `process ${by.pid} is making the worktree of session ${session}`, {
        fix: "wait for it",
      });
    const names = namesOf(folder, session);
    const mine = keepRecord(names.record, { ...record, by: own });
    const settings = { ...this.#settings, tag: `worktree:${names.path}` };
    await createWorktree(mine, names.rescue, settings);
    await this.#beginFiles(mine, settings);
    return this.#find(keepRecord(names.record, { ...mine, state: "ready", by: null }));
  }

  /** Each step is repeated by the next call, when a crash cuts it off. */
  async #beginFiles(record: WorktreeRecord, settings: GitSettings): Promise<void> {
    const { path, base, snapshot } = record;
    const place = await this.#snapshotPlace(record);
    const own = await gitIn(path, ["rev-parse", "--path-format=absolute", "--git-path", "index"], settings);
    await beginIndex(place, own.stdout.trim(), base, settings);
    if (snapshot === undefined) return;
    await restoreFiles(place, base, snapshot, settings);
    await gitIn(path, ["update-ref", "-m", "holdfast: fork", place.ref, snapshot], settings);
  }

  async #snapshotPlace({ session, path }: WorktreeRecord): Promise<SnapshotPlace> {
    const asked = ["rev-parse", "--path-format=absolute", "--git-path", "holdfast-snapshot-index"];
    const { stdout } = await gitIn(path, asked, this.#settings);
    // In git's own folder of the worktree, which goes with the worktree.
    return { session, root: path, ref: namesOf("", session).snapshots, index: stdout.trim() };
  }

  /** A fork whose files are gone is refused before anything is made. */
  async #require(session: string, { commit, head }: FileSnapshot, { project }: Repository): Promise<void> {
    const run: SnapshotGit = (args, call) => gitIn(project, args, this.#settings, call);
    for (const id of [commit, head]) if (id !== null) await requireSnapshot(session, id, run);
  }

  async #find(record: WorktreeRecord): Promise<Worktree> {
    await this.#check(record);
    const { path, prefix, branch, base, session } = record;
    // A lock that somebody took off would let `git worktree prune` remove the entry.
    await gitIn(path, ["worktree", "lock", "--reason", `Holdfast session ${session}`, path], this.#settings, {
      codes: [0, 128],
    });
    const folder = join(path, prefix);
    makePrivateFolder(folder);
    return { path: folder, root: path, branch, base };
  }

  async #check({ path, branch, session, repository }: WorktreeRecord): Promise<void> {
    const head = existsSync(path)
      ? await gitIn(path, ["rev-parse", "--verify", "--quiet", "HEAD"], this.#settings, {
          codes: [0, 1, 128],
        })
      : undefined;
    if (head?.exitCode !== 0) {
      const what = head === undefined ? "the folder is gone" : "git does not know the folder any more";
      throw new HoldfastError(
        "file_not_found",
        `the worktree of session ${session} cannot be used: ${what}`,
        {
          at: path,
          expected: `a worktree of ${repository} on the branch ${branch}`,
          fix: `restore the folder or the repository; the commits of the session are on the branch ${branch}`,
        },
      );
    }
  }

  async #listed(record: WorktreeRecord, repository: Repository): Promise<ListedWorktree> {
    const { session, state, path, branch, base, createdAt } = record;
    const facts = await readFacts(record, this.#settings);
    const { rescue } = namesOf(repository.folder, session);
    const isRescued = (await commitOf(rescue, repository.project, this.#settings)) !== undefined;
    return {
      session,
      state,
      path,
      root: path,
      branch,
      base,
      createdAt,
      ...facts,
      rescue: isRescued ? rescue : null,
    };
  }

  async #now(record: WorktreeRecord): Promise<WorktreeRecord> {
    return { ...record, branch: await currentBranch(record, this.#settings) };
  }

  async #ready(project: string, session: string): Promise<WorktreeRecord> {
    const record = await this.find(project, session);
    await this.#check(record);
    return record;
  }

  async #repository(project: string): Promise<Repository> {
    return findRepository(project, this.#folder, this.#settings);
  }
}
