import { describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import {
  CancelledError,
  exitCodeOf,
  HoldfastError,
  InvariantError,
  TaskFailedError,
  toError,
  toHoldfastError,
  UsageError,
} from "./errors.ts";
import { ERROR_TABLE } from "./error-table.ts";
import { errorFrom, recordError } from "./recorded-error.ts";

describe("X.is asks for errors of X, and not for any of ours", () => {
  const failed = new TaskFailedError(
    { taskId: "s-0", kind: "k", attempts: 1 },
    { name: "Error", message: "no" },
  );

  test("a failed task is no cancelled task, and both are errors of ours", () => {
    const cancelled = new CancelledError("session s");
    expect([CancelledError.is(failed), CancelledError.is(cancelled)]).toEqual([false, true]);
    expect([TaskFailedError.is(failed), TaskFailedError.is(cancelled)]).toEqual([true, false]);
    expect([failed, cancelled].every((error) => HoldfastError.is(error))).toBe(true);
    expect(CancelledError.is(new Error("cancelled"))).toBe(false);
  });

  test("an error of another copy of this package is of its class, too", () => {
    const OtherError = class extends Error {
      override name = "CancelledError";
      readonly code = "cancelled";
    };
    Object.defineProperty(OtherError.prototype, Symbol.for("@holdfast/core/error"), { value: true });
    expect(CancelledError.is(new OtherError())).toBe(true);
    expect(TaskFailedError.is(new OtherError())).toBe(false);
  });

  test("an error that was recorded and read again is ours, but of no class, because it lacks the fields", () => {
    const again = errorFrom(recordError(failed));
    expect([HoldfastError.is(again), TaskFailedError.is(again)]).toEqual([true, false]);
  });
});

describe("recordError accepts any thrown value, and never throws", () => {
  test("a message of 50 MB is cut, with a mark that says how long it was", ofCampaign, () => {
    const recorded = recordError(new Error("x".repeat(50_000_000)));
    expect(recorded.message.length).toBeLessThan(10_000);
    expect(recorded.message).toContain("50000000 characters");
    expect(recordError("y".repeat(50_000_000)).message.length).toBeLessThan(10_000);
    expect(recordError({ name: "n".repeat(1_000_000), message: "m" }).name.length).toBeLessThan(10_000);
  });

  test("a cyclic cause ends", () => {
    const a = new Error("a");
    const b = new Error("b", { cause: a });
    a.cause = b;
    const text = JSON.stringify(recordError(a));
    expect(text.length).toBeLessThan(1_000);
    expect(text).toContain('"cause"');
  });

  test("a chain of 10,000 causes is cut", () => {
    let error = new Error("first");
    for (let i = 0; i < 10_000; i++) error = new Error(`error ${i}`, { cause: error });
    expect(JSON.stringify(recordError(error)).length).toBeLessThan(2_000);
  });

  const weird: readonly (readonly [string, unknown])[] = [
    ["undefined", undefined],
    ["null", null],
    ["a text", "no"],
    ["a number", 42],
    ["a symbol", Symbol("s")],
    ["a BigInt", 1n],
    ["a function", () => 1],
    ["an empty object", {}],
    [
      "a cyclic object without a message",
      (() => {
        const o: Record<string, unknown> = {};
        o["o"] = o;
        return o;
      })(),
    ],
    ["a message that is a number", { message: 5 }],
    [
      "a getter that throws",
      Object.defineProperty({}, "message", {
        get: () => {
          throw new Error("getter");
        },
      }),
    ],
    [
      "a proxy that throws at everything",
      new Proxy(
        {},
        {
          get: () => {
            throw new Error("trap");
          },
        },
      ),
    ],
    ["an object whose toJSON gives nothing", { toJSON: () => undefined }],
    ["an error whose code is a number", Object.assign(new Error("m"), { code: 5 })],
    ["an error with an empty name", Object.assign(new Error("m"), { name: "" })],
  ];
  test.each(weird)("%s", (_name, thrown) => {
    const recorded = recordError(thrown);
    expect(typeof recorded.name).toBe("string");
    expect(recorded.name).not.toBe("");
    expect(typeof recorded.message).toBe("string");
    expect(JSON.parse(JSON.stringify(recorded))).toEqual(recorded);
  });

  test("name, message, code, cause and the author's line are kept", () => {
    const error = Object.assign(new TypeError("bad", { cause: new Error("root") }), { code: "E_BAD" });
    expect(recordError(error)).toEqual({
      name: "TypeError",
      message: "bad",
      code: "E_BAD",
      at: expect.stringMatching(/errors\.test\.ts:\d+:\d+$/),
      cause: { name: "Error", message: "root", at: expect.stringMatching(/errors\.test\.ts:\d+:\d+$/) },
    });
  });

  test("the details of an error of ours are recorded: place, value found, value expected, fix", () => {
    const details = { at: "here", got: "a", expected: "b", fix: "do" };
    expect(recordError(new UsageError("bad", details))).toEqual({
      name: "UsageError",
      message: "bad",
      code: "usage",
      ...details,
    });
  });

  test("a frame of our own packages is never named as the author's", () => {
    const stack = (frames: readonly string[]) =>
      Object.assign(new Error("x"), { stack: ["Error: x", ...frames].join("\n") });
    const ours = new URL("../../../runtime/src/agents/define.ts", import.meta.url).href;
    const frames = [
      `    at run (${ours}:1:2)`,
      "    at async Promise.all (index 0)",
      "    at node:internal/process:3:4",
      "    at x (/app/node_modules/zod/x.js:5:6)",
      "    at async turn (file:///app/my%20agent.ts:7:8)",
    ];
    expect(recordError(stack(frames))).toMatchObject({ at: "/app/my agent.ts:7:8" });
    expect(recordError(stack(frames.slice(0, 4)))).not.toHaveProperty("at");
  });

  test("a recorded error can be thrown again, and is recorded the same", () => {
    const recorded = recordError(
      new TypeError("bad", { cause: Object.assign(new Error("root"), { code: "E" }) }),
    );
    const error = errorFrom(recorded);
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({ name: "TypeError", message: "bad", stack: "TypeError: bad" });
    expect(recordError(error)).toEqual(recorded);
    const failed = new TaskFailedError({ taskId: "t", kind: "k", attempts: 1 }, recorded);
    expect(failed.cause).toBeInstanceOf(Error);
  });
});

describe("errors of ours", () => {
  test("a foreign error is none of ours, whatever its code", () => {
    expect(HoldfastError.is(new UsageError("no"))).toBe(true);
    for (const code of [
      ...Object.keys(ERROR_TABLE),
      "toString",
      "constructor",
      "__proto__",
      "hasOwnProperty",
      "ENOENT",
    ]) {
      expect(HoldfastError.is(Object.assign(new Error("foreign"), { code })), code).toBe(false);
    }
  });

  test("any thrown value becomes an error of ours, with the value as its cause", () => {
    const own = new UsageError("mine");
    expect(toHoldfastError(own)).toBe(own);
    const foreign = new RangeError("theirs");
    const made = toHoldfastError(foreign);
    expect(made.code).toBe("internal");
    expect(made.cause).toBe(foreign);
    expect(toHoldfastError("text").message).toBe("text");
    expect(exitCodeOf(made)).toBe(70);
  });

  const unreadable: readonly (readonly [string, unknown])[] = [
    ["an object without a prototype", Object.create(null)],
    ["a toString that throws", { toString: () => fail(), message: 5, toJSON: () => fail() }],
    ["a symbol", Symbol("s")],
    ["a proxy that throws at everything", proxy({})],
    ["a proxy of an error", proxy(new Error("in"))],
    ["an error whose message throws", Object.defineProperty(new UsageError("m"), "message", { get: fail })],
    ["an error whose stack throws", Object.defineProperty(new Error("m"), "stack", { get: fail })],
    ["an error whose code throws", Object.defineProperty(new UsageError("m"), "code", { get: fail })],
  ];
  test.each(unreadable)("K4a: an unreadable value becomes an error of ours, too: %s", (_name, thrown) => {
    expect(() => HoldfastError.is(thrown)).not.toThrow();
    for (const error of [toError(thrown), toHoldfastError(thrown)]) {
      expect(typeof `${error.name} ${error.message} ${error.stack}`).toBe("string");
    }
  });

  test("every code has an exit code that is a number from 1 to 125, and an HTTP status that is an error", () => {
    for (const [code, { exit, http }] of Object.entries(ERROR_TABLE)) {
      expect(Number.isInteger(exit) && exit >= 1 && exit <= 125, code).toBe(true);
      expect(Number.isInteger(http) && http >= 400 && http <= 599, code).toBe(true);
    }
  });

  test("the error of a failed task says its kind, the number of attempts, and the reason", () => {
    const once = new TaskFailedError(
      { taskId: "ses_x-3", kind: "fetch", attempts: 1 },
      { name: "Error", message: "404" },
    );
    expect(once.message).toBe('task "fetch" failed: 404');
    const thrice = new TaskFailedError(
      { taskId: "ses_x-3", kind: "fetch", attempts: 3 },
      { name: "Error", message: "404" },
    );
    expect(thrice.message).toBe('task "fetch" failed after 3 attempts: 404');
    expect(new InvariantError("x").fix).toContain("defect");
  });
});

function fail(): never {
  throw new Error("trap");
}

function proxy(target: object): unknown {
  const traps = ["get", "has", "getPrototypeOf", "ownKeys", "getOwnPropertyDescriptor"];
  return new Proxy(target, Object.fromEntries(traps.map((trap) => [trap, fail])));
}
