// A task that holds something for a session, such as a process, learns that the session left memory.

import { expect, test } from "vitest";

import { defineAgent, defineTask } from "../agents/define.ts";
import { createRuntime } from "../runtime.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";

function holder() {
  const left: string[] = [];
  let ended = 0;
  const hold = defineTask({
    name: "hold",
    run: () => "held",
    sessionLeft: async (sessionId, { isWaiting, hasEnded }) => {
      left.push(`${sessionId} ${isWaiting ? "waits" : hasEnded ? "is over" : "is released"}`);
      await Promise.resolve();
      ended++;
    },
  });
  return { hold, left, ended: () => ended };
}

test("a session that ends is left once, and the close of the runtime waits until what it held has ended", async () => {
  const { hold, left, ended } = holder();
  const runtime = createRuntime({ storage: new MemoryStorage() });
  const agent = defineAgent({ name: "a", tasks: [hold], run: (ctx) => ctx.scheduleTask(hold, null) });
  await (await runtime.start(agent, null, { sessionId: "s" })).result();
  await runtime.close();
  expect(left).toEqual(["s is over"]);
  expect(ended()).toBe(1);
});

test("a session that waits is left when it is released", async () => {
  const { hold, left } = holder();
  const runtime = createRuntime({ storage: new MemoryStorage(), warmMs: 0 });
  const agent = defineAgent({
    name: "a",
    tasks: [hold],
    run: async (ctx) => {
      await ctx.scheduleTask(hold, null);
      return ctx.waitForSignal<string>("go");
    },
  });
  const handle = await runtime.start(agent, null, { sessionId: "s" });
  await expect.poll(() => left).toEqual(["s waits"]);
  await runtime.signal("s", "go", "done");
  expect(await handle.result()).toBe("done");
  await runtime.close();
  expect(left).toEqual(["s waits", "s is over"]);
});

test("a session that is paused is left as one that may come back", async () => {
  const { hold, left } = holder();
  const runtime = createRuntime({ storage: new MemoryStorage() });
  const agent = defineAgent({
    name: "a",
    tasks: [hold],
    run: async (ctx) => {
      await ctx.scheduleTask(hold, null);
      return ctx.waitForSignal<string>("go");
    },
  });
  const handle = await runtime.start(agent, null, { sessionId: "s" });
  await handle.pause();
  await expect.poll(() => left).toEqual(["s is released"]);
  await handle.cancel({ hard: true });
  await runtime.close();
});
