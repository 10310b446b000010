import { takeOnly } from "../arguments.ts";
import type { Command } from "../command.ts";

export const show: Command = {
  name: "show",
  summary: "Show how a session stands, and the command that answers what it waits for",
  usage: "show ID",
  options: {},
  examples: [
    ["show ses_019a", "status, waits, tasks with attempts and durations, conversation"],
    ["show ses_019a --json | jq .tasks", "all of it, for programs"],
  ],

  async run(args, io) {
    const id = takeOnly(args.positionals, "the session's id", show.usage);
    const { findDatabase } = await import("../project.ts");
    const { withReaderOf } = await import("../find-session.ts");
    const { readPicture, pictureJson } = await import("../session-picture.ts");
    const { pictureText } = await import("../picture-text.ts");
    const database = findDatabase(args, io);
    return withReaderOf(database, id, async ({ sessionId }, reader) => {
      const picture = await readPicture(reader, sessionId, database.path, io);
      const now = Date.now();
      io.show(pictureJson(picture, now), pictureText(picture, io.results, now));
      return 0;
    });
  },
};
