// The spans of values in a JSON text are exact, wherever the values are. Values are copied by them byte for
// byte.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findPayloadProblem } from "@holdfast/core";
import { elementsOf, membersOf, trimmed } from "./json-spans.ts";

const SPACE = fc.stringMatching(/^[ \t\r\n]{0,3}$/);
const KEY = fc.string({ unit: "binary" });
const VALUE = fc
  .tuple(fc.jsonValue({ stringUnit: "binary" }), fc.constantFrom(undefined, 1, "\t"))
  .map(([value, indent]) => JSON.stringify(value, undefined, indent));

const wholeOf = (text: string) => ({ start: 0, end: text.length });

describe("the places of parts", () => {
  it("json-spans-1: a span of another value is an error, whatever follows it", () => {
    const text = '{"a":0,"a":{}}';
    const zero = { start: 5, end: 6 };
    expect(() => membersOf(text, zero)).toThrow("not a JSON text");
    expect(() => elementsOf(text, zero)).toThrow("not a JSON text");
    expect(() => membersOf('{"a"', { start: 0, end: 4 })).toThrow("not a JSON text");
    expect(() => elementsOf("[1", { start: 0, end: 2 })).toThrow("not a JSON text");
  });

  it("the spans of an object's members are found, with any space and text around them", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(KEY, VALUE, SPACE)), SPACE, (members, space) => {
        const written = members.map(
          ([key, value, around]) => `${around}${JSON.stringify(key)}${around}:${around}${value}${around}`,
        );
        const text = `${space}{${space}${written.join(",")}${space}}${space}`;
        const found = membersOf(text, trimmed(text)).map(([key, { start, end }]) => [
          key,
          text.slice(start, end),
        ]);
        expect(found).toEqual(members.map(([key, value]) => [key, value]));
      }),
    );
  });

  it("the spans of a list's elements are found", () => {
    fc.assert(
      fc.property(fc.array(VALUE), SPACE, (values, space) => {
        const text = `[${space}${values.join(`${space},${space}`)}${space}]`;
        const found = elementsOf(text, trimmed(text)).map(({ start, end }) => text.slice(start, end));
        expect(found).toEqual(values);
      }),
    );
  });

  it("spans are found in very long texts and runs of backslashes", () => {
    const long = JSON.stringify('\\"'.repeat(1_000_000));
    expect(membersOf(`{"a":${long}}`, { start: 0, end: 0 })).toEqual([
      ["a", { start: 5, end: 5 + long.length }],
    ]);
  });
});

describe("a user's value", () => {
  const problemIn = (text: string) => findPayloadProblem(text, wholeOf(text))?.code;

  it("a user's value may be nested 64 levels deep, and no deeper", () => {
    expect(problemIn("[".repeat(64) + "]".repeat(64))).toBeUndefined();
    expect(problemIn("[".repeat(65) + "]".repeat(65))).toBe("too_deep");
    expect(problemIn("[".repeat(500_000))).toBe("too_deep");
    expect(problemIn(`["${"[".repeat(100)}"]`)).toBeUndefined();
  });

  it.each([
    ["9007199254740993", "not_safe_integer"],
    ["-9007199254740993", "not_safe_integer"],
    ["123456789012345678901234567890", "not_safe_integer"],
    ["9007199254740991", undefined],
    ['"9007199254740993"', undefined],
    ["0.1234567890123456789", undefined],
    ["1e400", "not_finite"],
    ["9".repeat(400) + ".0", "not_finite"],
  ])("with %s: %s", (literal, expected) => {
    expect(problemIn(`{"a":[1,${literal}]}`)).toBe(expected);
  });

  it("that JavaScript wrote is never taken for one that would change", () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (number) => {
        expect(problemIn(JSON.stringify(number))).toBeUndefined();
      }),
    );
  });
});
