// The ids with which a fork replays the records of its origins.

import { until } from "@holdfast/testkit/test-runtime";
import { afterEach, expect, test } from "vitest";
import { defineAgent, defineTask } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, type Runtime } from "../runtime.ts";

const opened: Runtime[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
});

function open(): Runtime {
  const runtime = createRuntime({ storage: new MemoryStorage(), development: false });
  opened.push(runtime);
  return runtime;
}

test("a fork of a fork from before the first fork's point uses the recorded id", async () => {
  const runtime = open();
  const name = defineTask({ name: "name", run: async (sessionId: string) => sessionId });
  const agent = defineAgent({
    name: "names",
    tasks: [name],
    run: async (ctx) => {
      const names: string[] = [];
      for (let i = 0; i < 4; i++) names.push(await ctx.scheduleTask(name, ctx.sessionId));
      return names.join(" ");
    },
  });
  await (await runtime.start(agent, undefined, { sessionId: "one" })).result();
  expect(await (await runtime.fork("one", { at: 6, sessionId: "two" })).result()).toBe("one one one two");
  for (const [at, expected] of [
    [2, "one three-2 three-2 three-2"],
    [4, "one one three-4 three-4"],
    [6, "one one one three-6"],
  ] as const) {
    const three = await runtime.fork("two", { at, sessionId: `three-${at}` });
    expect(await three.result()).toBe(expected);
    const four = await runtime.fork(three.sessionId, { at: 2, sessionId: `four-${at}` });
    expect(await four.result()).toBe(expected.replace(/ .*/, ` four-${at}`.repeat(3)));
  }
});

test("a fork knows the entries in its state, also when one id begins with the other", async () => {
  const runtime = open();
  const agent = defineAgent<unknown, string, string>({
    name: "answers",
    run: async (ctx) => {
      if (ctx.state === undefined) return ctx.checkpoint(ctx.appendEntry({ role: "user", content: "?" }));
      await ctx.waitForSignal("go");
      return ctx.appendEntry({ role: "assistant", content: "!", parentId: ctx.state });
    },
  });
  const origin = await runtime.start(agent, undefined, { sessionId: "job-1" });
  await until(async () => (await origin.session()).status === "waiting", "its second turn");
  const fork = await runtime.fork("job-1", { sessionId: "job" });
  await fork.signal("go");
  expect(await fork.result()).toBe("job-3");
});
