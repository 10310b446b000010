// `CostReader`: what sessions cost by their journals, read as the journals grow.
//
//   session-cost-1. A record is read once, however often the cost is asked for. A session is forgotten when it is no longer asked for.

import type { Session, StorageReader } from "@holdfast/core";
import { addUsage, NO_COST, type Cost } from "@holdfast/proto/view";

const PAGE_RECORDS = 500;

interface Read {
  cost: Cost;
  nextSeq: number;
}

export class CostReader {
  #known = new Map<string, Read>();

  /** The costs of these sessions alone, without the sessions below them. `undefined` for a session that stores no journal. */
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

/** session-cost-1. */
async function advance(read: Read, { sessionId, nextSeq }: Session, reader: StorageReader): Promise<void> {
  while (read.nextSeq < nextSeq) {
    const records = await reader.journal(sessionId, read.nextSeq, PAGE_RECORDS);
    for (const record of records)
      if ("usage" in record && record.usage !== undefined) read.cost = addUsage(read.cost, record.usage);
    read.nextSeq = (records.at(-1)?.seq ?? nextSeq - 1) + 1;
  }
}
