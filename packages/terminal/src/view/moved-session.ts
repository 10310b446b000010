// The error for a session that has moved: its new place, and the command that watches it there.

import { ConflictError, type Session } from "@holdfast/core";
import type { Io } from "../frame/command.ts";
import { plainLine, quoted } from "../frame/plain-text.ts";

const TEXT_CHARS = 200;

/** The command that follows a session where it lives now; nothing for one that lives here. */
export function watchElsewhere(
  { sessionId, move }: Pick<Session, "sessionId" | "move">,
  io: Pick<Io, "call">,
): string | undefined {
  if (move === undefined) return undefined;
  const option = /^https?:\/\//.test(move.to) ? "--url" : "--db";
  return io.call(`logs ${sessionId} -f`, `${option} ${quoted(plainLine(move.to, TEXT_CHARS))}`);
}

/** Nothing for a session that lives here. */
export function movedAway(
  session: Pick<Session, "sessionId" | "move">,
  io: Pick<Io, "call">,
): ConflictError | undefined {
  const { sessionId, move } = session;
  if (move === undefined) return undefined;
  const moved = move.isDone === true ? "has moved" : "is moving";
  return new ConflictError("session_moved", `session ${sessionId} ${moved} to ${move.to}`, {
    fix: `watch it there: ${watchElsewhere(session, io)}`,
  });
}
