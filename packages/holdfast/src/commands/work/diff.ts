import { SESSION_ARGUMENT, type Command } from "@holdfast/terminal/frame/command";
import { showDiff } from "../../agents/workspaces/project-worktrees.ts";

export const diff: Command = {
  name: "diff",
  takes: [SESSION_ARGUMENT],
  description:
    "Shows the difference between the commit that the worktree began with and its files as they are: also what is not committed, and new " +
    "files. For a worktree that was removed it shows what was in it.",
  options: { stat: { help: "the files and the number of their changed lines" } },
  examples: [
    ["diff ses_019a", "the whole difference"],
    ["diff ses_019a --stat", "the files alone"],
  ],

  async run(args, io) {
    const [id = ""] = args.positionals;
    return showDiff(id, args, io);
  },
};
