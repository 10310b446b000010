// `pageWorkspaces`: the worktrees of this project for a page whose server is on their machine, which is
// `holdfast ui` and the local stack.

import type { PageOptions } from "@holdfast/coordinator";
import type { StorageReader } from "@holdfast/core";
import type { Io } from "@holdfast/terminal/frame/command";

export function pageWorkspaces(
  reader: Pick<StorageReader, "session">,
  io: Io,
): Pick<PageOptions, "workspace" | "merge"> {
  const loaded = () => import("../agents/workspaces/session-work.ts");
  return {
    workspace: async (sessionId) => (await loaded()).sessionWork(sessionId, io),
    merge: async (sessionId, { commit }) => {
      const { mergeSession } = await loaded();
      const title = (await reader.session(sessionId))?.title;
      return mergeSession(sessionId, { commit, title }, io);
    },
  };
}
