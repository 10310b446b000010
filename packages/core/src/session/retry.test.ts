import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { mayRetryLost, RETRY_DEFAULTS, retryDelayMs } from "./retry.ts";

const failure = { error: { name: "Error", message: "no" }, retryable: true } as const;

describe("the delay before the next attempt", () => {
  test("the delay lies between half and all of the back-off, which doubles up to its maximum", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.integer({ min: 1, max: 60 }), fc.constant(5_000)),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        fc.constantFrom(RETRY_DEFAULTS.initialDelayMs, 0),
        (attempt, random, initialDelayMs) => {
          const grown = initialDelayMs === 0 ? 0 : initialDelayMs * 2 ** (attempt - 1);
          const full = Math.min(RETRY_DEFAULTS.maxDelayMs, grown);
          const delay = retryDelayMs({ maxAttempts: Infinity, initialDelayMs }, attempt, failure, random)!;
          expect(delay).toBeGreaterThanOrEqual(full / 2);
          expect(delay).toBeLessThanOrEqual(full);
        },
      ),
    );
  });

  test("no delay follows the last attempt, and one follows each attempt before", () => {
    expect(retryDelayMs(undefined, 2, failure, 0)).toBe(200);
    expect(retryDelayMs(undefined, 3, failure, 0)).toBeUndefined();
    expect(retryDelayMs({ maxAttempts: 1 }, 1, failure, 0)).toBeUndefined();
    expect(retryDelayMs({ maxAttempts: 2 }, 1, failure, 0)).toBe(100);
  });

  test("no delay follows a failure that another attempt cannot help", () => {
    expect(retryDelayMs(undefined, 1, { ...failure, retryable: false }, 0)).toBeUndefined();
    const policy = { nonRetryable: ["BadKey", "E_DENIED"] };
    expect(
      retryDelayMs(policy, 1, { ...failure, error: { name: "BadKey", message: "" } }, 0),
    ).toBeUndefined();
    expect(
      retryDelayMs(policy, 1, { ...failure, error: { name: "Error", message: "", code: "E_DENIED" } }, 0),
    ).toBeUndefined();
    expect(
      retryDelayMs(policy, 1, { ...failure, error: { name: "Error", message: "BadKey" } }, 0),
    ).toBeDefined();
  });

  test("the delay is at least what the failure asks for", () => {
    expect(retryDelayMs(undefined, 1, { ...failure, retryAfterMs: 9_000 }, 0)).toBe(9_000);
    expect(retryDelayMs(undefined, 1, { ...failure, retryAfterMs: 1 }, 0)).toBe(100);
    expect(retryDelayMs(undefined, 1, { ...failure, retryAfterMs: 1e300 }, 0)).toBe(86_400_000);
  });

  test("a field given as undefined is a field not given", () => {
    const policy = {
      maxAttempts: undefined,
      initialDelayMs: undefined,
      factor: undefined,
      maxDelayMs: undefined,
    } as object;
    expect(retryDelayMs(policy, 1, failure, 0)).toBe(100);
    expect(retryDelayMs(policy, 3, failure, 0)).toBeUndefined();
  });

  test("the delay is a number of milliseconds, however high the attempt", () => {
    expect(retryDelayMs({ maxAttempts: Infinity }, 5_000, failure, 0.5)).toBe(22_500);
  });
});

describe("an attempt that died with its process", () => {
  test("a lost attempt counts against a policy that its author wrote, so maxAttempts: 1 is at most once", () => {
    expect(mayRetryLost({ retry: { maxAttempts: 1 }, effect: undefined }, 1)).toBe(false);
    expect(mayRetryLost({ retry: { maxAttempts: 2 }, effect: undefined }, 1)).toBe(true);
    expect(mayRetryLost({ retry: { maxAttempts: 2 }, effect: undefined }, 2)).toBe(false);
  });

  test("a lost attempt does not count without such a policy", () => {
    expect(mayRetryLost({ retry: undefined, effect: undefined }, 1_000)).toBe(true);
    expect(mayRetryLost({ retry: { initialDelayMs: 5 }, effect: undefined }, 1_000)).toBe(true);
  });

  test.each(["read", "repeatable", "keyed"] as const)(
    "a lost attempt of a %s effect is run again",
    (effect) => {
      expect(mayRetryLost({ retry: undefined, effect }, 1)).toBe(true);
    },
  );

  test("a lost attempt of an effect that happens once is never run again, whatever the policy allows", () => {
    expect(mayRetryLost({ retry: { maxAttempts: 10 }, effect: "once" }, 1)).toBe(false);
  });
});
