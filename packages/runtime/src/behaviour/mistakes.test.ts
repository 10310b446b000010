// Mistakes with `ctx`: each pauses its session, names the line and loses no work.

import { TestClock } from "@holdfast/testkit/test-runtime";
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
