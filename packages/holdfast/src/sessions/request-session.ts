// The common part of `pause`, `unpause` and `budget`: a request about a session, through the process that
// owns its database.

import { isEnded, type Session, type StorageReader } from "@holdfast/core";
import { requestsOver, type SessionRequests } from "@holdfast/runtime";
import type { Io } from "@holdfast/terminal/frame/command";
import { readBelow, walk, walkUp } from "@holdfast/terminal/view/session-tree";
import { withSession, type Access } from "@holdfast/place/find-session";
import type { Database } from "@holdfast/place/project";
import { isIdle } from "./send-signal.ts";

export interface Requests {
  readonly session: Session;
  readonly access: Access;
  readonly requests: SessionRequests;
}

export async function withRequests(
  database: Database,
  id: string,
  work: (asking: Requests) => Promise<number>,
): Promise<number> {
  return withSession(database, id, (session, access) =>
    work({ session, access, requests: requestsOver(access.storage) }),
  );
}

/**
 * The command that resumes a session's whole tree, when a session of the tree has something to do and no
 * process runs it.
 */
export async function resumeHint(
  access: Access,
  session: Session,
  io: Pick<Io, "call">,
): Promise<string | undefined> {
  const below = [...walk(await readBelow(access.storage.reader, session))].map(
    (node) => node.session.sessionId,
  );
  if (!(await isIdle(access, [session.sessionId, ...below]))) return undefined;
  return io.call(`resume ${(await topOf(access.storage.reader, session)).sessionId}`);
}

/** The topmost session above it that has not ended; itself when there is none. */
async function topOf(reader: StorageReader, session: Session): Promise<Session> {
  let top = session;
  for await (const above of walkUp(reader, session)) if (!isEnded(above.status)) top = above;
  return top;
}
