// `skipPast`: brings the tail of a journal to its end before a session is followed, and may show the last of it.
// Both are one reading, so no event is shown twice or never.

import type { Session } from "@holdfast/core";
import type { Io } from "@holdfast/terminal/frame/command";
import type { JournalTail } from "@holdfast/terminal/view/journal-events";
import type { AskedQuestions } from "@holdfast/terminal/view/work/live-view";
import { PastWork } from "@holdfast/terminal/view/work/past-work";

const LINES = 20;

/** @returns the questions since the last checkpoint. */
export async function skipPast(
  session: Session,
  tail: JournalTail,
  { showsPast = false }: { readonly showsPast?: boolean },
  io: Io,
): Promise<AskedQuestions> {
  if (!showsPast || io.isJson) return tail.skip(session);
  const past = new PastWork(session, io.notes);
  const asked = await tail.skip(session, past);
  const all = io.call(`logs ${session.sessionId}`);
  if (past.isLongerThan(LINES))
    io.note(io.notes.paint.dim(`the last ${LINES} lines of what it did; all of it: ${all}`));
  for (const line of past.lines(LINES)) io.note(line);
  return asked;
}
