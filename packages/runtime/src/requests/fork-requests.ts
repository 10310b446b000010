// `refuseOtherFork`: whether a stored session is the fork that a caller asks for.

import { ConflictError, type ImportSession, type Session } from "@holdfast/core";

/**
 * Accept the stored session if it is the fork that was asked for: the first answer was lost, or the caller asked before.
 *
 * @throws ConflictError `session_exists` when the session is another one.
 */
export function refuseOtherFork(
  stored: Session,
  { sessionId, session: { fork, input } }: Pick<ImportSession, "sessionId" | "session">,
): void {
  const isSame = stored.fork?.at === fork?.at && stored.fork?.origins[0] === fork?.origins[0];
  if (isSame && stored.input === input) return;
  throw new ConflictError(
    "session_exists",
    `there is a session ${sessionId} already, and it is not this fork`,
    { fix: "choose another id" },
  );
}
