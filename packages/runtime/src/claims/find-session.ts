// `findSession`: a session as it is stored.

import type { Session, StorageReader } from "@holdfast/core";
import { sessionNotFound } from "../session/session-errors.ts";

/** @throws NotFoundError */
export async function findSession(reader: StorageReader, sessionId: string): Promise<Session> {
  const session = await reader.session(sessionId);
  if (session === undefined) throw sessionNotFound(sessionId);
  return session;
}
