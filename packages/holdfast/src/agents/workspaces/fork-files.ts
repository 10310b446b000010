// `forkFilesText`: the files that a fork of a session of an agent file begins with, in one line for the
// person who forks.

import type { Session, StorageReader } from "@holdfast/core";
import { plainLine } from "@holdfast/terminal/frame/plain-text";
import { loopStateOf } from "./loop-state.ts";

const LINE_CHARS = 500;

/** @returns nothing for a session without a checkpoint, or of an agent of code. */
export async function forkFilesText(reader: StorageReader, fork: Session): Promise<string | undefined> {
  if (fork.checkpointSeq === undefined) return undefined;
  const { agent, workspace, files } = await loopStateOf(reader, fork);
  const root = workspace?.root;
  if (typeof root !== "string" || typeof agent?.workspace !== "string") return undefined;
  if (files == null) return plainLine(`it works in the same folder as its origin: ${root}`, LINE_CHARS);
  const own = agent.workspace === "empty" ? "a folder of its own" : "a git worktree of its own";
  const { staleBecause } = files;
  const which =
    typeof staleBecause === "string"
      ? `of an earlier turn, because later ones were not kept: ${staleBecause}`
      : "of its checkpoint";
  // Tasks of the turn that had no outcome are done again as they were recorded.
  const isInTurn = fork.fork !== undefined && fork.fork.at !== fork.checkpointSeq + 1;
  const reruns = isInTurn && fork.fork?.tasks === "rerun";
  const rest = reruns ? `; calls without a result there are done again in the folder of its origin` : "";
  return plainLine(`it works in ${own}, which begins with the files ${which}${rest}`, LINE_CHARS);
}
