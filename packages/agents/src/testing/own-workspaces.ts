// `ownWorkspaces`: the worktrees and empty folders of sessions, as `holdfast` gives them to a model loop.

import { defined } from "@holdfast/core";
import { join } from "node:path";

import type { ModelLoopOptions, PlaceSession } from "../model-loop/model-loop.ts";
import { EmptyFolders, Worktrees } from "@holdfast/workspace";

type Parts = Required<Pick<ModelLoopOptions, "place" | "keepFiles">>;

export function ownWorkspaces(
  project: string,
  data: string,
  environment: NodeJS.ProcessEnv,
): Parts & { readonly worktrees: Worktrees; readonly folders: EmptyFolders } {
  const worktrees = new Worktrees({ folder: join(data, "worktrees"), environment });
  const folders = new EmptyFolders({ folder: join(data, "workspaces"), environment });
  const place: PlaceSession = async ({ workspace }, { sessionId: session }, begin) => {
    switch (workspace) {
      case "shared":
        return { address: project };
      case "empty": {
        const address = await folders.open(project, session, begin);
        return { address, files: begin ?? { commit: null, head: null } };
      }
      case "worktree": {
        const made = await worktrees.open({ project, session, ...defined({ begin }) });
        return {
          address: made.path,
          worktree: made.root,
          files: begin ?? { commit: null, head: made.base },
        };
      }
    }
  };
  const keepFiles: Parts["keepFiles"] = ({ workspace }, { sessionId }) =>
    (workspace === "empty" ? folders : worktrees).keepFiles(project, sessionId);
  return { worktrees, folders, place, keepFiles };
}
