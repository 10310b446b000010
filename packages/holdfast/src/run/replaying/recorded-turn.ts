// One recorded turn of a session, and its replay: for `replay`, and for the check before an upgrade.

import { UsageError, type JournalRecord, type Session, type StorageReader } from "@holdfast/core";
import { ownerOfTurn, replaySession, type ReplayOptions, type ReplayStand } from "@holdfast/runtime";

const PAGE_RECORDS = 500;

/** @param records of one turn of the session. */
export async function replayTurn(
  reader: StorageReader,
  session: Session,
  records: readonly JournalRecord[],
  options: Omit<ReplayOptions, "session" | "records" | "states">,
): Promise<ReplayStand> {
  return replaySession({
    ...options,
    session: await ownerOfTurn(reader, session, records),
    records,
    states: await statesBefore(reader, session, records[0]),
  });
}

/** The records of one turn: the wanted one, the one that holds a position, or the last. */
export async function readTurn(
  reader: StorageReader,
  session: Session,
  { turn, at }: { readonly turn?: number | undefined; readonly at?: number | undefined } = {},
): Promise<readonly JournalRecord[]> {
  const last = session.checkpointSeq ?? 0;
  if (at !== undefined && at >= session.nextSeq) {
    throw new UsageError(`the journal has no position ${at}`, {
      at: "--at",
      expected: session.nextSeq === 0 ? "a session that was started" : `0 to ${session.nextSeq - 1}`,
    });
  }
  let records: JournalRecord[] = [];
  let next = turn === undefined && (at === undefined || at > last) ? last : 0;
  for (;;) {
    const page = await reader.journal(session.sessionId, next, PAGE_RECORDS);
    for (const record of page) {
      const closes = record.type === "checkpoint" && records.length > 0;
      records.push(record);
      if (!closes) continue;
      const isWanted = turn === undefined ? at !== undefined && record.seq >= at : turnOf(records) === turn;
      if (isWanted) return upTo(records, at);
      records = [record];
    }
    next += page.length;
    if (page.length < PAGE_RECORDS) break;
  }
  if (turn === undefined || turnOf(records) === turn) return upTo(records, at);
  throw new UsageError(`session ${session.sessionId} has no turn ${turn}`, {
    at: "--turn",
    expected: `0 to ${turnOf(records)}`,
    fix: "run `holdfast trace` to see the turns",
  });
}

/** With both given, the position must be in the turn. */
function upTo(records: readonly JournalRecord[], at: number | undefined): readonly JournalRecord[] {
  const first = records[0]?.seq ?? 0;
  const last = records.at(-1)?.seq ?? 0;
  if (at === undefined || (at >= first && at <= last)) return records;
  throw new UsageError(`position ${at} is not in turn ${turnOf(records)}`, {
    at: "--at",
    expected: `${first} to ${last}`,
  });
}

function turnOf([first]: readonly JournalRecord[]): number {
  return first?.type === "checkpoint" ? first.turn : 0;
}

/** Payloads of the checkpoints that this one's changes build on. */
async function statesBefore(
  reader: StorageReader,
  { sessionId }: Session,
  first: JournalRecord | undefined,
): Promise<string[]> {
  if (first?.type !== "checkpoint" || first.base === undefined) return [];
  const records = await reader.journal(sessionId, first.base, first.seq - first.base);
  return records.flatMap((record) => (record.type === "checkpoint" ? (record.payload ?? "null") : []));
}
