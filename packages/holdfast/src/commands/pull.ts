import { takeOnly } from "../frame/arguments.ts";
import { OTHER_END_OPTION, type Command } from "../frame/command.ts";

export const pull: Command = {
  name: "pull",
  summary: "Move a session from a coordinator to the database here",
  usage: "pull ID [--url URL] [--db PATH]",
  description:
    "The way back from `holdfast push`, or the first way of a session that was made there. A runner that has it is fenced, and what " +
    "its tasks had not reported is done again here. Asked again after it was cut off, the move is finished. Exit codes: 4 there is " +
    "no such session, 6 it has ended or is here already, 7 the coordinator cannot be reached.",
  options: { url: OTHER_END_OPTION },
  examples: [
    ["pull ses_019a --url https://fleet.example", "from a coordinator, with the token in HOLDFAST_TOKEN"],
    ["pull ses_019a && holdfast resume ses_019a --agent plan.ts", "and go on with it here"],
  ],

  async run(args, io) {
    const id = takeOnly(args.positionals, "the session's id", pull.usage);
    const { moveBetween } = await import("../ask/move-between.ts");
    return moveBetween("pull", id, args, io);
  },
};
