// `encodeJson`, `decodeJson`: an accepted value comes back unchanged, and a value that would change is
// refused with its place.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { UsageError } from "../errors/errors.ts";
import { decodeJson, encodeJson } from "./json.ts";

/** A value, the JSON pointer of its fault, and a word of the reason. */
const cyclic: Record<string, unknown> = { name: "loop" };
cyclic["self"] = cyclic;
const cyclicList: unknown[] = [1];
cyclicList.push({ back: cyclicList });

const REFUSED: readonly (readonly [string, unknown, string, RegExp])[] = [
  ["NaN", { a: [1, Number.NaN] }, "/a/1", /NaN/],
  ["Infinity", Infinity, "", /Infinity/],
  ["minus Infinity", { "a/b": -Infinity }, "/a~1b", /-Infinity/],
  ["undefined in a list", [1, undefined], "/1", /undefined/],
  // oxlint-disable-next-line no-sparse-arrays -- the hole is the case
  ["a hole in a list", [1, , 3], "/1", /undefined/],
  ["a BigInt", { n: 10n }, "/n", /BigInt/],
  ["a function", { run: () => 1 }, "/run", /function/],
  ["a symbol", { s: Symbol("s") }, "/s", /symbol/],
  ["a Map", { m: new Map([[1, 2]]) }, "/m", /Map/],
  ["a Set", new Set([1]), "", /Set/],
  ["a WeakMap", { w: new WeakMap() }, "/w", /WeakMap/],
  ["a RegExp", { r: /x/ }, "/r", /RegExp/],
  ["an Error", { e: new TypeError("no") }, "/e", /Error/],
  ["a promise", { p: Promise.resolve(1) }, "/p", /promise/],
  [
    "a thenable of a class",
    {
      p: new (class Later {
        then() {}
      })(),
    },
    "/p",
    /promise/,
  ],
  ["bytes", { b: new Uint8Array(2) }, "/b", /Uint8Array/],
  ["an ArrayBuffer", new ArrayBuffer(2), "", /ArrayBuffer/],
  ["a boxed number", [Object(1)], "/0", /Number/],
  ["a boxed string", [Object("s")], "/0", /String/],
  ["a cycle", cyclic, "/self", /itself/],
  ["a cycle through a list", { list: cyclicList }, "/list/1/back", /itself/],
  ["NaN from toJSON", { t: { toJSON: () => Number.NaN } }, "/t", /NaN/],
  [
    "NaN from toJSON that looks at its key",
    { t: [{ toJSON: (at: string) => (at === "0" ? Number.NaN : 1) }] },
    "/t/0",
    /NaN/,
  ],
  ["nothing from toJSON in a list", [{ toJSON: () => undefined }], "/0", /toJSON/],
  ["a date", { at: new Date(0) }, "/at", /Date would come back as a text/],
  ["a date that is none", { at: new Date(Number.NaN) }, "/at", /date/i],
  ["a key with ~ and /", { "~": { "/": Number.NaN } }, "/~0/~1", /NaN/],
];

describe("values that JSON would change are refused, with their place", () => {
  test.each(REFUSED)("%s", (_name, value, pointer, reason) => {
    const error = refusal(value);
    expect(error.code).toBe("not_json");
    expect(error.message).toMatch(reason);
    expect(error.at).toBe(`the value, at "${pointer}"`);
    expect(error.fix).toBeTruthy();
  });

  test("a getter that throws is refused, and its error does not escape", () => {
    const value = {
      ok: 1,
      bad: Object.defineProperty({}, "x", { enumerable: true, get: () => explode("boom") }),
    };
    const error = refusal(value);
    expect(error.message).toContain("reading it threw");
    expect(error.at).toBe('the value, at "/bad"');
  });

  test("a toJSON that throws is refused", () => {
    expect(refusal({ t: { toJSON: () => explode("boom") } }).message).toContain("reading it threw");
  });

  test("a proxy that answers nothing is refused", () => {
    expect(refusal(new Proxy({}, { ownKeys: () => explode("no keys") })).code).toBe("not_json");
  });
});

describe("depth", () => {
  test("64 levels are kept, and 65 are not", () => {
    const deepest = nested(64);
    expect(decodeJson(encodeJson(deepest, "the value"))).toEqual(deepest);
    expect(refusal(nested(65)).message).toContain("64 levels");
    expect(refusal(nested(65, true)).message).toContain("64 levels");
  });

  test("10,000 levels are refused without running out of stack", () => {
    expect(refusal(nested(10_000)).code).toBe("not_json");
    expect(refusal(nested(10_000, true)).code).toBe("not_json");
  });

  test("the same object at several places is no cycle", () => {
    const shared = { a: 1 };
    expect(decodeJson(encodeJson({ x: shared, y: [shared, shared] }, "the value"))).toEqual({
      x: { a: 1 },
      y: [{ a: 1 }, { a: 1 }],
    });
  });
});

describe("accepted values come back", () => {
  test("any JSON value comes back, whatever its keys and texts", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 12, stringUnit: "binary" }), (value) => {
        const text = encodeJson(value, "the value")!;
        for (const raw of ["\n", "\r", "\u0000"]) expect(text).not.toContain(raw);
        expect(encodeJson(decodeJson(text), "the value")).toBe(text);
        expect(decodeJson(text)).toEqual(withoutMinusZero(value));
      }),
      { numRuns: 500 },
    );
  });

  test("NUL and lone surrogates come back, as keys and as values", () => {
    const value = { "\u0000": "a\u0000b", "\ud800": ["\udfff", "\ud800x", "😀"] };
    const text = encodeJson(value, "the value")!;
    expect(decodeJson(text)).toEqual(value);
    expect(text).not.toContain("\u0000");
    expect(text.isWellFormed()).toBe(true); // No storage and no UTF-8 on the way can therefore damage it.
  });

  test("a key named __proto__ stays a key and pollutes nothing", () => {
    const value: unknown = JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":1}}');
    const back = decodeJson(encodeJson(value, "the value")) as Record<string, unknown>;
    expect(Object.hasOwn(back, "__proto__")).toBe(true);
    expect(Object.getPrototypeOf(back)).toBe(Object.prototype);
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });

  test("undefined stays undefined at the top, and is left out of objects", () => {
    expect(encodeJson(undefined, "the value")).toBeUndefined();
    expect(decodeJson(undefined)).toBeUndefined();
    expect(encodeJson({ a: undefined, b: 1 }, "the value")).toBe('{"b":1}');
  });

  test("an object comes back as its toJSON, a class instance as its own properties, an object without prototype as itself", () => {
    class Point {
      x = 1;
    }
    const bare = Object.assign(Object.create(null) as object, { a: 1 });
    const value = { at: new URL("file:///a"), point: new Point(), bare };
    expect(encodeJson(value, "the value")).toBe('{"at":"file:///a","point":{"x":1},"bare":{"a":1}}');
  });
});

function refusal(value: unknown): UsageError {
  try {
    encodeJson(value, "the value");
  } catch (error) {
    expect(error).toBeInstanceOf(UsageError);
    return error as UsageError;
  }
  throw new Error("it was not refused");
}

function nested(levels: number, asObject = false): unknown {
  let value: unknown = asObject ? {} : [];
  for (let i = 1; i < levels; i++) value = asObject ? { a: value } : [value];
  return value;
}

function explode(message: string): never {
  throw new Error(message);
}

/** JSON has no minus zero, the one number that comes back as another. */
function withoutMinusZero(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value)) as unknown;
}
