import { ConflictError, isEnded } from "@holdfast/core";
import { SESSION_ARGUMENT, type Command } from "@holdfast/terminal/frame/command";
import { findDatabase } from "@holdfast/place/project";
import { withRequests } from "../sessions/request-session.ts";

export const pause: Command = {
  name: "pause",
  takes: [SESSION_ARGUMENT],
  description:
    "The session's running tasks finish, their outcomes are kept, and nothing new begins. Its children continue. Deadlines and a " +
    "cancel still end the session. `holdfast unpause` continues it.",
  options: {},
  examples: [
    ["pause ses_019a", "look at it in peace"],
    ["pause ses_019a --json", "its status then, for programs"],
  ],

  async run(args, io) {
    const [id = ""] = args.positionals;
    return withRequests(findDatabase(args, io), id, async ({ session, requests }) => {
      const { sessionId } = session;
      const status = isEnded(session.status) ? session.status : await requests.pause(sessionId);
      if (isEnded(status)) {
        throw new ConflictError(
          "session_ended",
          `session ${sessionId} has ended (${status}): there is nothing to pause`,
          {
            fix: `run ${io.call(`result ${sessionId}`)} to see its result, or ${io.call(`fork ${sessionId}`)} to continue from it`,
          },
        );
      }
      io.result({ sessionId, status }, "");
      io.note(`session ${sessionId} is paused; continue with: ${io.call(`unpause ${sessionId}`)}`);
      return 0;
    });
  },
};
