// `deleteStarted`: the ended sessions that an external agent has started are deleted for it, as
// `holdfast delete --subtree` does.

import { HoldfastError } from "@holdfast/core";
import { parseArguments } from "@holdfast/terminal/frame/arguments";
import type { Io } from "@holdfast/terminal/frame/command";
import { findDatabase } from "@holdfast/place/project";
import { withSession } from "@holdfast/place/find-session";
import { dropFileSnapshots, idsBelow } from "./deleted-sessions.ts";

/** @returns whether it is deleted: not where this process finds no such session, or may not delete it. */
export async function deleteStarted(id: string, io: Pick<Io, "cwd" | "env">): Promise<boolean> {
  try {
    const database = findDatabase(parseArguments([], { name: "worktrees", options: {} }), io);
    return await withSession(database, id, async ({ sessionId }, { storage }) => {
      const below = await idsBelow(storage.reader, sessionId);
      const change = { type: "delete_session", sessionId, subtree: "delete" } as const;
      const [result] = await storage.commit([change], Date.now());
      if (result?.status !== "deleted") return false;
      await dropFileSnapshots([sessionId, ...below], io);
      return true;
    });
  } catch (error) {
    if (HoldfastError.is(error)) return false;
    throw error;
  }
}
