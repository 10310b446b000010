import { expect, test } from "vitest";
import { foldRows, jsonRows } from "./json-rows.ts";

const changed = (left: unknown, right: unknown) =>
  jsonRows(left, right).rows.flatMap((row) => (row.isChanged ? [[row.left, row.right]] : []));

test("lines of the same place stand beside each other, and only the different ones are changed (json-rows-1)", () => {
  const left = { n: 1, same: { deep: [1, 2] }, gone: true };
  const right = { n: 2, same: { deep: [1, 2, { a: "b" }] }, more: null };
  expect(changed(left, right)).toEqual([
    ['  "n": 1', '  "n": 2'],
    [undefined, "      {"],
    [undefined, '        "a": "b"'],
    [undefined, "      }"],
    ['  "gone": true', undefined],
    [undefined, '  "more": null'],
  ]);
  expect(jsonRows(left, left).changes).toBe(0);
});

test("a side without a value is empty, and an object beside a number is another value", () => {
  expect(jsonRows(undefined, [1]).rows.map((row) => row.left)).toEqual([undefined, undefined, undefined]);
  expect(changed({ a: 1 }, { a: {} })).toEqual([
    ['  "a": 1', '  "a": {'],
    [undefined, "  }"],
  ]);
});

test("large and deep values have few and short lines (json-rows-2)", () => {
  const long = jsonRows(undefined, "x".repeat(1_000_000));
  expect(long.rows[0]!.right!.length).toBeLessThan(500);
  const wide = jsonRows({}, Object.fromEntries(Array.from({ length: 9_000 }, (_, n) => [`f${n}`, n])));
  expect([wide.rows.length, wide.isCut]).toEqual([4_000, true]);
  let deep: unknown = 1;
  for (let n = 0; n < 2_000; n++) deep = [deep];
  expect(jsonRows(deep, [deep]).rows.length).toBeLessThan(300);
});

test("long runs without a change are folded to their number of lines", () => {
  const fields = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`f${n}`, n]));
  const { rows } = jsonRows(fields, { ...fields, f10: "new" });
  const folded = foldRows(rows);
  expect(folded.map((row) => (typeof row === "number" ? row : row.right?.trim()))).toEqual([
    9,
    '"f8": 8',
    '"f9": 9',
    '"f10": "new"',
    '"f11": 11',
    '"f12": 12',
    8,
  ]);
});
