import { SESSION_ARGUMENT, type Command } from "@holdfast/terminal/frame/command";
import { withReaderOf } from "@holdfast/place/find-session";
import { findDatabase } from "@holdfast/place/project";
import { withRequests } from "../../sessions/request-session.ts";

export const title: Command = {
  name: "title",
  takes: [
    SESSION_ARGUMENT,
    { name: "TITLE", is: "the title", optional: true, ifMore: "put the title in quotes" },
  ],
  description:
    "Each session has a title, one line of at most 80 characters that is made of its input. Lists show it, and nothing that the agent does " +
    "depends on it. With TITLE the command replaces it, also after the session has ended. An empty TITLE makes it of the input again.",
  options: {},
  examples: [
    [`title ses_019a "the login of the shop"`, "another title"],
    ["title ses_019a", "its title now"],
    [`title ses_019a ""`, "the one of its input again"],
  ],

  async run(args, io) {
    const [id = "", text] = args.positionals;
    const database = findDatabase(args, io);
    if (text === undefined)
      return withReaderOf(database, id, async ({ sessionId, title: now }) => {
        io.show({ sessionId, title: now ?? null }, now ?? "");
        if (now === undefined) io.note(`session ${sessionId} has no title`);
        return 0;
      });
    return withRequests(database, id, async ({ session: { sessionId }, requests, access }) => {
      await requests.setTitle(sessionId, text);
      const now = (await access.storage.reader.session(sessionId))?.title;
      io.show({ sessionId, title: now ?? null }, now ?? "");
      return 0;
    });
  },
};
