import { takeOnly } from "@holdfast/terminal/frame/arguments";
import { OTHER_END_OPTION, type Command } from "@holdfast/terminal/frame/command";
import { moveBetween } from "../sessions/move-between.ts";

export const pull: Command = {
  name: "pull",
  usage: "pull ID [--url URL] [--db PATH]",
  description:
    "The counterpart of `holdfast push`; it also moves sessions that were started at the coordinator. A runner that holds the session " +
    "is fenced, and tasks without a recorded outcome run again here. If a move is interrupted, run the same command again to finish " +
    "it. Exit codes: 4 there is no such session, 6 it has ended or is already here, 7 the coordinator cannot be reached.",
  options: { url: OTHER_END_OPTION },
  examples: [
    ["pull ses_019a --url https://fleet.example", "from a coordinator, with the token in HOLDFAST_TOKEN"],
    ["pull ses_019a && holdfast resume ses_019a --agent plan.ts", "and continue it here"],
  ],

  async run(args, io) {
    const id = takeOnly(args.positionals, "the session's id", pull.usage);
    return moveBetween("pull", id, args, io);
  },
};
