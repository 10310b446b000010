// A test fakes the timers of its process, for the code around agents. Sessions take their time from the clock of
// the runtime, and stand still for no fake.

import { TestClock } from "@holdfast/testkit/test-runtime";
import { afterEach, expect, test, vi } from "vitest";
import { defineAgent } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime } from "../runtime.ts";

const WEEK_MS = 7 * 86_400_000;
const reminder = defineAgent({
  name: "reminder",
  run: async (ctx, ms: number) => {
    await ctx.sleep(ms);
    return ctx.run("mail", () => "sent");
  },
});

afterEach(() => void vi.useRealTimers());

test("a session sleeps by the clock of its test while the timers of the process are faked", async () => {
  vi.useFakeTimers();
  const clock = new TestClock();
  const runtime = createRuntime({ storage: new MemoryStorage(), clock });
  const result = (await runtime.start(reminder, WEEK_MS)).result();
  clock.jump(WEEK_MS);
  await clock.advance(10_000);
  expect(await result).toBe("sent");
  await runtime.close();
});

test("a session sleeps in real time where a test fakes timers and gives no clock", async () => {
  vi.useFakeTimers();
  const runtime = createRuntime({ storage: new MemoryStorage() });
  expect(await (await runtime.start(reminder, 5)).result()).toBe("sent");
  await runtime.close();
});
