// `CostReader`: what sessions cost by their journals, read as the journals grow. The usage of a coding agent
// is there with each of its reports, long before its turn ends.
//
// A record is read once, however often the cost is asked for. A session is forgotten when it is no longer
// asked for.

import type { JournalRecord, Session, StorageReader, TokenUsage } from "@holdfast/core";
import { addUsage, NO_COST, type Cost } from "@holdfast/proto/view";

const PAGE_RECORDS = 500;

/** A report of a coding agent at work, as a signal of its session (`turn-reports.ts`). */
interface Report {
  readonly isCharged?: unknown;
  readonly events?: readonly { readonly type: string; readonly usage: TokenUsage }[];
}

interface Read {
  cost: Cost;
  nextSeq: number;
}

export class CostReader {
  #known = new Map<string, Read>();

  /**
   * The costs of these sessions alone, without the sessions below them. `undefined` for a session that stores
   * no journal.
   */
  async costs(
    sessions: readonly { readonly session: Session; readonly reader: StorageReader }[],
  ): Promise<readonly (Cost | undefined)[]> {
    const before = this.#known;
    this.#known = new Map();
    const costs: (Cost | undefined)[] = [];
    for (const { session, reader } of sessions) {
      const read = before.get(session.sessionId) ?? { cost: NO_COST, nextSeq: 0 };
      this.#known.set(session.sessionId, read);
      if (session.persistence === undefined) await advance(read, session, reader);
      costs.push(session.persistence === undefined ? read.cost : undefined);
    }
    return costs;
  }
}

async function advance(read: Read, { sessionId, nextSeq }: Session, reader: StorageReader): Promise<void> {
  while (read.nextSeq < nextSeq) {
    const records = await reader.journal(sessionId, read.nextSeq, PAGE_RECORDS);
    for (const record of records) for (const usage of usageOf(record)) read.cost = addUsage(read.cost, usage);
    read.nextSeq = (records.at(-1)?.seq ?? nextSeq - 1) + 1;
  }
}

/** The usage that a record tells of for the first time. */
function usageOf(record: JournalRecord): readonly TokenUsage[] {
  if ("usage" in record && record.usage !== undefined)
    return record.usage.isCharged === true ? [] : [record.usage]; // Reports have told of it.
  if (record.type !== "signal_received" && record.type !== "take_signals") return [];
  if (record.payload?.includes('"usage"') !== true) return [];
  const payload: unknown = JSON.parse(record.payload);
  return (Array.isArray(payload) ? payload : [payload]).flatMap(usageOfReport);
}

function usageOfReport(payload: unknown): readonly TokenUsage[] {
  const { isCharged, events } = (payload ?? {}) as Report;
  if (isCharged !== true || !Array.isArray(events)) return [];
  return events.flatMap((event) => (event.type === "usage" ? event.usage : []));
}
