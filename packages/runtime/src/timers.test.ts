import { TestClock } from "@holdfast/testkit/test-runtime";
import { expect, test } from "vitest";
import { alarm, Timers } from "./timers.ts";

test("an alarm for no time is refused, and holds up no other", async () => {
  const clock = new TestClock();
  const timers = new Timers(clock);
  const rung: string[] = [];
  timers.set(
    alarm(() => rung.push("other")),
    clock.now() + 10,
  );
  const wrong = alarm(() => rung.push("wrong"));
  expect(() => timers.set(wrong, Number.NaN)).toThrow("set for no time");
  await clock.advance(10);
  expect(rung).toEqual(["other"]);
});
