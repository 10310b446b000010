// `forkFilesText`: the files that a fork of a session of an agent file begins with, in one line for the person who forks.

import { readState, type JsonText, type Session, type StorageReader } from "@holdfast/core";
import { readWhole } from "@holdfast/core/internal";
import { plainLine } from "../../frame/plain-text.ts";

const LINE_CHARS = 500;

/** The parts of a state of the model loop that are looked at. Any other agent may have a state of another form. */
interface LoopState {
  readonly workspace?: { readonly root?: unknown };
  readonly agent?: { readonly workspace?: unknown };
  readonly files?: {
    readonly commit?: unknown;
    readonly session?: unknown;
    readonly staleBecause?: unknown;
  } | null;
}

/** @returns nothing for a session without a checkpoint, or of an agent of code. */
export async function forkFilesText(reader: StorageReader, fork: Session): Promise<string | undefined> {
  if (fork.checkpointSeq === undefined) return undefined;
  const { agent, workspace, files } = await stateOf(reader, fork);
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

/** The state at the last checkpoint. */
async function stateOf(reader: StorageReader, session: Session): Promise<LoopState> {
  const { records } = await readWhole(reader, session);
  const payloads: JsonText[] = [];
  let last;
  for (const record of records) {
    if (record.type !== "checkpoint") continue;
    if (record.base === undefined) payloads.length = 0;
    payloads.push(record.payload ?? "null");
    last = record;
  }
  const value = last === undefined ? undefined : readState(payloads, last).value;
  return typeof value === "object" && value !== null ? value : {};
}
