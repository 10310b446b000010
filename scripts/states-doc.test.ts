// docs/states.md maps every status and every pause reason that a session can have.

import { readFileSync } from "node:fs";
import { SESSION_STATUSES } from "@holdfast/core";
import { expect, test } from "vitest";

const read = (path: string): string => readFileSync(new URL(`../${path}`, import.meta.url), "utf8");
const page = read("docs/states.md");
const rows = page.split("\n").filter((line) => line.startsWith("| `"));
const named = rows.map((row) => /^\| `(\w+)`/.exec(row)![1]!);

test("the page has one row for each status and for each pause reason, and no other row", () => {
  const union = /type PauseReason =([^;]*);/.exec(read("packages/core/src/session/session.ts"))![1]!;
  const reasons = [...union.matchAll(/"(\w+)"/g)].map(([, reason]) => reason!);
  expect(reasons.length).toBeGreaterThan(5);
  expect(named).toEqual([...SESSION_STATUSES.toSorted(inOrderOf(named)), ...reasons]);
});

test("every row has a cell for each system of its table", () => {
  const columns = rows.map((row) => row.split("|").length);
  expect(new Set(columns.slice(0, SESSION_STATUSES.length))).toEqual(new Set([9]));
  expect(new Set(columns.slice(SESSION_STATUSES.length))).toEqual(new Set([6]));
  for (const row of rows)
    expect(
      row
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim()),
    ).not.toContain("");
});

function inOrderOf(names: readonly string[]): (a: string, b: string) => number {
  return (a, b) => names.indexOf(a) - names.indexOf(b);
}
