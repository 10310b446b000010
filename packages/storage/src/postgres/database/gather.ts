// gather: the reads of one turn of the event loop as one statement. Later reads belong to the next statement.
//
// It knows no tables. Its answers are as new as those of single reads: the statement begins after all reads
// were asked for.

import { setImmediate } from "node:timers";
import { binaryArray, type Element, type ElementType } from "./binary-arrays.ts";
import type { Database, Row, Statement } from "./database.ts";

/**
 * Reads in one statement. More are made beside each other, so that no answer is larger than a process can
 * well hold.
 */
const READS_MAX = 64;

interface Asked<Read> extends PromiseWithResolvers<readonly Row[]> {
  readonly read: Read;
}

/**
 * @param statement its first parameter numbers the reads (`int4[]`), and the others are as `columns` say.
 *   Each row has `nth`, the number of the read it belongs to, and rows come in that order.
 * @returns a function that makes one read, and answers the rows of that read alone.
 */
export function gather<Read>(
  db: Pick<Database, "run">,
  statement: Statement,
  columns: readonly (readonly [type: ElementType, value: (read: Read) => Element])[],
): (read: Read) => Promise<readonly Row[]> {
  let asked: Asked<Read>[] = [];

  const readSome = async (some: readonly Asked<Read>[]): Promise<void> => {
    const reads = some.map(({ read }) => read);
    const values = columns.map(([type, value]) =>
      binaryArray(
        type,
        reads.map((read) => value(read)),
      ),
    );
    try {
      const rows = await db.run(statement, [binaryArray("int4", [...some.keys()]), ...values]);
      const found = Map.groupBy(rows, (row) => row["nth"] as number);
      for (const [nth, { resolve }] of some.entries()) resolve(found.get(nth) ?? []);
    } catch (error) {
      for (const { reject } of some) reject(error);
    }
  };
  const readAll = (): void => {
    const all = asked;
    asked = [];
    for (let from = 0; from < all.length; from += READS_MAX) void readSome(all.slice(from, from + READS_MAX));
  };

  return (read) => {
    const answer = Promise.withResolvers<readonly Row[]>();
    if (asked.push({ read, ...answer }) === 1) setImmediate(readAll);
    return answer.promise;
  };
}
