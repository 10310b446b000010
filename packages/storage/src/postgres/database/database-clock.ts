// The database's time, worked out from this process's monotonic clock since the database was asked.
//
//   database-clock-1. It is not ahead of the database: what an answer tells was so at some moment before it came, and
//       it counts as if that had been just now. Who takes the middle between question and answer is ahead by half of
//       what the question had to wait, as for a server that has just been started, and takes leases while they last.
//   database-clock-2. It is as little behind as any answer shows. One that took long does not take back what a quick
//       one told; one whose clock was set back is followed, as even its soonest answer is behind.

import type { Database } from "./database.ts";

/** A database's clock that was set is noticed after so long. */
const ASK_AGAIN_MS = 1_000;

/** What the database's time is ahead of the monotonic clock; only compared with itself. */
export class DatabaseOffset {
  #ms: number | undefined;

  get ms(): number {
    return this.#ms ?? 0;
  }

  /** @param told the database's time at some moment between the question and the answer. */
  heard(askedAt: number, told: number, answeredAt: number): void {
    const [least, most] = [told - answeredAt, told - askedAt];
    const isBetter = this.#ms === undefined || least > this.#ms; // database-clock-2.
    if (isBetter || most < this.#ms!) this.#ms = least; // database-clock-1.
  }
}

export async function databaseClock(db: Database): Promise<() => number> {
  const offset = new DatabaseOffset();
  let askAt = 0;
  const ask = async (): Promise<void> => {
    const askedAt = performance.now();
    askAt = Infinity; // One question at a time.
    try {
      const [row] = await db.run({
        text: "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now",
      });
      offset.heard(askedAt, row?.["now"] as number, performance.now());
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
