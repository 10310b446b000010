// Many reads of one turn of the event loop, over a database that only counts them.

import { expect, test } from "vitest";
import type { Row, Statement } from "./database.ts";
import { gather } from "./gather.ts";

const STATEMENT: Statement = { name: "asked", text: "SELECT" };

/** @param answer given how many reads there are. */
function asking(answer: (count: number) => Promise<Row[]>) {
  const statements: number[] = [];
  const run = (_: Statement, [, numbers]: readonly unknown[] = []): Promise<Row[]> => {
    const count = (numbers as Buffer).readInt32BE(12); // How many elements the array has.
    statements.push(count);
    return answer(count);
  };
  return { statements, ask: gather<number>({ run }, STATEMENT, [["int4", (number) => number]]) };
}

const rowOf = (nth: number): Row => ({ nth, said: `row of ${nth}` });

test("the reads of one turn are one statement, and later reads are another", async () => {
  const { statements, ask } = asking(async () => [rowOf(0), rowOf(0), rowOf(2)]);
  const answers = await Promise.all([ask(7), ask(8), ask(9)]);
  expect(answers).toEqual([[rowOf(0), rowOf(0)], [], [rowOf(2)]]);
  await ask(7);
  expect(statements).toEqual([3, 1]);
});

test("very many reads are several statements beside each other", async () => {
  const { statements, ask } = asking(async (count) => Array.from({ length: count }, (_, nth) => rowOf(nth)));
  const answers = await Promise.all(Array.from({ length: 150 }, (_, number) => ask(number)));
  expect(statements).toEqual([64, 64, 22]);
  expect(answers.map(([row]) => row?.["nth"])).toEqual(answers.map((_, i) => i % 64));
});

test("a statement that fails rejects all of its reads, and no later read", async () => {
  let isAway = true;
  const { ask } = asking(async () => {
    if (isAway) throw new Error("away");
    return [];
  });
  expect(await Promise.allSettled([ask(1), ask(2)])).toMatchObject([
    { status: "rejected" },
    { status: "rejected" },
  ]);
  isAway = false;
  expect(await ask(3)).toEqual([]);
});
