// Mistakes with `ctx`: each pauses its session, names the line and loses no work.

import { TestClock, turns } from "@holdfast/testkit/test-runtime";
import { afterEach, expect, test } from "vitest";
import { defineAgent, type Agent } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, type Runtime } from "../runtime.ts";

const opened: Runtime[] = [];
afterEach(() => Promise.all(opened.splice(0).map((runtime) => runtime.close())).then(() => {}));

function open(): { runtime: Runtime; clock: TestClock } {
  const clock = new TestClock();
  const runtime = createRuntime({ storage: new MemoryStorage(), clock, development: true });
  opened.push(runtime);
  return { runtime, clock };
}

const agentOf = (run: (ctx: Parameters<Agent["main"]>[0]) => Promise<unknown>, name = "subject"): Agent =>
  defineAgent({ name, run });

function fail(error: Error): never {
  throw error;
}

test.each([
  ["gives frames", (_: Error, frames: readonly unknown[]) => frames, /mistakes\.test\.ts:\d+:\d+$/],
  ["gives an object", (error: Error) => ({ text: error.message }), undefined],
  ["throws", () => fail(new Error("no stacks here")), undefined],
])(
  "an agent that makes a mistake is paused for it where Error.prepareStackTrace %s, and the process goes on",
  async (_, prepareStackTrace, line) => {
    const { runtime, clock } = open();
    const before = Error.prepareStackTrace;
    Error.prepareStackTrace = prepareStackTrace;
    try {
      const stray = agentOf(async (ctx) => {
        await new Promise((resolve) => setImmediate(resolve));
        await ctx.sleep(Date.now());
      }, "stray");
      const twice = agentOf((ctx) => Promise.all([ctx.waitForSignal("s"), ctx.waitForSignal("s")]), "twice");
      const once = { retry: { maxAttempts: 1 } };
      const throws = agentOf((ctx) => ctx.run("t", () => fail(new Error("boom")), once), "throws");
      const handles = await Promise.all([stray, twice, throws].map((agent) => runtime.start(agent)));
      const settled = await Promise.all(handles.map((handle) => handle.settled()));
      const place = line === undefined ? {} : { at: expect.stringMatching(line) };
      expect(settled).toMatchObject([
        { status: "paused", fault: { code: "non_durable_await", ...place } },
        { status: "paused", fault: { code: "usage", ...place } },
        { status: "failed", error: { cause: { message: "boom", ...place } } },
      ]);
      await clock.advance(1_000);
    } finally {
      Error.prepareStackTrace = before!;
    }
  },
);

test("an agent that gives a consuming wait to Promise.race is paused for it, and goes on with ctx.race", async () => {
  const raced = { by: "Promise" as "Promise" | "ctx", works: 0 };
  const agent = agentOf(async (ctx) => {
    for (let n = 0; n < 3; n++) {
      await ctx.run("work", () => raced.works++);
      const items = [ctx.waitForSignal("stop"), ctx.sleep(1).then(() => "slept")] as const;
      // An agent that catches everything cannot hide its mistake, and loses no work by it.
      const first = await (raced.by === "ctx" ? ctx.race(items) : Promise.race(items)).catch(() => "caught");
      if (first !== "slept") return [first, n];
    }
    return "never";
  });
  const { runtime, clock } = open();
  const handle = await runtime.start(agent, undefined, { sessionId: "racer" });
  const settled = handle.settled();
  await turns(20);
  expect(await settled).toMatchObject({
    status: "paused",
    fault: { code: "usage", at: expect.stringMatching(/mistakes\.test\.ts:\d+:\d+$/) },
  });
  raced.by = "ctx";
  const resumed = await runtime.resume("racer");
  await clock.advance(1);
  await handle.signal("stop", "stopped");
  expect([await resumed.result(), raced.works]).toEqual([["stopped", 1], 2]);
});
