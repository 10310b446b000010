// A session is paused while a task has not begun its next attempt. Another process goes on with it, and
// nothing is uncertain.

import { countingRandom, TestClock, until } from "@holdfast/testkit/test-runtime";
import { expect, onTestFinished, test } from "vitest";
import { defineAgent, type Agent } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, type Runtime } from "../runtime.ts";

function open(storage: MemoryStorage, clock: TestClock, agent: Agent): Runtime {
  const runtime = createRuntime({
    storage,
    clock,
    agents: [agent],
    random: countingRandom(),
    development: false,
  });
  onTestFinished(() => runtime.close());
  return runtime;
}

test("a retry of an effect that happens once is due after a pause and a restart, and nothing is uncertain", async () => {
  const storage = new MemoryStorage();
  const clock = new TestClock();
  let tries = 0;
  const agent = defineAgent({
    name: "payer",
    run: (ctx) =>
      ctx.run(
        "pay",
        () => {
          if (++tries === 1) throw new Error("try again");
          return "paid";
        },
        { effect: "once", retry: { maxAttempts: 2, initialDelayMs: 10_000 } },
      ),
  });
  const first = open(storage, clock, agent);
  const handle = await first.start(agent, undefined, { sessionId: "s" });
  await until(() => tries === 1, "the first attempt");
  await clock.advance(1);
  await handle.pause();
  expect((await handle.settled()).status).toBe("paused");
  await first.close();
  await clock.advance(60_000);
  const second = open(storage, clock, agent);
  await second.handle("s").unpause();
  await second.recover();
  await clock.advance(60_000);
  expect(await second.handle("s").result()).toBe("paid");
  expect(tries).toBe(2);
});
