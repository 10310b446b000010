// `planRemoval`, `removePlanned`: the removal of sessions that ended long ago (ST58).
//
//   - A plan is made by the rule of the storage, over the rows of all sessions. A dry run therefore shows what
//     a removal deletes.
//   - Sessions are removed in small groups, so that a database with much to remove serves others meanwhile.

import { askerOf, isEnded, isRemovable, type Session, type StorageReader } from "@holdfast/core";
import { newestFirst, withReader, withStorage } from "@holdfast/place/find-session";
import type { Database } from "@holdfast/place/project";
import type { Io } from "@holdfast/terminal/frame/command";
import { dropFileSnapshots } from "../agents/workspaces/deleted-sessions.ts";
import { removeLog } from "../run/background.ts";

const GROUP_SESSIONS = 50;

/** The ids of the sessions that a removal deletes, children before their parents. */
export function planRemoval(place: Database, endedBefore: number): Promise<readonly string[]> {
  return withReader(place, async (reader) => {
    if (reader === undefined) return [];
    const rows = new Map<string, Session>();
    const below = new Map<string, Set<string>>();
    /** For each session of a queued task the one that asked for it. */
    const askers = new Map<string, string>();
    for await (const { input, output: _output, ...session } of newestFirst(reader)) {
      const { sessionId, parent, agent } = session;
      rows.set(sessionId, { ...session, input: undefined });
      const asker = askerOf({ agent, input });
      if (asker !== undefined) askers.set(sessionId, asker);
      if (parent === undefined) continue;
      const siblings = below.get(parent.sessionId) ?? new Set<string>();
      below.set(parent.sessionId, siblings.add(sessionId));
    }
    const lookups = {
      find: (id: string) => {
        const session = rows.get(id);
        return session && { session };
      },
      children: (id: string) =>
        [...(below.get(id) ?? [])].map((sessionId) => ({
          sessionId,
          owner: rows.get(sessionId)?.placement?.owner,
        })),
    };
    const isUnread = (sessionId: string): boolean => {
      const asker = rows.get(askers.get(sessionId) ?? "");
      return asker !== undefined && !isEnded(asker.status);
    };
    // The newest come first, and a child is newer than its parent.
    return [...rows.values()].flatMap(({ sessionId, parent }) => {
      if (isUnread(sessionId) || !isRemovable(lookups, sessionId, endedBefore)) return [];
      rows.delete(sessionId);
      if (parent !== undefined) below.get(parent.sessionId)?.delete(sessionId);
      return [sessionId];
    });
  });
}

/** @returns the ids of the deleted sessions: a planned one stays if it is needed by now. */
export async function removePlanned(
  place: Database,
  planned: readonly string[],
  { endedBefore, io }: { readonly endedBefore: number; readonly io: Io },
): Promise<readonly string[]> {
  if (planned.length === 0) return [];
  const removed = await withStorage(
    place,
    async ({ storage }) => {
      const gone: string[] = [];
      for (let from = 0; from < planned.length; from += GROUP_SESSIONS) {
        const sessionIds = planned.slice(from, from + GROUP_SESSIONS);
        await storage.commit([{ type: "remove_ended", sessionIds, endedBefore }], Date.now());
        gone.push(...(await missingOf(storage.reader, sessionIds)));
      }
      return gone;
    },
    false,
  );
  await dropFileSnapshots(removed, io);
  for (const sessionId of removed) removeLog(sessionId, io);
  return removed;
}

async function missingOf(reader: StorageReader, sessionIds: readonly string[]): Promise<readonly string[]> {
  const found = await Promise.all(sessionIds.map((sessionId) => reader.session(sessionId)));
  return sessionIds.filter((_, at) => found[at] === undefined);
}
