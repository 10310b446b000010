// `noteUncommitted`: the warning that a worktree begins with the last commit, without the changes in the
// folder that are not committed.

import type { Io } from "@holdfast/terminal/frame/command";
import { count, plainLine } from "@holdfast/terminal/frame/plain-text";
import { agentPlaces } from "../agent-places.ts";
import { findSandboxRoot } from "../sandbox-settings.ts";
import { worktreesOf } from "@holdfast/machine/session-folder";

const NAME_CHARS = 100;

/** Says it before a session begins to work in a worktree. */
export async function noteUncommitted(io: Io): Promise<void> {
  const files = await worktreesOf(agentPlaces(io)).uncommitted(findSandboxRoot(io).value);
  const [first] = files;
  if (first === undefined) return;
  const found = files.length === 1 ? plainLine(first, NAME_CHARS) : `${count(files.length, "file")} here`;
  const verb = files.length === 1 ? "is" : "are";
  io.note(
    `${io.notes.symbols.warn} ${found} ${verb} not committed, and the agent does not see the changes in its worktree; commit them first if it needs them`,
  );
}
