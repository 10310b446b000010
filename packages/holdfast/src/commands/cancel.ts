import { SESSION_ARGUMENT, type Command } from "@holdfast/terminal/frame/command";
import { cancelSession } from "../sessions/cancel-session.ts";

export const cancel: Command = {
  name: "cancel",
  takes: [SESSION_ARGUMENT],
  description:
    "The agent is notified and may clean up for ten seconds; after a cancel it cannot complete any more. With --hard the session " +
    "ends at once and the agent is not notified. An external agent that no process runs is ended by this command. A cancel covers the tree: all sessions below the session are cancelled with it.",
  options: {
    hard: { help: "end it at once" },
    reason: { help: "why; it is recorded", value: "TEXT" },
  },
  examples: [
    ["cancel ses_019a", "ask it, and every session below it, to end"],
    ["cancel ses_019a --hard", "end it"],
  ],

  async run(args, io) {
    const [id = ""] = args.positionals;
    return cancelSession(id, { hard: args.has("hard"), reason: args.text("reason") }, args, io);
  },
};
