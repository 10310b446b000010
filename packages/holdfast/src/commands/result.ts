import { HoldfastError, isEnded } from "@holdfast/core";
import type { Command } from "../frame/command.ts";

export const result: Command = {
  name: "result",
  summary: "Show the output of a session that has ended",
  usage: "result ID|--last",
  description:
    "A text is written as it is, everything else as JSON. The exit code is 0 when the session completed, 1 when it failed, and 6 when " +
    "it was cancelled; a cancelled session may have a partial output, which its agent returned.",
  options: { last: { help: "the newest session" } },
  examples: [
    ["result ses_019a", "the output"],
    ["result ses_019a --json", "status, output and error as one JSON object"],
  ],

  async run(args, io) {
    const { findDatabase } = await import("../place/project.ts");
    const { withReaderOfMeant } = await import("../place/find-session.ts");
    const session = await withReaderOfMeant(findDatabase(args, io), args, result.usage, (found) =>
      Promise.resolve(found),
    );
    if (isEnded(session.status)) {
      const { showEnd } = await import("../view/session-end.ts");
      return showEnd(session, io);
    }
    const { movedAway } = await import("../view/moved-session.ts");
    const moved = movedAway(session, io);
    if (moved !== undefined) throw moved;
    const { statusText } = await import("../view/describe-session.ts");
    throw new HoldfastError(
      "session_not_ended",
      `session ${session.sessionId} has no result yet: it is ${statusText(session)}`,
      {
        fix: `run ${io.call(`show ${session.sessionId}`)} to see what it waits for`,
      },
    );
  },
};
