import { SESSION_ARGUMENT, type Command } from "@holdfast/terminal/frame/command";
import { mergeWork } from "../../agents/workspaces/project-worktrees.ts";

export const merge: Command = {
  name: "merge",
  takes: [SESSION_ARGUMENT],
  description:
    "Changes of this project that are not committed stay as they are. The merge is refused where it would change the same files, where changes are " +
    "staged, and where the worktree has changes that are not committed and --commit is not given. That, and a conflict, is found before anything is " +
    "committed: the project and the worktree stay as they are, and the error says how to resolve it.",
  options: {
    commit: { help: "first commit what is not committed in the worktree" },
    message: {
      help: "the message of the merge, and of the commit of --commit (default: the title of the session)",
      value: "TEXT",
      short: "m",
    },
  },
  examples: [
    ["merge ses_019a", "take its commits over"],
    ["merge ses_019a --commit", "take everything over that it has changed"],
    [`merge ses_019a --commit -m "shop: mend the login"`, "with a message of yours"],
  ],

  async run(args, io) {
    const [id = ""] = args.positionals;
    return mergeWork(id, args, io);
  },
};
