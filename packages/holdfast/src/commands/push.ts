import { takeOnly } from "../frame/arguments.ts";
import { OTHER_END_OPTION, type Command } from "../frame/command.ts";

export const push: Command = {
  name: "push",
  summary: "Move a session from the database here to a coordinator",
  usage: "push ID [--url URL] [--db PATH]",
  description:
    "It goes on there, on a runner that has its agent. From the moment it is frozen nothing changes it here, and who asks is told " +
    "where it went; a process that runs it is fenced. Asked again after it was cut off, the move is finished. A session with a " +
    "parent or children that have not ended does not move. If the coordinator is gone for good before it has finished, `holdfast export` " +
    "and `holdfast import --session OTHER` go on with a copy here. Exit codes: 6 it has ended or is there already, 7 the coordinator cannot " +
    "be reached.",
  options: { url: OTHER_END_OPTION },
  examples: [
    ["push ses_019a --url https://fleet.example", "to a coordinator, with the token in HOLDFAST_TOKEN"],
    ["push ses_019a", "to the coordinator of this machine"],
  ],

  async run(args, io) {
    const id = takeOnly(args.positionals, "the session's id", push.usage);
    const { moveBetween } = await import("../ask/move-between.ts");
    return moveBetween("push", id, args, io);
  },
};
