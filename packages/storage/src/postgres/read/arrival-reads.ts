// Arrivals of sessions: one statement for all reads of one turn of the event loop.
//
//   - A session and its signals are of one moment: they are rows of one statement.
//   - Each session is decoded separately: a damaged row rejects only the reads of its session.

import { type Arrivals, newsOf } from "@holdfast/core";
import type { Database, Row, Statement } from "../database/database.ts";
import { gather } from "../database/gather.ts";
import { sessionNotFound, type Reads } from "./reads.ts";
import { readSignal, readState, SIGNAL_COLUMNS } from "../tables/rows.ts";

const columns = SIGNAL_COLUMNS.split(", ");

/**
 * For each session its state, followed by its signals. Columns that only the one has are NULL in the other.
 */
const ARRIVALS: Statement = {
  name: "arrivals",
  text: `WITH asked AS MATERIALIZED (SELECT v.nth, v.after, s.lane, s.session_id
      FROM unnest($1::int4[], $2::text[], $3::int8[]) AS v (nth, session_id, after) JOIN session s ON s.session_id = v.session_id)
    SELECT a.nth, t.lane, t.status, t.body, t.checksum AS state_checksum, t.session_id, NULL::int8 AS ord, NULL::text AS signal_id,
        NULL::text AS name, NULL::float8 AS sent_at, NULL::text AS payload, NULL::text AS blob, NULL::int8 AS checksum
      FROM asked a JOIN state t ON t.lane = a.lane AND t.session_id = a.session_id
    UNION ALL
    SELECT a.nth, NULL, NULL, NULL, NULL, ${columns.map((column) => `g.${column}`).join(", ")}
      FROM asked a JOIN signal g ON g.lane = a.lane AND g.session_id = a.session_id AND g.ord > a.after
    ORDER BY nth, ord NULLS FIRST`,
};

interface Asked {
  readonly sessionId: string;
  readonly after: number;
}

export class ArrivalReads {
  readonly #reads: Reads;
  readonly #ask: (read: Asked) => Promise<readonly Row[]>;

  constructor(db: Database, reads: Reads) {
    this.#reads = reads;
    this.#ask = gather(db, ARRIVALS, [
      ["text", ({ sessionId }) => sessionId],
      ["int8", ({ after }) => after],
    ]);
  }

  /** @throws NotFoundError when there is no such session. */
  async read(sessionId: string, after: number): Promise<Arrivals> {
    const [state, ...signals] = await this.#ask({ sessionId, after });
    if (state === undefined) throw sessionNotFound(sessionId);
    const { at } = this.#reads;
    const body = readState(state, at);
    return {
      inbox: body.inbox,
      signals: await this.#reads.decode([sessionId], (texts) =>
        signals.map((row) => readSignal(row, at, texts)),
      ),
      session: newsOf(body),
    };
  }
}
