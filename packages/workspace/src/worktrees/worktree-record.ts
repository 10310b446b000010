// `WorktreeRecord`: the registry of worktrees, one small JSON file for each session, beside its worktree.
//
//   - The record of a worktree is written before git makes anything, and replaced in one step. A crash leaves
//     the old record or the new one.
//   - A name is made from the session id alone, and different ids have different names. A record is never
//     removed, so that no name is used for a second worktree.

import { createHash } from "node:crypto";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { createPrivate, makePrivateFolder, readUserFile, replacePrivate } from "@holdfast/system";
import { UsageError } from "@holdfast/core";
import { z } from "zod";

const submoduleSchema = z.strictObject({
  /** From the root of the worktree. */
  path: z.string().min(1),
  /** The submodule's own repository, in that of the user. */
  store: z.string().min(1),
  /** The commit that it began with. */
  base: z.string().min(1),
});

export type SubmoduleRecord = z.output<typeof submoduleSchema>;

const recordSchema = z.strictObject({
  version: z.literal(1),
  session: z.string().min(1),
  /** Tells this session from a later one with the same id. */
  owner: z.string(),
  /** The shared git directory of the repository. */
  repository: z.string().min(1),
  /** The root of the user's working tree. */
  project: z.string().min(1),
  /** The root of the worktree. */
  path: z.string().min(1),
  /** The session's folder below the root, where the project is a folder of a larger repository. */
  prefix: z.string(),
  branch: z.string().min(1),
  /** The commit that the branch began with. */
  base: z.string().min(1),
  /** The file snapshot that a fork begins with, on top of its base. */
  snapshot: z.string().min(1).optional(),
  /** The submodules of its base that have a checkout in it, each before those inside of it. */
  submodules: z.array(submoduleSchema).readonly().optional(),
  /** `creating` before the session may use the worktree, `removing` once its removal has begun. */
  state: z.enum(["creating", "ready", "removing", "removed"]),
  /** The process that creates it. */
  by: z.strictObject({ pid: z.int(), startedAt: z.string() }).nullable(),
  createdAt: z.int(),
});

export type WorktreeRecord = z.output<typeof recordSchema>;

/** The names of a session's worktree, branch and refs. */
export interface WorktreeNames {
  readonly path: string;
  readonly record: string;
  readonly branch: string;
  readonly rescue: string;
  readonly snapshots: string;
}

const NAME_CHARS_MAX = 150;

/** @param folder the folder of the repository's worktrees. */
export function namesOf(folder: string, session: string): WorktreeNames {
  const name = nameOf(session);
  return {
    path: join(folder, name),
    record: join(folder, `${name}.json`),
    branch: `holdfast/${name}`,
    rescue: `refs/holdfast/rescue/${name}`,
    snapshots: `refs/holdfast/snapshots/${name}`,
  };
}

/**
 * Session ids have no `+`, and git allows it where some dots are not allowed.
 *
 * @throws UsageError for a text that is a path: it would name a file that an agent has written in its worktree.
 */
function nameOf(session: string): string {
  if (/[/\\\0]/.test(session))
    throw new UsageError("a session id is no path", {
      got: JSON.stringify(session.slice(0, 100)),
      fix: "run `holdfast worktrees list` to see the sessions that have a worktree",
    });
  const name = /\.\.|\.$|\.lock$|\.json$/i.test(session) ? session.replaceAll(".", "+2e") : session;
  if (name.length <= NAME_CHARS_MAX) return name;
  return `${name.slice(0, 100)}+${createHash("sha256").update(session).digest("hex").slice(0, 32)}`;
}

/** @returns false when there is a record already. */
export function beginRecord(path: string, folder: string, record: WorktreeRecord): boolean {
  makePrivateFolder(folder);
  try {
    createPrivate(path, textOf(record));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

export function keepRecord(path: string, record: WorktreeRecord): WorktreeRecord {
  replacePrivate(path, textOf(record));
  return record;
}

/** @throws HoldfastError `config_invalid` for a record that other users may write, or that is damaged. */
export function readRecord(path: string): WorktreeRecord | undefined {
  return readUserFile(path, {
    what: "a worktree",
    expected: "the record of a worktree",
    fix: "move the file away; the worktree beside it and its branch stay, and git knows both (`git worktree list`)",
    schema: recordSchema,
  });
}

/**
 * The record of exactly this session. Disks that ignore case have the same file for two sessions.
 *
 * @param owner that of the session, where an earlier session of the id is not meant.
 */
export function readRecordOf(folder: string, session: string, owner?: string): WorktreeRecord | undefined {
  const record = readRecord(namesOf(folder, session).record);
  const isIts = record?.session === session && (owner === undefined || record.owner === owner);
  return isIts ? record : undefined;
}

/** The records of one repository, the oldest first. */
export function readRecords(folder: string): readonly WorktreeRecord[] {
  let files: readonly string[];
  try {
    files = readdirSync(folder).filter((name) => name.endsWith(".json"));
  } catch {
    return [];
  }
  return files
    .flatMap((file) => readRecord(join(folder, file)) ?? [])
    .toSorted((a, b) => a.createdAt - b.createdAt);
}

function textOf(record: WorktreeRecord): string {
  return `${JSON.stringify(record, null, 2)}\n`;
}
