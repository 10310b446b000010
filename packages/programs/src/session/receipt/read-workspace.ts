// Reads the workspaces of sessions for their restore receipts (`Workspaces`): the commit, and digests of what
// is not committed.
//
//   - A file that cannot be read is recorded as absent, and fails no turn.
//   - No program runs that the configuration of the folder's repository names: the agent may have written it.
//   - One git is started, and none where nothing was changed since the last reading (`workspace-stamp.ts`).
//     Each start delays the turn, and takes more time of the processor than all the rest of a turn.

import { createHash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { MIB } from "@holdfast/core";

import { gitIn, ownGuard, SHALLOW, withoutPrograms } from "@holdfast/workspace";
import type { Workspace } from "./restore-receipt.ts";
import { factsOf } from "./session-files.ts";
import { FILES_MAX, stampOf, type Repository } from "./workspace-stamp.ts";

/** Larger files of the workspace are known by their size and time. */
const HASHED_BYTES_MAX = 4 * MIB;
/** Larger files are read by another thread, which takes several times the processor time of a small one. */
const READ_AT_ONCE_BYTES = 64 * 1024;
const UNCOMMITTED_MAX = 500;
/** Sections of a configuration with programs, and those that bring in other files. */
const WITH_PROGRAMS = /\[\s*(filter|hook|include)/i;
const STATUS = ["status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", SHALLOW];
const IGNORED = "--ignored=matching";
/** Folders whose last reading is kept. */
const READINGS_MAX = 100;

interface Reading {
  readonly workspace: Workspace;
  /** The state of the files that were read; `undefined` where a later change could go unseen. */
  readonly stamp: string | undefined;
  /** The paths that git ignored, up to a number. */
  readonly ignored: ReadonlySet<string>;
}

const NOTHING: ReadonlySet<string> = new Set();

export class Workspaces {
  /** The last readings of this process, by folder. */
  readonly #readings = new Map<string, Reading>();

  /**
   * @param waits for the moment after which no change can go unseen, so that the next reading starts no git.
   * @returns `null` outside of git.
   */
  async read(folder: string, waits = false): Promise<Workspace | null> {
    try {
      const repository = findRepository(folder);
      if (repository === undefined) return null;
      const last = this.#readings.get(folder);
      // The stamp is taken before git looks, so that a change in between is seen the next time.
      const stamp = await stampOf(repository, last?.ignored ?? NOTHING, waits);
      if (stamp !== undefined && stamp === last?.stamp) return last.workspace;
      const { ignored, ...workspace } = await readByGit(repository);
      this.#readings.delete(folder);
      this.#readings.set(folder, { workspace, stamp, ignored });
      const [oldest] = this.#readings.keys();
      if (this.#readings.size > READINGS_MAX && oldest !== undefined) this.#readings.delete(oldest);
      return workspace;
    } catch {
      return null;
    }
  }
}

async function readByGit({
  root,
  gitFolder,
}: Repository): Promise<Workspace & { readonly ignored: ReadonlySet<string> }> {
  // Git looks for no repository further up, whose configuration was not read.
  const place = { GIT_CEILING_DIRECTORIES: dirname(root) };
  const guard = hasNoPrograms(gitFolder) ? withoutPrograms([]) : await ownGuard(root, {}, place);
  const { stdout } = await gitIn(root, [...STATUS, IGNORED], {}, { env: { ...guard, ...place } });
  const { commit, paths, ignored } = parseBranchStatus(stdout);
  const uncommitted: Record<string, string> = {};
  for (const path of paths.slice(0, UNCOMMITTED_MAX)) uncommitted[path] = await digestOf(join(root, path));
  return { commit, uncommitted, ignored };
}

/** The nearest folder with a repository, as git looks for it. */
function findRepository(folder: string): Repository | undefined {
  for (let root = folder; ; root = dirname(root)) {
    const path = join(root, ".git");
    const kind = statSync(path, { throwIfNoEntry: false });
    if (kind?.isDirectory() === true && statSync(join(path, "HEAD"), { throwIfNoEntry: false }) !== undefined)
      return { root, gitFolder: path };
    if (kind?.isFile() === true) {
      const [, named] = /^gitdir: (.+?)\n?$/s.exec(readFileSync(path, "utf8")) ?? [];
      if (named !== undefined) return { root, gitFolder: resolve(root, named) };
    }
    if (root === dirname(root)) return undefined;
  }
}

/** A configuration in which nothing looks like a program needs no further look. */
function hasNoPrograms(gitFolder: string): boolean {
  const common = textOf(join(gitFolder, "commondir"))?.trim();
  const folders = [gitFolder, ...(common === undefined ? [] : [resolve(gitFolder, common)])];
  return folders
    .flatMap((one) => [join(one, "config"), join(one, "config.worktree")])
    .every((path) => !WITH_PROGRAMS.test(textOf(path) ?? ""));
}

/** @throws what the system says of a file that is there and cannot be read. */
function textOf(path: string): string | undefined {
  return statSync(path, { throwIfNoEntry: false }) === undefined ? undefined : readFileSync(path, "utf8");
}

/** Reads `git status --porcelain=v2 --branch -z`. */
function parseBranchStatus(text: string): {
  readonly commit: string | null;
  readonly paths: readonly string[];
  readonly ignored: ReadonlySet<string>;
} {
  let commit: string | null = null;
  const paths: string[] = [];
  const ignored = new Set<string>();
  const parts = text.split("\0");
  for (let at = 0; at < parts.length; at++) {
    const part = parts[at] ?? "";
    const oid = /^# branch\.oid ([\da-f]+)$/.exec(part)?.[1];
    if (oid !== undefined) commit = oid;
    const fields = FIELDS[part.slice(0, 2)];
    if (fields !== undefined) paths.push(part.split(" ").slice(fields).join(" "));
    if (part.startsWith("2 ")) at++; // The old name follows.
    if (part.startsWith("! ") && ignored.size < FILES_MAX) ignored.add(part.slice(2).replace(/\/$/, ""));
  }
  return { commit, paths, ignored };
}

/** The fields before the path, by the kind of the line. */
const FIELDS: Readonly<Record<string, number>> = { "1 ": 8, "2 ": 9, "u ": 10, "? ": 1 };

async function digestOf(path: string): Promise<string> {
  const facts = factsOf(path);
  if (facts === undefined) return "absent";
  if (!facts.isFile()) return "no file";
  if (facts.size > HASHED_BYTES_MAX) return `${facts.size} bytes at ${facts.mtimeMs}`;
  const content = await contentOf(path, facts.size);
  return content === undefined
    ? "unreadable"
    : createHash("sha256").update(content).digest("hex").slice(0, 16);
}

/** @returns `undefined` for a file that cannot be read. */
async function contentOf(path: string, bytes: number): Promise<Buffer | undefined> {
  try {
    return bytes > READ_AT_ONCE_BYTES ? await readFile(path) : readFileSync(path);
  } catch {
    return undefined;
  }
}
