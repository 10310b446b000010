// The two ways of asking whether a session waits for what has arrived, held against each other.

import fc from "fast-check";
import { expect, test } from "vitest";
import { PendingNames } from "./pending-names.ts";
import { isAnsweredBy, type Wait } from "./session.ts";

const NAMES = ["a", "b", "c", "answer:4", "request:1", "request:2"];

test("pending signals answer waits exactly when one of their names does, however long the list of waits is", () => {
  const name = fc.constantFrom(...NAMES);
  const wait = fc.oneof(
    fc.record({ type: fc.constant("timer" as const), id: fc.nat(), at: fc.nat() }),
    fc.record({ type: fc.constant("signal" as const), id: fc.nat(), name }),
    fc.record({ type: fc.constant("input" as const), id: fc.nat(), name, prompt: fc.constant("?") }),
  );
  const arrivals = fc.array(fc.record({ name, isConsumed: fc.boolean() }), { maxLength: 8 });
  fc.assert(
    fc.property(fc.array<Wait>(wait, { maxLength: 3 }), fc.boolean(), arrivals, (few, isLong, arrived) => {
      const timers = Array.from({ length: 100 }, (_, id): Wait => ({ type: "timer", id, at: 1 }));
      const waits = isLong ? [...timers, ...few] : few;
      const names = new PendingNames();
      for (const each of arrived) names.add(each.name);
      for (const each of arrived) if (each.isConsumed) names.remove(each.name);
      const left = arrived.filter(({ isConsumed }) => !isConsumed);
      const isNamed = (signal: string) => waits.some((each) => "name" in each && each.name === signal);
      for (const signal of NAMES)
        expect(isAnsweredBy(waits, signal)).toBe(signal.startsWith("request:") || isNamed(signal));
      expect(names.answers(waits)).toBe(
        waits.length > 0 && left.some((each) => isAnsweredBy(waits, each.name)),
      );
    }),
  );
});
