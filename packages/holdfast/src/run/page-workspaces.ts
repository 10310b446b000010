// The worktrees of this project, for a page. `pageWorkspaces` is for a server on their machine: `holdfast ui` and
// the local stack. `runnerWork` is for a coordinator, which asks the runner of the project.

import type { PageOptions } from "@holdfast/coordinator";
import type { StorageReader } from "@holdfast/core";
import type { RunnerOptions } from "@holdfast/runner";
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

/** @param mayMerge what the policy of this machine says. */
export function runnerWork(workspace: string, mayMerge: boolean, io: Io): NonNullable<RunnerOptions["work"]> {
  const at = Object.assign(Object.create(io) as Io, { cwd: workspace });
  const loaded = () => import("../agents/workspaces/session-work.ts");
  return {
    read: async (sessionId) => (await loaded()).sessionWork(sessionId, at),
    ...(mayMerge
      ? { merge: async (sessionId, how) => (await loaded()).mergeSession(sessionId, how, at) }
      : {}),
  };
}
