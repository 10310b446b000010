// The properties of an error that an agent can read after it was recorded.

import { describe, expect, test } from "vitest";
import { HoldfastError } from "./errors.ts";
import { errorFrom, recordError } from "./recorded-error.ts";

/** The error that an agent gets, in this process and after a restart. */
function again(thrown: unknown, redact?: (text: string) => string): Record<string, unknown> & Error {
  const recorded = recordError(thrown, redact);
  expect(JSON.parse(JSON.stringify(recorded))).toEqual(recorded);
  expect(recordError(errorFrom(recorded))).toEqual(recorded);
  return errorFrom(recorded) as never;
}

describe("an error keeps what an agent decides by", () => {
  class ApiError extends Error {
    override name = "ApiError";
    readonly status: number;
    constructor(status: number, options?: ErrorOptions) {
      super("slow down", options);
      this.status = status;
    }
  }

  test("status, code, retryAfter and other plain properties are kept, also in causes", () => {
    const limited = Object.assign(new ApiError(429), {
      code: 14,
      retryAfter: "3",
      isRetryable: true,
      big: 7n,
    });
    expect(again(limited)).toMatchObject({
      status: 429,
      code: 14,
      retryAfter: "3",
      isRetryable: true,
      big: "7",
    });
    const chain = new Error("top", { cause: new Error("middle", { cause: new ApiError(500) }) });
    expect(again(chain)).toMatchObject({ cause: { cause: { name: "ApiError", status: 500 } } });
    expect(again({ status: 404, reason: "missing" })).toMatchObject({ status: 404, reason: "missing" });
    class Getter extends Error {
      get status(): number {
        return 503;
      }
    }
    expect(again(new Getter("away"))).toMatchObject({ status: 503 });
  });

  test("the errors of an AggregateError are errors again, and issues and other lists are data", () => {
    const all = again(new AggregateError([new ApiError(400), new TypeError("b"), "text"], "all failed"));
    expect(all["errors"]).toMatchObject([
      { status: 400 },
      { name: "TypeError", message: "b" },
      { message: "text" },
    ]);
    expect((all["errors"] as unknown[])[0]).toBeInstanceOf(Error);
    const issues = [{ path: ["a", 0], message: "too small", input: () => 1 }];
    const invalid = Object.defineProperty(new Error("invalid"), "issues", { value: issues });
    expect(again(invalid)["issues"]).toEqual([{ path: ["a", 0], message: "too small" }]);
    expect(
      again(Object.assign(new Error("graph"), { errors: [{ message: "no", path: ["x"] }] }))["errors"],
    ).toEqual([{ message: "no", path: ["x"] }]);
  });

  test("a foreign code of our text stays readable, and the error is none of ours", () => {
    const foreign = Object.assign(new Error("later"), { code: "unavailable" });
    expect(recordError(foreign)).toMatchObject({ data: { code: "unavailable" } });
    expect(recordError(foreign)).not.toHaveProperty("code");
    expect(again(foreign)).toMatchObject({ code: "unavailable" });
    expect(HoldfastError.is(again(foreign))).toBe(false);
    expect(HoldfastError.is(again(new HoldfastError("unavailable", "ours")))).toBe(true);
  });
});

describe("an error keeps no more than that", () => {
  test("requests, answers, settings and headers are never kept, at any depth", () => {
    const secret = { authorization: "Bearer abc" };
    const fields = { request: "r abc", response: "abc", config: "abc", headers: "abc", options: "abc" };
    const error = Object.assign(new Error("x"), fields, {
      issues: [{ headers: secret, config: secret, ok: 1 }],
    });
    expect(again(error)["issues"]).toEqual([{ ok: 1 }]);
    for (const thrown of [error, { ...fields, status: 1 }, { inner: fields }])
      expect(JSON.stringify(recordError(thrown))).not.toContain("abc");
  });

  test("each text and each number is redacted, also as a name of a property", () => {
    const redact = (text: string): string => text.replaceAll("12345678", "[secret]");
    const issues = [{ "key 12345678": "value 12345678", n: 12345678 }];
    const error = Object.assign(new Error("x"), { status: 12345678, detail: "a 12345678", issues });
    const deep = new AggregateError([error], "y", { cause: error });
    const text = JSON.stringify(recordError(deep, redact));
    expect(text).not.toContain("12345678");
    expect(text.match(/\[secret\]/g)).toHaveLength(10);
  });

  test("all of it together has at most 8 KiB, and what comes first is kept first", () => {
    const issues = Array.from({ length: 1_000 }, (_, i) => ({ message: `issue ${i}`, path: ["a"] }));
    const wide = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`p${i}`, i]));
    const make = (): Error =>
      Object.assign(new Error("x"), wide, { issues, status: 400, text: "t".repeat(9_000) });
    const error = Object.assign(make(), { cause: make(), errors: Array.from({ length: 20 }, make) });
    const recorded = recordError(error);
    expect(JSON.stringify(recorded).length).toBeLessThan(10_000);
    expect(recorded.errors?.[0]?.data).toMatchObject({ status: 400 });
    const one = again(make());
    expect(one["status"]).toBe(400);
    expect((one["issues"] as unknown[]).length).toBeGreaterThan(100);
    expect(JSON.stringify(recordError(make())).length).toBeLessThan(8_192 + 400);
  });
});

describe("a hostile value neither throws nor hangs", () => {
  const trap = (): never => {
    throw new Error("trap");
  };
  const cycle: Record<string, unknown> = { status: 1 };
  cycle["self"] = Array.from({ length: 200 }, () => cycle);
  const hostile: readonly (readonly [string, unknown, object])[] = [
    [
      "a getter of a plain property",
      Object.defineProperty(error(), "x", { get: trap, enumerable: true }),
      { y: 1 },
    ],
    ["a getter of status", Object.defineProperty(error(), "status", { get: trap }), { y: 1 }],
    ["a cyclic list of issues", Object.assign(error(), { issues: cycle }), { issues: { status: 1 } }],
    [
      "a list without end",
      Object.assign(error(), { issues: Object.assign([], { length: 4_000_000_000 }) }),
      { y: 1 },
    ],
    ["errors that hold themselves", holdingItself(), { y: 1 }],
    ["a proxy as issues", Object.assign(error(), { issues: new Proxy([1], { get: trap }) }), { y: 1 }],
    [
      "an endless getter below issues",
      Object.assign(error(), { issues: [Object.defineProperty({}, "a", { get: trap, enumerable: true })] }),
      { y: 1 },
    ],
    [
      "names of methods",
      Object.assign(error(), { toString: "x", constructor: "y", ["__proto__"]: 1 }),
      { y: 1 },
    ],
    ["a text of 50 MB", Object.assign(error(), { issues: "x".repeat(50_000_000) }), { y: 1 }],
    ["a cyclic object", cycle, { status: 1 }],
  ];
  test.each(hostile)("%s", (_name, thrown, expected) => {
    const recorded = recordError(thrown);
    expect(recorded.data).toMatchObject(expected);
    expect(JSON.stringify(recorded).length).toBeLessThan(20_000);
    const restored = errorFrom(recorded);
    expect(`${restored}`).toContain(recorded.message);
    expect(restored).toBeInstanceOf(Error);
  });

  function error(): Error {
    return Object.assign(new Error("x"), { y: 1 });
  }

  function holdingItself(): Error {
    const itself: AggregateError & { y?: number } = new AggregateError([], "itself");
    itself.y = 1;
    itself.errors.push(itself, itself, itself);
    itself.cause = itself;
    return itself;
  }
});
