import { SESSION_ARGUMENT, OTHER_END_OPTION, type Command } from "@holdfast/terminal/frame/command";
import { moveBetween } from "../transfer/move-between.ts";

export const push: Command = {
  name: "push",
  takes: [SESSION_ARGUMENT],
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
    const [id = ""] = args.positionals;
    return moveBetween("push", id, args, io);
  },
};

export const pull: Command = {
  name: "pull",
  takes: [SESSION_ARGUMENT],
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
    const [id = ""] = args.positionals;
    return moveBetween("pull", id, args, io);
  },
};
