// The worktrees of this project, for a page. `pageWorkspaces` is for a server on their machine: `holdfast ui` and
// the local stack. `runnerWork` is for a coordinator, which asks the runner of the project.

import { auditedMerge, type PageOptions } from "@holdfast/coordinator";
import { NotFoundError, type AgentStorage } from "@holdfast/core";
import type { Redactor } from "@holdfast/system";
import type { RunnerOptions } from "@holdfast/runner";
import { systemClock } from "@holdfast/runtime";
import type { Io } from "@holdfast/terminal/frame/command";

/** Each merge is in the audit of the database, with its outcome. */
export function pageWorkspaces(
  storage: Pick<AgentStorage, "reader" | "commit">,
  io: Io,
): Pick<PageOptions, "workspace" | "merge"> {
  const loaded = () => import("../agents/workspaces/session-work.ts");
  return {
    workspace: async (sessionId) => {
      const session = await storage.reader.session(sessionId);
      return session === undefined ? { status: "none" } : (await loaded()).sessionWork(session, io);
    },
    merge: async (sessionId, { commit, revision, actor }) => {
      const { mergeSession } = await loaded();
      const session = await storage.reader.session(sessionId);
      if (session === undefined)
        throw new NotFoundError("session_not_found", `there is no session ${sessionId}`);
      const how = { commit, revision, title: session.title, isRemote: false };
      return auditedMerge(
        (changes) => storage.commit(changes, systemClock.now()),
        session,
        actor,
        () => mergeSession(session, how, io),
      );
    },
  };
}

/** @param mayMerge what the policy of this machine says. @param redactor of all values that this runner holds. */
export function runnerWork(
  workspace: string,
  mayMerge: boolean,
  redactor: Redactor,
  io: Io,
): NonNullable<RunnerOptions["work"]> {
  const at = Object.assign(Object.create(io) as Io, { cwd: workspace });
  const loaded = () => import("../agents/workspaces/session-work.ts");
  return {
    redactor,
    read: async (session) => (await loaded()).sessionWork(session, at),
    ...(mayMerge
      ? {
          merge: async (session, how) =>
            (await loaded()).mergeSession(session, { ...how, isRemote: true }, at),
        }
      : {}),
  };
}
