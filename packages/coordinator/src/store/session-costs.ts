// `SessionCosts`: what the calls of sessions cost by model and day, read from their journals as these grow.
//
//   session-costs-1. A record is read once while its session is among the `KNOWN_MAX` that were asked for
//       last.
//   - Only the record that ends an attempt has its usage, so no call counts twice.

import type { Session, StorageReader } from "@holdfast/core";
import { addUsage, NO_COST, type Cost } from "@holdfast/proto/view";

const KNOWN_MAX = 5_000;
const PAGE_RECORDS = 500;

export interface CostPart {
  readonly model: string;
  /** UTC, as `2026-11-27`. */
  readonly day: string;
  readonly cost: Cost;
}

interface Read {
  readonly parts: Map<string, CostPart>;
  nextSeq: number;
}

export class SessionCosts {
  readonly #reader: Pick<StorageReader, "journal">;
  #known = new Map<string, Read>();

  constructor(reader: Pick<StorageReader, "journal">) {
    this.#reader = reader;
  }

  /** @returns the parts, and how many records were read for them. */
  async of(
    session: Pick<Session, "sessionId" | "nextSeq">,
  ): Promise<{ readonly parts: readonly CostPart[]; readonly records: number }> {
    const { sessionId, nextSeq } = session;
    const read = this.#known.get(sessionId) ?? { parts: new Map<string, CostPart>(), nextSeq: 0 };
    const from = read.nextSeq;
    while (read.nextSeq < nextSeq) {
      const begin = read.nextSeq;
      const records = await this.#reader.journal(sessionId, begin, PAGE_RECORDS);
      if (read.nextSeq !== begin) continue; // Another request has read them meanwhile.
      for (const record of records)
        if ("usage" in record && record.usage !== undefined) add(read.parts, record.usage, record.at);
      read.nextSeq = (records.at(-1)?.seq ?? nextSeq - 1) + 1;
    }
    this.#keep(sessionId, read);
    return { parts: [...read.parts.values()], records: read.nextSeq - from };
  }

  /** session-costs-1. A new map now and then, because V8 keeps what passed through an old one. */
  #keep(sessionId: string, read: Read): void {
    this.#known.delete(sessionId);
    this.#known.set(sessionId, read);
    if (this.#known.size > 2 * KNOWN_MAX) this.#known = new Map([...this.#known].slice(-KNOWN_MAX));
  }
}

type Usage = Parameters<typeof addUsage>[1];

function add(parts: Map<string, CostPart>, usage: Usage, at: number): void {
  const day = new Date(at).toISOString().slice(0, "2026-11-27".length);
  const key = `${day} ${usage.model}`;
  const { cost } = parts.get(key) ?? { cost: NO_COST };
  parts.set(key, { model: usage.model, day, cost: addUsage(cost, usage) });
}
