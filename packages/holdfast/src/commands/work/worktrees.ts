import {
  refuseAction,
  refuseForeignOptions,
  takeNothing,
  takeOnly,
} from "@holdfast/terminal/frame/arguments";
import type { Command } from "@holdfast/terminal/frame/command";
import { listWorktrees, removeWorktree } from "../../agents/workspaces/project-worktrees.ts";

export const worktrees: Command = {
  name: "worktrees",
  usage: "worktrees list [--all] | worktrees remove ID [--rescue]",
  description:
    "A session of an agent file with `holdfast.workspace: worktree` works in a git worktree of its own (docs/workspaces.md). The list shows for each " +
    "its session, branch and folder, and what is open in it. A worktree that is in use, or has work that is nowhere else, is not removed. " +
    "With --rescue such work is removed too. Everything, also ignored files, is first committed to refs/holdfast/rescue/ID, and the " +
    "branch stays.",
  options: {
    all: { help: "also worktrees that were removed" },
    rescue: { help: "remove it although it has work that is nowhere else" },
  },
  examples: [
    ["worktrees list", "the worktrees of this project"],
    ["worktrees remove ses_019a", "remove one that has nothing open"],
    ["worktrees remove ses_019a --rescue", "remove one with open work, which stays in a commit"],
  ],

  async run(args, io) {
    const [action, ...rest] = args.positionals;
    refuseForeignOptions(worktrees, { list: ["all"], remove: ["rescue"] }, args);
    switch (action) {
      case "list":
        takeNothing(rest, worktrees.usage);
        return listWorktrees(args, io);
      case "remove":
        return removeWorktree(takeOnly(rest, "the session's id", worktrees.usage), args, io);
      default:
        throw refuseAction("worktrees", action, ["list", "remove"], worktrees.usage);
    }
  },
};
