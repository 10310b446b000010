import { ConflictError, isEnded } from "@holdfast/core";
import { takeOnly } from "../frame/arguments.ts";
import type { Command } from "../frame/command.ts";

export const unpause: Command = {
  name: "unpause",
  summary: "Let a paused session go on",
  usage: "unpause ID",
  description:
    "The process that runs its tree goes on with it, at a coordinator a runner that fits; without one, that is told. Whatever it was paused for " +
    "should be mended first: `holdfast show` says what that is.",
  options: {},
  examples: [["unpause ses_019a", "go on after `holdfast pause`"]],

  async run(args, io) {
    const id = takeOnly(args.positionals, "the session's id", unpause.usage);
    const { findDatabase } = await import("../place/project.ts");
    const { resumeHint, withRequests } = await import("../ask/request-session.ts");
    const database = findDatabase(args, io);
    return withRequests(database, id, async ({ session, runtime, access }) => {
      const { sessionId } = session;
      const before = session.status;
      const status = isEnded(before) ? before : await runtime.unpause(sessionId);
      if (isEnded(status))
        throw new ConflictError(
          "session_ended",
          `session ${sessionId} has ended (${status}): it cannot go on`,
          {
            fix: `${io.call(`result ${sessionId}`)} tells its result; ${io.call(`fork ${sessionId}`)} goes on from it`,
          },
        );
      const resume = await resumeHint(access, session, io);
      io.result({ sessionId, status, ...(resume === undefined ? {} : { resume }) }, "");
      // Success: what was asked for is so already.
      io.note(
        before === "paused"
          ? `session ${sessionId} goes on`
          : `session ${sessionId} was not paused (${status})`,
      );
      if (resume !== undefined) io.note(`no process runs it; it goes on with: ${resume}`);
      const { sayUntaken } = await import("../view/run-list.ts");
      await sayUntaken(database.coordinator, sessionId, io);
      return 0;
    });
  },
};
