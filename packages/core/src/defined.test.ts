import { expect, test } from "vitest";
import { defined } from "./defined.ts";

test("fields without a value are left out, and every other value stays in its order", () => {
  const fields = { a: undefined, b: null, c: 0, d: "", e: false, f: [undefined] };
  expect(Object.entries(defined(fields))).toEqual(Object.entries(fields).slice(1));
});

test("a spread field without a value leaves the field before it", () => {
  const given: string | undefined = undefined;
  expect({ a: "before", ...defined({ a: given }) }).toEqual({ a: "before" });
});
