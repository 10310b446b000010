import { takeOnly } from "@holdfast/terminal/frame/arguments";
import { OTHER_END_OPTION, type Command } from "@holdfast/terminal/frame/command";
import { moveBetween } from "../sessions/move-between.ts";

export const push: Command = {
  name: "push",
  usage: "push ID [--url URL] [--db PATH]",
  description:
    "The session continues there, on a runner that has its agent. The move freezes the session: nothing changes it here any more, " +
    "commands say where it went, and a process that runs it is fenced. If a move is interrupted, run the same command again to " +
    "finish it. A session with a parent or children that have not ended does not move. If the coordinator is lost before the move " +
    "has finished, `holdfast export` and `holdfast import --session OTHER` continue a copy here. Exit codes: 6 it has ended or is " +
    "already there, 7 the coordinator cannot be reached.",
  options: { url: OTHER_END_OPTION },
  examples: [
    ["push ses_019a --url https://fleet.example", "to a coordinator, with the token in HOLDFAST_TOKEN"],
    ["push ses_019a", "to the coordinator of this machine"],
  ],

  async run(args, io) {
    const id = takeOnly(args.positionals, "the session's id", push.usage);
    return moveBetween("push", id, args, io);
  },
};
