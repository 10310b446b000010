import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { StoredSignal } from "../session/changes.ts";
import { PendingSignals, signalPattern } from "./pending-signals.ts";

describe("pending signals", () => {
  test("signals are taken first in, first out, per name, each once, in any order of sends and takes", () => {
    const names = ["a", "b", "c.d"];
    const step = fc.record({ name: fc.constantFrom(...names), send: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const pending = new PendingSignals({ onFirst: () => {} });
        const model = new Map<string, StoredSignal[]>(names.map((name) => [name, []]));
        steps.forEach(({ name, send }, order) => {
          if (send) {
            pending.add(signal(name, order));
            model.get(name)!.push(signal(name, order));
          } else {
            expect(pending.take(name)).toEqual(model.get(name)!.shift());
          }
          for (const each of names) expect(pending.has(each)).toBe(model.get(each)!.length > 0);
        });
        const left = [...model.values()].flat().sort((a, b) => a.order - b.order);
        expect(pending.all()).toEqual(left);
        expect(pending.drain("**")).toEqual(left);
        expect(pending.all()).toEqual([]);
      }),
    );
  });

  test("signals are drained in order of arrival, over all names that match, and the others stay", () => {
    const pending = new PendingSignals({ onFirst: () => {} });
    for (const [order, name] of ["ci.b", "stop", "ci.a", "ci.b", "ci.a.x"].entries())
      pending.add(signal(name, order));
    expect(pending.drain("ci.*").map(({ order }) => order)).toEqual([0, 2, 3]);
    expect(pending.all().map(({ name }) => name)).toEqual(["stop", "ci.a.x"]);
    expect(pending.drain("ci.*")).toEqual([]);
  });
});

describe("patterns", () => {
  test.each([
    ["ci.*", "ci.failed", true],
    ["ci.*", "ci.", true],
    ["ci.*", "ci", false],
    ["ci.*", "ci.job.failed", false],
    ["ci.**", "ci.job.failed", true],
    ["ci.**", "cx.job", false],
    ["*.failed", "ci.failed", true],
    ["*.failed", "a.ci.failed", false],
    ["**.failed", "a.ci.failed", true],
    ["*", "ci", true],
    ["*", "ci.x", false],
    ["**", "", true],
    ["a+b", "a+b", true],
    ["a+b", "aab", false],
    ["a.b*", "a.bc", true],
    ["a.b*", "axbc", false],
    ["(x|y)*", "(x|y)z", true],
    ["(x|y)*", "x", false],
    ["[a]*", "a", false],
    ["**", "two\nlines", true],
  ])("%s on %j is %s", (pattern, name, expected) => expect(signalPattern(pattern)(name)).toBe(expected));

  test("a name without stars matches itself only", () => {
    fc.assert(
      fc.property(
        fc.string().filter((text) => !text.includes("*")),
        fc.string(),
        (pattern, name) => {
          expect(signalPattern(pattern)(pattern)).toBe(true);
          expect(signalPattern(pattern)(name)).toBe(pattern === name);
        },
      ),
    );
  });

  test("a pattern of many stars is matched at once", () => {
    const matches = signalPattern("*a".repeat(50) + "b");
    expect(matches("a".repeat(200))).toBe(false);
  }, 2_000);
});

function signal(name: string, order: number): StoredSignal {
  return { signalId: `sig_${order}`, name, payload: String(order), order, sentAt: 0 };
}
