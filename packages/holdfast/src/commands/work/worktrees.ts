import { SESSION_ARGUMENT, type Command } from "@holdfast/terminal/frame/command";
import { listWorktrees, removeWorktree } from "../../agents/workspaces/project-worktrees.ts";

export const worktrees: Command = {
  name: "worktrees",
  actions: {
    list: { does: "the worktrees of this project", options: ["all"] },
    remove: { does: "remove the worktree of a session", takes: [SESSION_ARGUMENT], options: ["rescue"] },
  },
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
    const { action, positionals: rest } = args;
    switch (action) {
      case "list":
        return listWorktrees(args, io);
      default:
        return removeWorktree(rest[0]!, args, io);
    }
  },
};
