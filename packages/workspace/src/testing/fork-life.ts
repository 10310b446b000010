// A program that tests kill while it makes the workspace of a fork.

import { EmptyFolders } from "../worktrees/empty-folder.ts";
import { Worktrees } from "../worktrees/worktrees.ts";

const [workspace = "", project = "", folder = "", session = "", commit = "", head = ""] =
  process.argv.slice(2);
const begin = { commit, head: head === "" ? null : head };
if (workspace === "empty") await new EmptyFolders({ folder }).open(project, session, begin);
else await new Worktrees({ folder }).open({ project, session, begin });
process.stdout.write("made\n");
