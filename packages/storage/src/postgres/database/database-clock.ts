// databaseClock: the database's time, computed from its best answer so far and this process's monotonic
// clock.
//
//   database-clock-1. While the clock of the database runs evenly, the estimate is never ahead of it. An
//       answer's time counts as if it had been read when the answer came. The midpoint between question and
//       answer (as in NTP) would be ahead if the question was queued, as at the start of a server. The
//       process would then take leases that have not expired.
//   database-clock-2. Each answer gives a least and a most possible offset. The greatest least offset is
//       kept, so a slow answer does not replace a quick one. If the most possible offset of an answer is
//       below the kept one, the clock of the database was set back. The least offset of this answer then
//       replaces the kept one. A set-back that is shorter than the round trip may go unnoticed.

import type { Database } from "./database.ts";

/** How often the database is asked, and so how soon a change of its clock is noticed. */
const ASK_AGAIN_MS = 1_000;

/** The offset of the database's time to the monotonic clock; only compared with itself. */
export class DatabaseOffset {
  #ms: number | undefined;

  get ms(): number {
    return this.#ms ?? 0;
  }

  /** @param reported the database's time at some moment between the question and the answer. */
  measured(askedAt: number, reported: number, answeredAt: number): void {
    const [least, most] = [reported - answeredAt, reported - askedAt];
    const isBetter = this.#ms === undefined || least > this.#ms; // database-clock-2.
    if (isBetter || most < this.#ms!) this.#ms = least; // database-clock-1.
  }
}

/** The time of the database, as it tells it now. */
export async function databaseTime(db: Pick<Database, "run">): Promise<number> {
  const [row] = await db.run({
    text: "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now",
  });
  return row?.["now"] as number;
}

export async function databaseClock(db: Database): Promise<() => number> {
  const offset = new DatabaseOffset();
  let askAt = 0;
  const ask = async (): Promise<void> => {
    const askedAt = performance.now();
    askAt = Infinity; // One question at a time.
    try {
      offset.measured(askedAt, await databaseTime(db), performance.now());
    } finally {
      askAt = performance.now() + ASK_AGAIN_MS;
    }
  };
  await ask();
  return () => {
    if (performance.now() >= askAt) ask().catch(() => undefined);
    return Math.trunc(performance.now() + offset.ms);
  };
}
