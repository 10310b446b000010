// `sessionFolder`: the folder that a session of an agent file works in. It is the shared one, a git worktree,
// or an empty folder.
//
//   - A child whose file says `shared` works in the folder of the session that started it, whatever that one
//     is.
//   - The folder is found by the ids of the session and of those above it, so that any process finds the same
//     one.
//   - A folder of one session alone is kept as file snapshots, and a fork of the session begins with one of
//     them.

import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { EmptyFolders, Worktrees, type FileSnapshot, type Worktree } from "@holdfast/workspace";
import { type AgentPlaces, type AgentRecord } from "@holdfast/agents";
import { NotFoundError } from "@holdfast/core";
import type { TaskContext } from "@holdfast/runtime";

interface SessionFolder {
  readonly path: string;
  /** The root of the worktree, in a worktree. */
  readonly worktree?: string;
  /** The files that it has now, when no other session works in it. */
  readonly files?: FileSnapshot;
}

/** The worktrees of this user. They lie beside the other files of the user's data folder. */
export function worktreesOf({ trustFile, env }: Pick<AgentPlaces, "trustFile" | "env">): Worktrees {
  return new Worktrees({ folder: join(dirname(trustFile), "worktrees"), environment: env });
}

/** The empty folders of this user. They lie beside the worktrees. */
function emptyFoldersOf({ trustFile, env }: Pick<AgentPlaces, "trustFile" | "env">): EmptyFolders {
  return new EmptyFolders({ folder: join(dirname(trustFile), "workspaces"), environment: env });
}

/** @param root the folder that sessions share. @param begin the files that the folder of a fork begins with. */
export async function sessionFolder(
  { workspace }: Pick<AgentRecord, "workspace">,
  root: string,
  places: AgentPlaces,
  task: Pick<TaskContext, "sessionId" | "readSession">,
  begin?: FileSnapshot,
): Promise<SessionFolder> {
  const { sessionId: session } = task;
  const row = await task.readSession();
  const above = idsAbove(session, row?.depth ?? 0);
  switch (workspace) {
    case "empty":
      return {
        path: await emptyFoldersOf(places).open(root, session, begin),
        files: begin ?? { commit: null, head: null },
      };
    case "shared":
      return (await folderAbove(above, root, places)) ?? { path: root };
    case "worktree": {
      const parent = above.length === 0 ? undefined : await worktreeAbove(above, root, places);
      const owner = String(row?.createdAt ?? "");
      const child = parent === undefined ? {} : { parent };
      const fork = begin === undefined ? {} : { begin };
      const made = await worktreesOf(places).open({ project: root, session, owner, ...child, ...fork });
      return { ...inWorktree(made), files: begin ?? { commit: null, head: made.base } };
    }
  }
}

/** Keeps the files of a session's own folder as they are. */
export async function keepSessionFiles(
  { workspace }: Pick<AgentRecord, "workspace">,
  root: string,
  places: AgentPlaces,
  session: string,
): Promise<FileSnapshot> {
  const folders = workspace === "empty" ? emptyFoldersOf(places) : worktreesOf(places);
  return folders.keepFiles(root, session);
}

/** Forgets the file snapshots of a session that is deleted, wherever it had a folder of its own in this project. */
export async function dropSessionFiles(root: string, places: AgentPlaces, session: string): Promise<void> {
  await emptyFoldersOf(places).dropSnapshots(root, session);
  await worktreesOf(places).dropSnapshots(root, session);
}

/** Tells the model of a parent what is in the workspace of its child. The work of a worktree is committed to its branch. */
export async function finishChild(
  { name, workspace }: Pick<AgentRecord, "name" | "workspace">,
  session: string,
  root: string,
  places: AgentPlaces,
): Promise<string | null> {
  switch (workspace) {
    case "shared":
      return null;
    case "empty":
      return `Its files are in ${emptyFoldersOf(places).pathOf(root, session)}.`;
    case "worktree": {
      const worktrees = worktreesOf(places);
      try {
        const message = `Work of agent ${name}\n\nHoldfast-Session: ${session}\n`;
        const { branch, base, commits, stat } = await worktrees.finish(root, session, message);
        if (stat === "") return `It changed no file. Its branch is ${branch}.`;
        return (
          `Its work is on the git branch ${branch}: ${commits} ${commits === 1 ? "commit" : "commits"} since ${base.slice(0, 12)}. ` +
          `\`git merge ${branch}\` takes it over. The changes:\n${stat}`
        );
      } catch (error) {
        if (NotFoundError.is(error)) return null; // It ended before it had a worktree.
        throw error;
      }
    }
  }
}

/** The ids of the sessions above, the nearest first. A child has the id of its parent and a number. */
function idsAbove(session: string, depth: number): readonly string[] {
  const ids: string[] = [];
  let id = session;
  for (let at = 0; at < depth; at++) ids.push((id = id.replace(/-\d+$/, "")));
  return ids;
}

async function folderAbove(
  above: readonly string[],
  root: string,
  places: AgentPlaces,
): Promise<SessionFolder | undefined> {
  const worktrees = await worktreesOf(places).lookUpAll(root, above);
  for (const id of above) {
    const worktree = worktrees.get(id);
    if (worktree !== undefined) return inWorktree(worktree);
    const path = emptyFoldersOf(places).pathOf(root, id);
    if (existsSync(path)) return { path };
  }
  return undefined;
}

async function worktreeAbove(
  above: readonly string[],
  root: string,
  places: AgentPlaces,
): Promise<string | undefined> {
  const worktrees = await worktreesOf(places).lookUpAll(root, above);
  return above.find((id) => worktrees.has(id));
}

function inWorktree({ path, root }: Worktree): SessionFolder {
  return { path, worktree: root };
}
