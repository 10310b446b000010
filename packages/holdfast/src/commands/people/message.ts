import { NotFoundError } from "@holdfast/core";
import { refuse } from "@holdfast/terminal/frame/arguments";
import { SESSION_ARGUMENT, type Command } from "@holdfast/terminal/frame/command";
import { withReaderOf } from "@holdfast/place/find-session";
import { findDatabase } from "@holdfast/place/project";
import { messageSignal, sendMessage } from "../../sessions/send-message.ts";

export const message: Command = {
  name: "message",
  takes: [
    { ...SESSION_ARGUMENT, repeats: true },
    { name: "TEXT", is: "the text", ifMissing: "put the text behind the ids, in quotes" },
  ],
  description:
    "A conversation that waits gets the text as its next message, and one that works is steered by it, as a line of `holdfast chat` does. " +
    "All sessions are looked up first: when one of them is not there or takes no messages, nobody gets the text.",
  options: {},
  examples: [
    [`message ses_019a "use the new API"`, "one agent"],
    [`message ses_019a ses_019b "the tests are red: mend them first"`, "two agents"],
  ],

  async run(args, io) {
    const ids = args.positionals.slice(0, -1);
    const text = args.positionals.at(-1) ?? "";
    if (text.trim() === "") throw refuse("the text is empty", args.usage);
    const database = findDatabase(args, io);
    for (const id of ids)
      await withReaderOf(database, id, async (session) => messageSignal(session, io)).catch(
        (error: unknown) => {
          if (!(error instanceof NotFoundError) || id !== ids.at(-1) || ids.length < 2) throw error;
          throw refuse(`there is no session ${id}`, args.usage, {
            fix: "put a text of several words in quotes",
          });
        },
      );
    const sent: unknown[] = [];
    const each = { ...io, result: (value: unknown) => void sent.push(value) };
    let code = 0;
    for (const id of ids) {
      try {
        await sendMessage(id, text, args, {
          ...each,
          note: (line) => io.note(ids.length === 1 ? line : `${id}: ${line}`),
        });
      } catch (error) {
        code ||= io.complain(error);
      }
    }
    io.result(sent, "");
    return code;
  },
};
