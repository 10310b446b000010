// Questions that are asked in one turn of the event loop, as one statement. Who asks afterwards is answered by the next.
//
// It knows no tables. What it answers is as new as if each had been asked by itself: the statement begins after all of them.

import { binaryArray, type Element, type ElementType } from "./binary-arrays.ts";
import type { Database, Row, Statement } from "./database.ts";

/** Of one statement. More are asked beside each other, so that no answer is larger than a process can well hold. */
const QUESTIONS_MAX = 64;

/**
 * @param statement its first parameter numbers the questions (`int4[]`), the others are as `columns` say; rows have `nth`, the
 *   number of the question they answer, and come in order.
 * @returns how to ask: what it answers are the rows of that question alone.
 */
export function gather<Question>(
  db: Pick<Database, "run">,
  statement: Statement,
  columns: readonly (readonly [type: ElementType, value: (question: Question) => Element])[],
): (question: Question) => Promise<readonly Row[]> {
  let asked: Asked<Question>[] = [];

  const ask = async (some: readonly Asked<Question>[]): Promise<void> => {
    const values = columns.map(([type, value]) =>
      binaryArray(
        type,
        some.map(({ question }) => value(question)),
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
  const askAll = (): void => {
    const all = asked;
    asked = [];
    for (let from = 0; from < all.length; from += QUESTIONS_MAX)
      void ask(all.slice(from, from + QUESTIONS_MAX));
  };

  return (question) => {
    const answer = Promise.withResolvers<readonly Row[]>();
    if (asked.push({ question, ...answer }) === 1) setImmediate(askAll);
    return answer.promise;
  };
}

interface Asked<Question> extends PromiseWithResolvers<readonly Row[]> {
  readonly question: Question;
}
