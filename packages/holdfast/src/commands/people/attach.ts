import { isEnded } from "@holdfast/core";
import { SESSION_OR_LAST, VERBOSE_OPTION, type Command } from "@holdfast/terminal/frame/command";
import { showEndedBefore } from "@holdfast/terminal/view/session-end";
import { findPlace } from "@holdfast/place/find-session";
import { findDatabase } from "@holdfast/place/project";
import { isRunElsewhere } from "@holdfast/place/project-storage";
import { noProcess } from "../../run/drive/report-outcome.ts";
import { sessionOf } from "../../run/recorded-agent.ts";
import { follow } from "../../run/starting/start.ts";

export const attach: Command = {
  name: "attach",
  takes: [SESSION_OR_LAST],
  description:
    "Shows a session at work that another process runs: one of the background, of another terminal, of the local stack or of a runner. " +
    "First come the last lines of what it did before. A question is answered by typing, as in `run`. Ctrl-C leaves, and the session goes on.",
  options: {
    last: { help: "the newest session that has not ended" },
    verbose: VERBOSE_OPTION,
  },
  examples: [
    ["attach ses_019a", "look on, and answer its questions"],
    ["attach --last", "the session that was started last"],
  ],

  async run(args, io) {
    const database = await findPlace(findDatabase(args, io), args, io, ({ status }) => !isEnded(status));
    const session = await sessionOf(args, database);
    if (isEnded(session.status)) return showEndedBefore(session, io);
    const { sessionId } = session;
    const isHere = database.coordinator === undefined;
    if (isHere && (session.status === "paused" || !(await isRunElsewhere(database, session))))
      throw noProcess(session, io);
    return follow(sessionId, database, args, io, true);
  },
};
