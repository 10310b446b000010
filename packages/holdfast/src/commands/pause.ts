import { ConflictError, isEnded } from "@holdfast/core";
import { takeOnly } from "../frame/arguments.ts";
import type { Command } from "../frame/command.ts";

export const pause: Command = {
  name: "pause",
  summary: "Have a session stand still until somebody lets it go on",
  usage: "pause ID",
  description:
    "What it has running is waited for and kept, and nothing more is begun. Its children go on. Deadlines and a cancel still " +
    "end it. `holdfast unpause` lets it go on.",
  options: {},
  examples: [
    ["pause ses_019a", "look at it in peace"],
    ["pause ses_019a --json", "how it stands then, for programs"],
  ],

  async run(args, io) {
    const id = takeOnly(args.positionals, "the session's id", pause.usage);
    const { findDatabase } = await import("../place/project.ts");
    const { withRequests } = await import("../ask/request-session.ts");
    return withRequests(findDatabase(args, io), id, async ({ session, runtime }) => {
      const { sessionId } = session;
      const status = isEnded(session.status) ? session.status : await runtime.pause(sessionId);
      if (isEnded(status)) {
        throw new ConflictError(
          "session_ended",
          `session ${sessionId} has ended (${status}): there is nothing to pause`,
          {
            fix: `${io.call(`result ${sessionId}`)} tells its result; ${io.call(`fork ${sessionId}`)} goes on from it`,
          },
        );
      }
      io.result({ sessionId, status }, "");
      io.note(`session ${sessionId} is paused; it goes on with: ${io.call(`unpause ${sessionId}`)}`);
      return 0;
    });
  },
};
