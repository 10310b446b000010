// `forkChoices`: the positions of a journal at which a fork may begin, seen from one of its records.
//
// The rules are those of a fork itself (fork-1, fork-2, fork-4), over types of records alone, so that a page
// offers only what is accepted.

import type { RecordType } from "../journal-event.ts";

export interface ForkChoice {
  /** The number of records that the fork begins with. */
  readonly at: number;
  /** The kind of place: behind a record, behind a checkpoint, or before everything. */
  readonly place: "record" | "checkpoint" | "beginning";
  /** Whether the fork may have another input there. */
  readonly takesInput: boolean;
}

type Typed = { readonly type: RecordType };

/** The records that are written together with the event before them. */
const COMMANDS: ReadonlySet<RecordType> = new Set<RecordType>([
  "append_entry",
  "cancel_child",
  "checkpoint",
  "complete",
  "enable_persistence",
  "fail",
  "record_probe",
  "reply_child",
  "request_input",
  "request_parent",
  "schedule_task",
  "spawn_child",
  "start_timer",
  "take_signals",
  "tell_session",
  "wait_signal",
  "withdraw",
]);

/**
 * The place nearest to a record first, then the checkpoint before it, then the beginning.
 *
 * @param seq the record that the fork is to contain, if it can.
 */
export function forkChoices(records: readonly Typed[], seq: number): readonly ForkChoice[] {
  const end = usableEnd(records);
  const nearest = nearestPoint(records, seq + 1, end);
  const found = records.findLastIndex(({ type }, at) => type === "checkpoint" && at < nearest);
  const places = [nearest, found + 1, 0];
  return [...new Set(places)].map((at) => {
    const isCheckpoint = records[at - 1]?.type === "checkpoint";
    const place = at === 0 ? "beginning" : isCheckpoint ? "checkpoint" : "record";
    return { at, place, takesInput: place !== "record" };
  });
}

/** The first point from a position on, or the last one before it. */
function nearestPoint(records: readonly Typed[], from: number, end: number): number {
  let at = Math.min(from, end);
  while (at < end && !isPoint(records, at)) at++;
  while (at > 0 && !isPoint(records, at)) at--;
  return at;
}

/** fork-1. */
function isPoint(records: readonly Typed[], at: number): boolean {
  const next = records[at];
  return next === undefined || !COMMANDS.has(next.type);
}

/** fork-2. */
function usableEnd(records: readonly Typed[]): number {
  const cancelled = records.findIndex(({ type }) => type === "cancel_requested");
  if (cancelled !== -1) return cancelled;
  const last = records.at(-1)?.type;
  if (last !== "complete" && last !== "fail") return records.length;
  return Math.max(
    0,
    records.findLastIndex(({ type }) => !COMMANDS.has(type)),
  );
}
