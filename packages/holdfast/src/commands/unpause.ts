import { ConflictError, defined, isEnded } from "@holdfast/core";
import { SESSION_ARGUMENT, type Command } from "@holdfast/terminal/frame/command";
import { findDatabase } from "@holdfast/place/project";
import { resumeHint, withRequests } from "../sessions/request-session.ts";

export const unpause: Command = {
  name: "unpause",
  takes: [SESSION_ARGUMENT],
  description:
    "The process that runs the session's tree resumes it; at a coordinator, any matching runner does. If there is none, the command " +
    "says so. Fix the cause of the pause first: `holdfast show` names it.",
  options: {},
  examples: [["unpause ses_019a", "continue after `holdfast pause`"]],

  async run(args, io) {
    const [id = ""] = args.positionals;
    const database = findDatabase(args, io);
    return withRequests(database, id, async ({ session, requests, access }) => {
      const { sessionId } = session;
      const before = session.status;
      const status = isEnded(before) ? before : await requests.unpause(sessionId);
      if (isEnded(status))
        throw new ConflictError(
          "session_ended",
          `session ${sessionId} has ended (${status}): it cannot continue`,
          {
            fix: `run ${io.call(`result ${sessionId}`)} to see its result, or ${io.call(`fork ${sessionId}`)} to continue from it`,
          },
        );
      const resume = await resumeHint(access, session, io);
      io.result({ sessionId, status, ...defined({ resume }) }, "");
      // Success: what was asked for is so already.
      io.note(
        before === "paused"
          ? `session ${sessionId} is resumed`
          : `session ${sessionId} was not paused (${status})`,
      );
      if (resume !== undefined) io.note(`no process runs it; continue with: ${resume}`);
      if (database.coordinator !== undefined)
        await (
          await import("@holdfast/place/coordinator-call")
        ).sayUntaken(database.coordinator, sessionId, io);
      return 0;
    });
  },
};
