// `loopStateOf`: the state of a session of an agent file at its last checkpoint, as far as commands show it.

import { type JsonText, readState, readWhole, type Session, type StorageReader } from "@holdfast/core";

/** The parts of a state of the model loop that are looked at. Any other agent may have a state of another form. */
export interface LoopState {
  /** The rules of the project when the session started, and those that people gave with their answers since. */
  readonly rules?: unknown;
  readonly workspace?: { readonly root?: unknown };
  readonly agent?: { readonly workspace?: unknown };
  readonly files?: {
    readonly commit?: unknown;
    readonly session?: unknown;
    readonly staleBecause?: unknown;
  } | null;
}

/** The state at the last checkpoint; without one it has no fields. */
export async function loopStateOf(reader: StorageReader, session: Session): Promise<LoopState> {
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
