import { HoldfastError, isEnded } from "@holdfast/core";
import { SESSION_OR_LAST, type Command } from "@holdfast/terminal/frame/command";
import { findDatabase } from "@holdfast/place/project";
import { withReaderOfMeant } from "@holdfast/place/find-session";
import { showEnd } from "@holdfast/terminal/view/session-end";
import { movedAway } from "@holdfast/terminal/view/moved-session";
import { statusText } from "@holdfast/terminal/view/describe-session";

export const result: Command = {
  name: "result",
  takes: [SESSION_OR_LAST],
  description:
    "A text is written as it is, everything else as JSON. The exit code is 0 when the session completed, 1 when it failed, and 6 when " +
    "it was cancelled; a cancelled session may have a partial output, which its agent returned.",
  options: { last: { help: "the newest session" } },
  examples: [
    ["result ses_019a", "the output"],
    ["result ses_019a --json", "status, output and error as one JSON object"],
  ],

  async run(args, io) {
    const session = await withReaderOfMeant(findDatabase(args, io), args, (found) => Promise.resolve(found));
    if (isEnded(session.status)) {
      return showEnd(session, io);
    }
    const moved = movedAway(session, io);
    if (moved !== undefined) throw moved;
    throw new HoldfastError(
      "session_not_ended",
      `session ${session.sessionId} has no result yet: it is ${statusText(session)}`,
      {
        fix: `run ${io.call(`show ${session.sessionId}`)} to see what it waits for`,
      },
    );
  },
};
