// The texts of a part. `write-statement.test.ts` and the conformance suite test what they do.

import { expect, test } from "vitest";
import { columnsOf, Parts } from "./statement-parts.ts";

interface Row {
  readonly id: string;
  readonly number: number;
  readonly kind: string | null;
}

function textOf(rows: readonly Row[], others: readonly Row[] = rows): string {
  const parts = new Parts();
  for (const [name, each] of Object.entries({ first: rows, second: others }))
    parts.add(
      name,
      "(SELECT * FROM $COLUMNS AS v WHERE $OK)",
      columnsOf<Row>(
        each,
        ["int8", ({ number }) => number],
        ["text", ({ id }) => id],
        ["text", ({ kind }) => kind, "alike"],
      ),
    );
  return parts.statement().statement.text;
}

const [A, B]: [Row, Row] = [
  { id: "a", number: 1, kind: null },
  { id: "b", number: 2, kind: null },
];

test("a text depends on neither the number of rows nor their values", () => {
  const ofTwo = textOf([A, B]);
  expect(textOf([A, B, { id: "c", number: 3, kind: null }])).toBe(ofTwo);
  expect(textOf([A, B].map((row) => ({ ...row, kind: "k" })))).toBe(ofTwo);
  expect(textOf([A, B, B])).toBe(ofTwo);
  expect(textOf([A])).toBe(textOf([B]));
});

test("columns that differ where they are mostly alike are lists as well", () => {
  expect(textOf([A, B]).match(/u\.c\d/g)).toEqual(["u.c1", "u.c1"]);
  expect(textOf([A, { ...B, kind: "k" }], [A, B]).match(/u\.c\d/g)).toEqual(["u.c1", "u.c2", "u.c1"]);
});

test("a part without texts takes its rows from its first column", () => {
  const parts = new Parts();
  parts.add("gone", "(SELECT * FROM $COLUMNS AS v WHERE $OK)", columnsOf([1, 2], ["int8", (seq) => seq]));
  expect(parts.statement().statement.text).toContain("(SELECT u.c1 FROM unnest($1::int8[])");
});
