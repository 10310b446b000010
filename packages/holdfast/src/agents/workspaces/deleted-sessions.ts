// `dropFileSnapshots`: forgets the file snapshots of sessions that were deleted. It loads git's code only for
// a user with such folders.
//
// Their folders and worktrees stay, because only a person removes work.

import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { defined, HoldfastError, type StorageReader } from "@holdfast/core";
import type { Io } from "@holdfast/terminal/frame/command";
import { agentPlaces } from "../agent-places.ts";
import { findSandboxRoot } from "../sandbox-settings.ts";

const PAGE = 500;

/** The sessions below a session. */
export async function idsBelow(reader: StorageReader, sessionId: string): Promise<readonly string[]> {
  const found: string[] = [];
  const ahead = [sessionId];
  for (let parent; (parent = ahead.pop()) !== undefined;) {
    for (let before: string | undefined; ;) {
      const page = await reader.sessions({
        parent,
        limit: PAGE,
        ...defined({ before }),
      });
      const ids = page.map((session) => session.sessionId);
      found.push(...ids);
      ahead.push(...ids);
      before = ids.at(-1);
      if (ids.length < PAGE) break;
    }
  }
  return found;
}

export async function dropFileSnapshots(
  sessionIds: readonly string[],
  io: Pick<Io, "cwd" | "env"> & Partial<Pick<Io, "note" | "notes">>,
): Promise<void> {
  const places = agentPlaces(io);
  const data = dirname(places.trustFile);
  if (!["worktrees", "workspaces"].some((name) => existsSync(join(data, name)))) return;
  const { dropSessionFiles } = await import("@holdfast/machine/session-folder");
  try {
    for (const id of sessionIds) await dropSessionFiles(findSandboxRoot(io).value, places, id);
  } catch (error) {
    if (!HoldfastError.is(error)) throw error;
    io.note?.(`${io.notes?.symbols.warn ?? "!"} its file snapshots are not forgotten: ${error.message}`);
  }
}
