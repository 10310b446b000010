import { expect, test } from "vitest";
import { OutputLines } from "./output-lines.ts";

test("lines are put together from pieces, and what follows the last line feed is kept", () => {
  const lines = new OutputLines(10);
  expect(lines.push("ab")).toEqual([]);
  expect(lines.push("c\n\nde\u2028f\ng")).toEqual(["abc", "", "de\u2028f"]);
  expect(lines.rest).toBe("g");
});

test("a line of the limit is kept, and a longer one ends the output", () => {
  const lines = new OutputLines(3);
  expect(lines.push("abc\n")).toEqual(["abc"]);
  expect(lines.isTooLong).toBe(false);
  expect(lines.push("ok\nab")).toEqual(["ok"]);
  expect(lines.push("cd\nnext\n")).toEqual([]);
  expect(lines.isTooLong).toBe(true);
  expect(lines.push("more\n")).toEqual([]);
  expect(lines.rest).toBe("");
});
